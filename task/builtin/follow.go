package builtin

import "github.com/rankd/rankd/task"

// follow expands each row to the ids in follow:{id}.
func follow() task.Spec {
	return fanOut("core::follow", "follow:", "Expands each row to the users that it follows.")
}
