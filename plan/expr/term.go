package expr

import "github.com/rankd/rankd/registry"

// Term is a value and the values that it was computed from: a tree for one row. Immutable once built; any goroutine.
type Term struct {
	Op    string           // "mul", "key_ref", "cmp"; or a word of a task
	Name  string           // of the key, the parameter or the comparison; "" for other operators
	Key   registry.KeyID   // of key_ref, regex and member; otherwise 0
	Param registry.ParamID // of param_ref, regex and member; otherwise 0
	Value any              // nil (null), bool, int64, float64, string, []string
	Terms []Term           // operands that were evaluated, in order; those that were skipped are left out
	Fault string           // why there is no value
}
