package plan

import "github.com/rankd/rankd/registry"

// ParamType is the type of a node parameter.
type ParamType uint8

// The types of node parameters.
const (
	Int      ParamType = iota + 1 // integer literal, or a float literal with an integral value
	Bool                          // true or false
	String                        // string
	Endpoint                      // id of an endpoint of kind redis
	ExprID                        // key of expr_table
	PredID                        // key of pred_table
	NodeRef                       // node id; a dependency like an input
)

// ParamSchema describes one parameter of an op. Immutable once built; any goroutine.
type ParamSchema struct {
	Name     string
	Type     ParamType
	Required bool   // Load refuses an absent or null value
	IsKey    bool   // an Int that is a key id; Load refuses one above 2^32-1
	IntValue int64  // default of an optional Int
	StrValue string // default of an optional String
	// An optional Bool defaults to false.

	// Source narrows what the source of a plan may say. Load ignores it, because the task
	// checks its parameters when it runs.
	Source SourceRule
}

// SourceRule says how the source of a plan writes a parameter. The zero value stands for an
// option that is named after the parameter and takes any value of its type. Immutable once
// built; any goroutine.
type SourceRule struct {
	Alias    string          // a second name of the option: "key" for "by"
	Default  *int64          // the value that the compiler writes where a source leaves a required Int out
	Min, Max *int64          // bounds of an Int, both inclusive; nil means none
	OneOf    []string        // the values of a String; nil means any
	KeyTypes []registry.Type // the types of an IsKey parameter; nil means any
	Writes   bool            // the task writes the column of this IsKey parameter, so the key must be writable
}

// OpSchema describes an op for the validation of plans. Immutable once built; any
// goroutine.
type OpSchema struct {
	Op     string        // with namespace: "core::vm"
	Params []ParamSchema // besides the common optional "trace"
	// Partial says that the task can leave out rows whose keys failed: a node may say "on_error": "partial".
	Partial bool
	Impl    any // the owner's description of the op; package plan ignores it
}

// Ops finds the schema of an op, by its full name or its bare alias. Package
// task provides it. Any goroutine.
type Ops interface {
	OpSchema(op string) (*OpSchema, bool)
}
