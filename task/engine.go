package task

import (
	"runtime/debug"

	"github.com/rankd/rankd/internal/rowcache"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
)

// Engine returns what the engines of this module need to run tasks. It is not for authors of tasks, and other modules
// cannot name its argument. They run a task with rankdtest.Run, or in an engine of package rankd.
func Engine(taskrun.Key) engine { return engine{} }

// engine is the view that an engine has of this package. Immutable; any goroutine.
type engine struct{}

// env is what an engine gives to a body besides the arguments. A zero field means that there is no such thing. It
// belongs to the body, as its Ctx does.
type env struct {
	Waiter  taskrun.Waiter   // how this engine waits; nil: every wait fails
	Request *taskrun.Request // nil: nothing is known of it
	Engine  *taskrun.Engine  // nil: it has neither a clock nor tables
	// Cancellation is how the engine asks the body to stop; nil if it never does.
	Cancellation *taskrun.Cancellation
	// Deadline is the node's, an instant on the engine's clock. Zero means none.
	Deadline clock.Time
	// Now is when a body began that cannot wait, an instant on that clock; zero: the engine has not looked.
	Now clock.Time
	// Outside counts what came from outside and could not be used. Nil counts nothing.
	Outside *Outside

	// Reads are those of the bodies of this Ctx, one after the other; nil before the first that asks.
	Reads *Reads

	// Shortfall is that of this run's result, as the body says. Nil: nothing is missing.
	Shortfall *Shortfall
}

// rows returns the budget of the request, or nil.
func (e *env) rows() *taskrun.RowBudget {
	if e.Request == nil {
		return nil
	}
	return e.Request.Rows
}

// Env returns the engine's part of c, for the engine to fill before Invoke.
func (engine) Env(c *Ctx) *env { return &c.env }

// Cached returns what the body of c has taken from the engine's memory so far.
func (engine) Cached(c *Ctx) (use rowcache.Use) {
	if c.env.Reads != nil {
		use = c.env.Reads.cached
	}
	return use
}

// ServiceVersion returns what the service that the body of c has asked says of its version; "": nothing.
func (engine) ServiceVersion(c *Ctx) string { return c.Shortfall().service }

// NewRowBudget returns the full budget of a request: DefaultMaxRows if limit is not
// positive, MaxRowsLimit at most.
func (engine) NewRowBudget(limit int) *taskrun.RowBudget {
	if limit <= 0 {
		limit = DefaultMaxRows
	}
	return taskrun.NewRowBudget(int64(min(limit, MaxRowsLimit)))
}

// NewTrustingCatalog returns the catalog of an engine. Invoke checks the results of specs, and trusts those of
// trusted, which are the built-in tasks: rankd's tests check these, so a check at each run would only cost time.
// Invoke never checks whether a body has changed its inputs, since that takes a copy of them.
func (engine) NewTrustingCatalog(trusted []Spec, specs ...Spec) (*Catalog, error) {
	return newCatalog(trusted, specs, false)
}

// Head returns the first read of the earlier node for which r is asked what its node will read of the same rows; nil: its
// node runs itself.
func (engine) Head(r *Reads) Read {
	if r.beside == nil {
		return nil
	}
	return r.beside.asked[0].read
}

// RowKey returns the keys that begin so and end in the id of a row.
func (engine) RowKey(prefix string) RedisKey { return RedisKey{Prefix: prefix, perRow: true} }

// Body returns the body of a spec as one function, which waits where it reads. It is for those who run code around it.
func (engine) Body(spec Spec) Body {
	if spec.Make == nil {
		return spec.Run
	}
	return func(c *Ctx) (rowset.RowSet, error) { return c.read(&spec) }
}

// WithBody returns spec with another body.
func (engine) WithBody(spec Spec, body Body) Spec {
	spec.Run, spec.Ask, spec.Make = body, nil, nil
	return spec
}

// SpecOf returns the spec of a node whose plan was loaded with a Catalog.
func (engine) SpecOf(n *plan.Node) *Spec { return n.Schema.Impl.(*Spec) }

// Limit returns the Ctx.Limit of a node: how many rows its only reader will look at. Zero means all of them, or that
// the node's task does not honor a limit. A reader that passes on its input when it fails looks at all rows.
func (e engine) Limit(g *plan.Graph, n *plan.Node) int {
	if !e.SpecOf(n).Limited || n.IsOutput || len(n.Succs) != 1 {
		return 0
	}
	reader := g.Nodes[n.Succs[0]]
	first := e.SpecOf(reader).First
	if first == nil || len(reader.Inputs) != 1 || len(reader.Refs) > 0 || reader.OnError == plan.OnErrorSkip {
		return 0
	}
	rows, ok := first(reader)
	if !ok || rows <= 0 {
		return 0
	}
	return int(min(rows, MaxRowsLimit))
}

// Invoke runs the body of spec for one node. It checks the number of inputs, contains a panic, counts the rows that
// the body has made and not counted, and checks the output unless the catalog trusts the task. With a catalog for
// tests, it also checks that the inputs are unchanged. The error is the body's, or matches ErrContract, ErrInvalid,
// ErrTooManyRows or ErrPanic. If the result must be whole and is not, the error is that of the part that failed. A
// body returns the error of a stopped kernel as it is: Invoke turns rowset.ErrStopped into ErrCancelled.
func (engine) Invoke(spec *Spec, c *Ctx) (out rowset.RowSet, err error) {
	if n := len(c.Inputs); n != spec.Inputs && (n < spec.Inputs || n > spec.inputsMax()) {
		return rowset.RowSet{}, withKind(ErrInvalid, &arityError{got: n, least: spec.Inputs, most: spec.inputsMax()})
	}
	defer func() {
		if made := c.env.Cancellation; made != nil {
			made.Release(ErrReturned)
		}
		if v := recover(); v != nil {
			out, err = rowset.RowSet{}, panicOf(v)
		}
		if r := c.env.Reads; r != nil && r.running && !r.resumes {
			r.clear()
		}
	}()
	if t := c.tape(); t != nil && t.Stop != nil {
		return rowset.RowSet{}, t.Stop
	}
	c.spec = spec
	if resumes := c.env.Reads != nil && c.env.Reads.resumes; !resumes {
		c.counted, c.env.Shortfall = 0, nil
		if r := c.env.Reads; r != nil {
			r.cached = rowcache.Use{}
		}
	}
	var given *inputsCopy // nil: nobody checks them
	if spec.guardsInputs {
		given = copyInputs(c)
	}
	if spec.Make != nil {
		out, err = c.read(spec)
	} else {
		out, err = spec.Run(c)
	}
	if err == nil {
		err = c.countResult(out)
	}
	if s := c.env.Shortfall; s != nil && err == nil && s.Err != nil && !c.mayFallShort() {
		err = s.Err
	}
	if err == rowset.ErrStopped {
		err = ErrCancelled
	}
	if err != nil {
		return rowset.RowSet{}, err
	}
	if spec.unchecked {
		return out, nil
	}
	if given != nil {
		if err := given.check(c); err != nil {
			return rowset.RowSet{}, err
		}
	}
	if err := check(spec, c, out); err != nil {
		return rowset.RowSet{}, err
	}
	return out, nil
}

// panicOf returns the error of a recovered value. A panic in a function of Ctx.Await is such an error already.
func panicOf(recovered any) error {
	if p, ok := recovered.(*PanicError); ok {
		return p
	}
	return &PanicError{Value: recovered, Stack: debug.Stack()}
}

// Resident returns the rows of a plan that the engine keeps. It never waits. The error says why there are none.
func (engine) Resident(c *Ctx, plan string) (*taskrun.Resident, error) {
	if r := c.env.Request; r == nil || r.Residents == nil {
		return nil, Invalidf("this engine keeps no rows of plans")
	}
	t := c.tape()
	if t.Call(); t != nil && t.Plays {
		if p := t.Next(); p.Kind != 0 {
			return nil, p.Err // There were none.
		}
	}
	kept, err := c.env.Request.Residents.Resident(plan)
	return kept, t.Fail(err)
}
