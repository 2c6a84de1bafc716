package rankdtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// tasks is the engines' view of package task.
var tasks = task.Engine(taskrun.Key{})

// Case is one run of a task. The zero Case is for a task without inputs and parameters. Run only reads it; any
// goroutine.
type Case struct {
	// Params are the node's parameters, checked as a plan's parameters are: unknown, missing and
	// wrongly typed ones are errors. A value is what encoding/json can write.
	Params map[string]any
	// Inputs are the row sets of the node's inputs.
	Inputs []rowset.RowSet
	// Refs are the row sets of the node_ref parameters, by the parameter's name.
	Refs map[string]rowset.RowSet
	// Entity names the registry's entity of the rows of Inputs and Refs. Empty: their ids are integers.
	Entity string
	// IDs has the texts of string ids. Before the run these are the ids of the given rows,
	// afterwards also those of the result. Nil: the given rows have none.
	IDs *rowset.IDDict
	// Exprs and Preds are the plan's expr_table and pred_table: JSON text by id. Params
	// of type expr_id and pred_id name an id.
	Exprs, Preds map[string]string

	// UserID or UserIDText is the user of the request.
	UserID     int64
	UserIDText string
	// RequestID is the id of the request.
	RequestID string
	// Context and RequestParams are parameters that the request brings, as in rankd.Request.
	Context, RequestParams map[string]any
	// Arrival is when the request arrived. Zero means unknown.
	Arrival time.Time
	// Outside counts texts from Redis that the task could not use. Nil counts nothing.
	Outside *task.Outside
	// Registry has the keys, params and endpoints: what registry.Load returns, read once for all cases. Nil means the
	// built-in tables, whose Redis endpoint is "ep_0001".
	Registry *registry.Registry

	// Redis answers one command of a batch: see Replies. Nil answers every command with
	// an error.
	Redis func(command []string) any
	// Service answers the request to an endpoint of kind http: both are bodies, JSON documents. Its error becomes
	// the error of the exchange. Nil makes every exchange fail.
	Service func(request []byte) (answer []byte, err error)
	// Online says that services are asked over HTTP, as the registry has their endpoints, and not Service.
	Online bool
	// Cancelled says that nobody waits for the result any more. Waits then end at once with task.ErrCancelled.
	Cancelled bool
	// MaxRows bounds the rows that the task may make. Zero means task.DefaultMaxRows.
	MaxRows int
	// Partial lets the task leave out rows whose keys failed, as "on_error": "partial" does.
	Partial bool
	// Required makes the node one that the request requires: its result must be whole.
	Required bool
	// Shortfall receives the shortfall that the task reports. It may be nil.
	Shortfall *task.Shortfall
}

// Run runs the task once. It returns its output or its error as an engine gets them. Run checks
// the number of inputs and the output, and contains a panic. A sleep takes no time. A function
// of task.Ctx.Await runs at once, on this goroutine. A task whose Place is task.Computes has no
// Redis and no services, and gets an error if it asks. Run overwrites replies once they are no
// longer valid, so that tests catch a task that keeps them.
//
// The error is a *plan.Error if Params, Exprs or Preds are wrong. Any goroutine.
func Run(spec task.Spec, c Case) (rowset.RowSet, error) {
	reg := c.Registry
	if reg == nil {
		var err error
		if reg, err = builtinRegistry(); err != nil {
			return rowset.RowSet{}, err
		}
	}
	params, refused := request.Values(&request.Request{UserIDText: c.UserIDText, Context: c.Context, Params: c.RequestParams}, reg)
	if refused != nil {
		return rowset.RowSet{}, fmt.Errorf("rankdtest: %s", refused.Detail)
	}
	if !c.Arrival.IsZero() {
		params.SetNow(float64(c.Arrival.UnixNano()) / float64(time.Second))
	}
	graph, err := c.load(spec, reg)
	if err != nil {
		return rowset.RowSet{}, err
	}
	node := graph.Nodes[0]
	ctx := &task.Ctx{
		Node: node, Inputs: c.Inputs, UserID: c.UserID, RequestID: c.RequestID, Params: &params, Registry: reg,
	}
	w := &waiter{answer: c.Redis, service: c.Service, online: c.Online, ctx: ctx}
	env := tasks.Env(ctx)
	env.Waiter, env.Request, env.Cancellation, env.Outside = w, &taskrun.Request{Rows: tasks.NewRowBudget(c.MaxRows)}, new(taskrun.Cancellation), c.Outside
	if c.Required {
		env.Request.Required = []int{node.Index}
	}
	if params.SetIDs(c.IDs); c.IDs == nil && graph.TextIDs {
		params.SetIDs(rowset.NewIDDict())
	}
	for i, in := range c.Inputs {
		if err := in.Validate(); err != nil {
			return rowset.RowSet{}, fmt.Errorf("rankdtest: input %d: %w", i, err)
		}
	}
	for _, i := range node.Refs {
		name := graph.Nodes[i].ID[len(refPrefix):]
		if err := c.Refs[name].Validate(); err != nil {
			return rowset.RowSet{}, fmt.Errorf("rankdtest: %s: %w", name, err)
		}
		ctx.Refs = append(ctx.Refs, c.Refs[name])
	}
	if c.Cancelled {
		env.Cancellation.Cancel(task.ErrCancelled)
	}
	defer w.invalidate()
	out, err := tasks.Invoke(tasks.SpecOf(node), ctx)
	if c.Shortfall != nil {
		*c.Shortfall = ctx.Shortfall()
	}
	return out, err
}

// builtinRegistry reads the built-in tables once.
var builtinRegistry = sync.OnceValues(func() (*registry.Registry, error) { return registry.Default("test") })

// The nodes around the task under test have this op, and ids with these prefixes.
const (
	rowsOp      = "rankdtest::rankdtest_rows"
	inputPrefix = "input "
	refPrefix   = "ref "
)

// planNode is a node of a plan in JSON.
type planNode struct {
	ID      string         `json:"node_id"`
	Op      string         `json:"op"`
	Inputs  []string       `json:"inputs"`
	Params  map[string]any `json:"params"`
	OnError string         `json:"on_error,omitempty"`
}

// load returns a checked plan whose first node runs the task. Its other nodes represent the row sets of the case and
// never run.
func (c *Case) load(spec task.Spec, reg *registry.Registry) (*plan.Graph, error) {
	columns, lengths := make(map[string][]registry.KeyID), make(map[string]int64) // by node
	rows := task.Spec{Op: rowsOp, Output: task.Source, Entity: c.Entity, IDs: plan.ReadsTextIDs,
		Writes:  func(n *plan.Node, _ *registry.Registry) []registry.KeyID { return columns[n.ID] },
		RowsMax: func(n *plan.Node, _ int64) int64 { return lengths[n.ID] },
		Run:     func(*task.Ctx) (rowset.RowSet, error) { return rowset.RowSet{}, nil }}
	catalog, err := task.NewCatalog(spec, rows)
	if err != nil {
		return nil, err
	}
	node := planNode{ID: "task", Op: spec.Op, Inputs: []string{}, Params: maps.Clone(c.Params)}
	if node.Params == nil {
		node.Params = map[string]any{}
	}
	if c.Partial {
		node.OnError = "partial"
	}
	nodes := []planNode{{}}
	given := func(id string, rows rowset.RowSet) string {
		nodes = append(nodes, planNode{ID: id, Op: rowsOp, Inputs: []string{}})
		lengths[id] = int64(rows.Len())
		if rows.Batch != nil {
			columns[id] = rows.Batch.AppendKeys(nil)
		}
		return id
	}
	for i, in := range c.Inputs {
		node.Inputs = append(node.Inputs, given(fmt.Sprint(inputPrefix, i), in))
	}
	for name, ref := range c.Refs {
		node.Params[name] = given(refPrefix+name, ref)
	}
	nodes[0] = node
	artifact, err := json.Marshal(map[string]any{
		"schema_version": 1, "plan_name": "rankdtest", "nodes": nodes, "outputs": []string{node.ID},
		"expr_table": rawTable(c.Exprs), "pred_table": rawTable(c.Preds),
		"capabilities_required": []string{"cap.rankd.on_error.v1"},
	})
	if err != nil {
		return nil, fmt.Errorf("rankdtest: parameters as JSON: %w", err)
	}
	return plan.Load("rankdtest.plan.json", artifact, catalog, reg)
}

func rawTable(table map[string]string) map[string]json.RawMessage {
	raw := make(map[string]json.RawMessage, len(table))
	for id, text := range table {
		raw[id] = json.RawMessage(text)
	}
	return raw
}
