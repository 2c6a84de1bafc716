package plan

import (
	"errors"
	"strconv"
	"time"

	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
)

// Graph is a checked and compiled plan. Immutable once built; any goroutine.
type Graph struct {
	Name    string
	Digest  string          // hex SHA-256 of the artifact
	Nodes   []*Node         // in the plan's order; position i has Index i
	Returns []*registry.Key // the columns of the answer; nil: all. Each once, without the id
	Outputs []int           // indices of nodes, in order; may repeat
	// OutputNames are the names of Outputs, in order, without duplicates; nil: they have none.
	OutputNames []string
	Sources     []int // nodes without dependencies, in the plan's order; not those on demand
	Order       []int // indices of all nodes, each behind those before it
	Due         int   // nodes that have to settle: all but those on demand
	Lenient     bool  // some node is lenient: see Node.Lenient

	// MinRows is how few rows each output should have, in their order, 0: any number; nil: the plan does not say. See
	// Graph.Short.
	MinRows  []int
	Below    Below   // what happens to an answer with fewer; empty without MinRows
	AnswerBy Percent // that of the policy: of the time that the plan has

	// Log says what the log of served rows has; nil: the plan has no output.
	Log *Log

	// Resident are the names of the plans whose rows nodes read from the engine's memory, each once: see ParamSchema.IsPlan.
	Resident []string
	// RequestRules say what each request must give to nodes.
	RequestRules []RequestRule

	Registry *registry.Registry // for which it is compiled
	Typed    bool               // its expressions are typed: see expr.Capability
	TextIDs  bool               // some node has rows whose ids are texts: see Node.Entity
}

// Node is one node of a graph. Immutable once built; any goroutine.
type Node struct {
	Index  int
	ID     string
	Op     string // with namespace
	Schema *OpSchema

	Inputs []int // indices of the inputs, in order; may repeat
	Refs   []int // indices of node_ref parameters, in schema order
	Deps   int   // len(Inputs)+len(Refs): completions that the node waits for
	// Succs lists the dependents, one entry per edge. The order is the plan's order of
	// the dependents; inputs of a dependent come before its refs.
	Succs []int

	// Entity is the entity of the node's rows; nil: no source names one, and their ids are integers. InputEntity is
	// the entity of the rows of its inputs; nil also without inputs.
	Entity, InputEntity *registry.Entity

	Params   NodeParams
	Exprs    []*expr.Expr       // of all ExprID parameters, in schema order, without ids ""
	Preds    []*expr.Pred       // of all PredID parameters, likewise
	Expr     *expr.Expr         // the first of Exprs, or nil
	Pred     *expr.Pred         // the first of Preds, or nil
	Endpoint *registry.Endpoint // of the first Endpoint parameter that is given
	Prepared any                // what the op's Prepare has made
	Trace    string             // the common parameter "trace"; "" if not given
	Timeout  time.Duration      // timeout_ms; 0 means none
	Share    Percent            // timeout: of what is left of the request's time at the start; it then counts in place of Timeout
	Inline   *bool              // scheduling.inline; nil if not given
	CostHint time.Duration      // scheduling.cost_estimate_us; 0 if not given
	Counted  bool               // some output with MinRows is a page of its rows: its result stays until the answer
	IsOutput bool               // whether some output names this node

	OnError   OnError // on_error; of an optional node OnErrorEmpty if not given
	Fallback  *Node   // the node that runs if this one fails; nil if there is none
	StandsFor *Node   // the node whose fallback this one is; nil if there is none
	Optional  bool    // optional: the plan waits for the node only while a required one runs
	OnDemand  bool    // whether the node runs only if a fallback needs it
	AutoWhy   string  // why the policy of the plan chose OnError; "": it did not
	Granted   bool    // Timeout and Share are those of the policy: they do not hold if the request requires the node
	Writes    int     // columns that it may add to those of its inputs, or replace
	AnswerBy  Percent // the share of the request's time after which the plan gives the node up, unless the request requires it

	// Ahead has the later nodes for which a run of this one reads, too, each behind those before it: see OpSchema.AsksOf.
	Ahead []*Node

	// The state machine of a run starts from these, which follow from the fields above.
	Waits   int   // completions that the node waits for: Deps, and the demand for a node on demand
	Readers int   // reads of its result: one for each edge, for an output, and for each node that holds it
	Holds   []int // nodes whose results it holds until it settles: for a lenient node, those that its stand-in is made from

	// SourceSpan is the place in the plan's source that made the node, "plans/x.plan.ts:14:9", and
	// ExprSpan the place of its expression or predicate. Empty if the artifact has none.
	SourceSpan, ExprSpan string
}

// OutputName returns the name of the i-th output, or its number if the outputs have no names.
func (g *Graph) OutputName(i int) string {
	if g.OutputNames == nil {
		return strconv.Itoa(i)
	}
	return g.OutputNames[i]
}

// Title returns the node's label, the common parameter "trace", or its id if it has none.
func (n *Node) Title() string {
	if n.Trace != "" {
		return n.Trace
	}
	return n.ID
}

// SourceSpan returns the place in the plan's source where the error of a node arose: its expression or predicate, if
// that failed, or else the node. It is empty if the artifact does not have it.
func (g *Graph) SourceSpan(node string, err error) string {
	for _, n := range g.Nodes {
		switch {
		case n.ID != node:
		case n.ExprSpan != "" && errors.As(err, new(*expr.EvalError)):
			return n.ExprSpan
		default:
			return n.SourceSpan
		}
	}
	return ""
}
