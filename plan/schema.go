package plan

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
}

// OpSchema describes an op for the validation of plans. Immutable once built; any
// goroutine.
type OpSchema struct {
	Op     string        // with namespace: "core::vm"
	Params []ParamSchema // besides the common optional "trace"
	Impl   any           // the owner's description of the op; package plan ignores it
}

// Ops finds the schema of an op, by its full name or its bare alias. Package
// task provides it. Any goroutine.
type Ops interface {
	OpSchema(op string) (*OpSchema, bool)
}
