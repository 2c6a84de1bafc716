package builtin

import "github.com/rankd/rankd/task"

// recommendation expands each row to the ids in recommendation:{id}.
func recommendation() task.Spec {
	return fanOut("core::recommendation", "recommendation:", "Expands each row to the users recommended to it.")
}
