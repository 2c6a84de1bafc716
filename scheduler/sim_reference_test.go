package scheduler

import (
	"errors"
	"strings"
	"time"

	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/internal/outcome"
	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// reference is what a request gets if only the plan decides, and what its answer says of nodes
// that failed.
type reference struct {
	outputs  []rowset.RowSet
	results  []rowset.RowSet // of each node
	failures []string        // of each node that fails and whose inputs do not; empty: success
	rows     int64           // that all nodes make together

	told       []*Completeness  // by node, from the answer; nil: the answer does not tell of it
	status     []refStatus      // by node
	errors     []error          // by node: why its body fails; nil: it succeeds, or was not run
	shortfalls []task.Shortfall // by node
}

// failsAt reports whether the node that err names also fails in the reference.
func (r *reference) failsAt(g *plan.Graph, err error) bool {
	var failed *NodeError
	return errors.As(err, &failed) && r.errors[nodeOf(g, failed.Node).Index] != nil
}

type refStatus uint8

const (
	refTodo refStatus = iota // or not needed
	refGood
	refBad
)

// refRun runs a request one node at a time, without an engine, a loop or a server.
type refRun struct {
	reference
	lab     *simLab
	request *simRequest
	waiter  *refWaiter
	budget  *taskrun.RowBudget
}

// reference runs a request whose answer tells the given completeness.
func (lab *simLab) reference(q *simRequest, completeness []Completeness) *reference {
	lab.inReference = true
	defer func() { lab.inReference = false }()
	g := q.graph
	n := len(g.Nodes)
	r := &refRun{
		reference: reference{told: make([]*Completeness, n), status: make([]refStatus, n), errors: make([]error, n), shortfalls: make([]task.Shortfall, n), results: make([]rowset.RowSet, n)},
		lab:       lab, request: q, waiter: &refWaiter{lab: lab}, budget: tasks.NewRowBudget(0),
	}
	for i := range completeness {
		r.told[completeness[i].Node.Index] = &completeness[i]
	}
	all := r.budget.Left()
	for i, node := range g.Nodes {
		if !node.OnDemand {
			r.visit(i)
		}
	}
	r.rows = all - r.budget.Left()
	for _, i := range g.Outputs {
		r.outputs = append(r.outputs, r.results[i])
	}
	return &r.reference
}

// visit runs a node after those that it reads.
func (r *refRun) visit(i int) refStatus {
	if r.status[i] == refTodo {
		r.status[i] = refBad
		r.status[i] = r.run(i)
	}
	return r.status[i]
}

func (r *refRun) run(i int) refStatus {
	q, told := r.request, r.told[i]
	node := q.graph.Nodes[i]
	c := task.Ctx{Node: node, UserID: q.user, Params: &q.params, Registry: r.lab.reg}
	env := tasks.Env(&c)
	env.Waiter, env.Request = r.waiter, &taskrun.Request{Rows: r.budget, Required: q.required}
	ok := true
	for _, in := range node.Inputs {
		ok = r.visit(in) == refGood && ok
		c.Inputs = append(c.Inputs, r.results[in])
	}
	for _, in := range node.Refs {
		ok = r.visit(in) == refGood && ok
		c.Refs = append(c.Refs, r.results[in])
	}
	if !ok {
		return refBad
	}
	stands := told == nil || told.Status == outcome.NodeOK || told.Status == outcome.NodePartial
	if !stands {
		env.Request = nil // It may have failed before it made any.
	}
	r.waiter.command, r.waiter.faults = 0, nil
	if c.Partial() {
		r.waiter.faults = q.faults[i]
	}
	out, err := tasks.Invoke(tasks.SpecOf(node), &c)
	r.errors[i], r.shortfalls[i] = err, c.Shortfall()
	switch {
	case !stands && strings.HasPrefix(told.Err.Error(), openPrefix):
		if r.shortfalls[i].Err == nil { // The world has had it fail open.
			r.errors[i], r.shortfalls[i] = nil, told.shortfall()
		}
		out = c.Inputs[0]
	case !stands && told.Status == outcome.NodeFallback:
		if r.visit(node.Fallback.Index) == refBad {
			return refBad
		}
		out = r.results[node.Fallback.Index]
	case !stands:
		out = standIn(node, c.Inputs, c.Refs)
	case err != nil:
		r.failures = append(r.failures, (&NodeError{Node: node.ID, Op: node.Op, Err: err}).Error())
		return refBad
	}
	r.results[i] = out
	return refGood
}

// refWaiter answers at once, from the data set.
type refWaiter struct {
	lab   *simLab
	batch resp.Batch
	bytes []byte
	rest  resp.Replies // for Next

	command int     // number of the next one of the node
	faults  []fault // of the node, by their commands
}

// NewBatch implements taskrun.Waiter.
func (r *refWaiter) NewBatch() *resp.Batch {
	r.batch.Reset()
	return &r.batch
}

// Do implements taskrun.Waiter.
func (r *refWaiter) Do(_ *registry.Endpoint, b *resp.Batch) (resp.Replies, error) {
	r.bytes = r.bytes[:0]
	var args [][]byte
	for rest := b.Encoded(); len(rest) > 0; {
		var err error
		if _, args, _, rest, err = redcon.ReadNextCommand(rest, args[:0]); err != nil {
			return resp.Replies{}, err
		}
		if len(r.faults) > 0 && r.faults[0].command == r.command {
			r.bytes = r.faults[0].append(r.bytes)
			r.faults = r.faults[1:]
		} else {
			r.bytes = simAnswer(r.bytes, args)
		}
		r.command++
	}
	r.lab.decoder.Reset(b.Len())
	if _, _, err := r.lab.decoder.Decode(r.bytes); err != nil {
		return resp.Replies{}, err
	}
	return r.lab.decoder.Replies(), nil
}

// Begin implements taskrun.Waiter.
func (r *refWaiter) Begin(ep *registry.Endpoint, b *resp.Batch) (err error) {
	r.rest, err = r.Do(ep, b)
	return err
}

// Next implements taskrun.Waiter.
func (r *refWaiter) Next() (from int, part resp.Replies, err error) {
	part, r.rest = r.rest, resp.Replies{}
	return 0, part, nil
}

// Exchange implements taskrun.Waiter.
func (r *refWaiter) Exchange(_ *registry.Endpoint, x *remote.Exchange) error {
	request, err := x.Request(nil)
	if err != nil {
		return err
	}
	return x.Answer(simScore(request))
}

// Await implements taskrun.Waiter.
func (r *refWaiter) Await(fn func() error) error { return fn() }

// Sleep implements taskrun.Waiter.
func (r *refWaiter) Sleep(time.Duration) error { return nil }
