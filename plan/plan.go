// Package plan reads a plan artifact, checks it fail-closed, and compiles it
// once into an immutable, integer-indexed graph that any number of requests
// and loops share.
package plan

import (
	"time"

	"github.com/rankd/rankd/expr"
	"github.com/rankd/rankd/registry"
)

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

// ParamSchema describes one parameter of an op.
type ParamSchema struct {
	Name     string
	Type     ParamType
	Required bool   // absent or null is refused
	IntValue int64  // default of an optional Int
	StrValue string // default of an optional String
	// An optional Bool defaults to false.
}

// OpSchema is what plan validation must know of an op. Immutable once built.
type OpSchema struct {
	Op     string        // with namespace: "core::vm"
	Params []ParamSchema // besides the common optional "trace"
}

// Ops finds the schema of an op, by its full name or its bare alias. Package
// task provides it.
type Ops interface {
	OpSchema(op string) (*OpSchema, bool)
}

// Graph is a checked and compiled plan. Immutable once built; any goroutine.
type Graph struct {
	Name    string
	Digest  string  // hex SHA-256 of the artifact
	Nodes   []*Node // in the plan's order; position i has Index i
	Outputs []int   // indices of nodes, in order, may repeat
	Sources []int   // nodes without dependencies, in the plan's order
}

// Node is one node of a graph. Immutable once built; any goroutine.
type Node struct {
	Index  int
	ID     string
	Op     string // with namespace
	Schema *OpSchema

	Inputs []int // indices of the inputs, in order; listing one twice counts as two
	Refs   []int // indices of node_ref parameters, in schema order
	Deps   int   // len(Inputs)+len(Refs): completions that this node waits for
	// Succs lists the dependents, one entry per edge, in the order in which the
	// edges were recorded (nodes in plan order; per node inputs first, then refs).
	Succs []int

	Params   NodeParams
	Expr     *expr.Expr         // of an ExprID parameter; nil if its id is ""
	Pred     *expr.Pred         // of a PredID parameter; nil if its id is ""
	Endpoint *registry.Endpoint // of an Endpoint parameter
	Timeout  time.Duration      // timeout_ms; 0 means none
	Inline   *bool              // scheduling.inline; nil if not given
	CostHint time.Duration      // scheduling.cost_estimate_us; 0 if not given
	IsOutput bool               // whether some output names this node
}

// NodeParams are the checked parameters of a node, defaults filled in.
// Immutable once built.
type NodeParams struct {
	values []paramValue
}

type paramValue struct {
	name string
	i    int64
	s    string
	b    bool
}

func (p *NodeParams) get(name string) *paramValue {
	for i := range p.values {
		if p.values[i].name == name {
			return &p.values[i]
		}
	}
	panic("plan: parameter " + name + " is not in the op's schema")
}

// Int returns an Int parameter. It panics if the schema has none of that name.
func (p *NodeParams) Int(name string) int64 { return p.get(name).i }

// Bool returns a Bool parameter.
func (p *NodeParams) Bool(name string) bool { return p.get(name).b }

// String returns the text of a String, Endpoint, ExprID, PredID or NodeRef
// parameter.
func (p *NodeParams) String(name string) string { return p.get(name).s }

// Load parses, checks and compiles one artifact. file is used in errors only.
// The error is an *Error.
func Load(file string, artifact []byte, ops Ops, reg *registry.Registry) (*Graph, error) {
	panic("stub")
}

// Error says why an artifact was refused.
type Error struct {
	File  string
	Node  string // id of the node; "" if not about one
	Field string // path: "nodes[2].params.fanout", "expr_table.e1.a"
	Msg   string
}

// Error implements error: one line.
func (e *Error) Error() string { return e.File + ": " + e.Field + ": " + e.Msg }
