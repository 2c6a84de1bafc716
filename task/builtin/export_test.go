package builtin

import "strings"

// StatedCommands returns the forms of the commands that a plan may state, and whether their replies may be shared.
func StatedCommands() map[string]bool {
	shared := make(map[string]bool)
	for _, c := range commands {
		for name := range strings.FieldsSeq(c.names) {
			shared[name+" "+c.form] = c.order < indexed
		}
	}
	return shared
}
