package scheduler

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// How a node runs, in every engine:
//
//	Run.Next ─▶ Run.Load ─▶ Job.Steps: ┌▶ invoke the body ─▶ stamp its end ─▶ next? ─┬─▶ Run.Succeed or Run.Fail
//	                                   └──── fill in the arguments of the follower ──┘
//
// A driver says where the steps run, and what is next:
//
//	inliner   (inline.go)      on the loop, without a wait: settles each node, and goes on while the iteration has time
//	loopBody  (loopbody.go)    on the loop, in a coroutine that may wait: one step
//	offload   (offload.go)     on a worker of the CPU pool: the nodes of a chain, which the loop settles afterwards
//	blocking  (blocking/*.go)  on a goroutine that blocks where the body waits: one step

// Run is one request in flight: its State, and what its nodes share. One goroutine at a time.
type Run struct {
	Req     *Execution
	State   State
	Journal *trace.Journal // nil: nobody records the request
	Shared  *Shared
}

// Shared is what the bodies of a request use concurrently, including those that outlive its run. Any goroutine.
type Shared struct {
	Params expr.Params     // a copy, immutable while the request runs: after the answer the request belongs to its caller again
	Given  taskrun.Request // its Rows too
	Memory *rowset.Memory  // nil: none
	topK   bool            // a sort that a take follows selects the first rows; immutable while the request runs
	notes  notes           // of State.notes
	failed atomic.Bool     // tells workers that the request has failed, and that they skip its jobs
}

// limit returns the task.Ctx.Limit of a node that has this one by its plan. It is zero if the request wants all rows.
func (s *Shared) limit(rows int) int {
	if !s.topK {
		return 0
	}
	return rows
}

// Begin starts the run of an admitted request. Shared must be set. nodeTimeout is the engine's, and mode that of the
// request.
func (r *Run) Begin(x *Execution, nodeTimeout time.Duration, mode plan.Mode) {
	if x.Served != nil { // A fallback begins it anew.
		x.Served.begin(x.Graph)
	}
	r.Req, r.Shared.Params, r.Shared.topK = x, x.Params, mode.TopK() && !x.KeepRows && (x.Served == nil || !x.Served.Whole)
	if r.Shared.Given.Tapes = nil; x.Capture != nil {
		c := x.Capture
		if r.Shared.Given.Tapes = c.begin(x.Graph); c.Play != nil {
			r.Shared.topK = !c.AllRows
		}
		c.AllRows = !r.Shared.topK
	}
	r.Shared.Given.Required, r.Shared.Given.Caller, r.Shared.Given.Residents = x.Required, x.Context, x.Residents
	r.State.Begin(x, nodeTimeout, &r.Shared.notes)
}

// Record begins the journal of a run, if the request is recorded. engine and mode are their names in a trace.
func (r *Run) Record(journals *trace.Journals, engine, mode string) {
	x := r.Req
	r.Journal = journals.Begin(x.Record, x.Graph, engine, mode, x.arrived, x.delay)
}

// Next is State.Next, now.
func (r *Run) Next(now clock.Time) (node int, ok bool) {
	if !r.State.Ready() {
		return 0, false
	}
	r.expire(now)
	return r.State.Next()
}

// Proceed ends the run if nobody waits for it any more, or if its deadline has passed. It reports whether a node that
// was handed out earlier may start.
func (r *Run) Proceed(now clock.Time) bool {
	r.expire(now)
	return r.State.err == nil
}

// expire ends the run if nobody waits for it any more, or if its deadline has passed. Usually the context of the
// request never ends; then no function is called.
func (r *Run) expire(now clock.Time) {
	if r.State.Tell(now); !r.Req.leaves && !r.State.deadline.Passed(now) {
		return
	}
	if err := r.State.over(r.Req.contextErr(), now); err != nil {
		r.State.Abort(-1, err)
	}
}

// Load prepares j to run a node that Next has handed out. It fills in the arguments of the body, whose timeout counts
// from start. limit is the node's task.Ctx.Limit by its plan.
func (r *Run) Load(j *Job, node int, spec *task.Spec, limit int, start clock.Time) {
	r.lend(j)
	r.load(j, node, spec, limit, start)
}

// lend gives j what all nodes of the request share.
func (r *Run) lend(j *Job) {
	x, s, c := r.Req, r.Shared, &j.Ctx
	c.Registry, c.UserID, c.RequestID, c.Params, c.Memory, tasks.Env(c).Request = x.Graph.Registry, x.UserID, x.RequestID, &s.Params, s.Memory, &s.Given
}

// load is Load for a job that was lent the rest.
func (r *Run) load(j *Job, node int, spec *task.Spec, limit int, start clock.Time) {
	c, env := &j.Ctx, tasks.Env(&j.Ctx)
	c.Node, c.Limit = r.Req.Graph.Nodes[node], r.Shared.limit(limit)
	j.spec, j.Started, j.Deadline, j.Ended = spec, start, r.State.nodeDeadline(c.Node, start), 0
	env.Deadline = j.Deadline
	c.Inputs, c.Refs = r.State.Gather(node, c.Inputs[:0], c.Refs[:0])
}

// CheckStart returns ErrDeadlineBeforeStart, in a *TimeoutError, if the deadline of a node passes before its body
// starts.
func (r *Run) CheckStart(j *Job, now clock.Time) error {
	if j.Deadline.Passed(now) {
		return r.State.nodeLate(ErrDeadlineBeforeStart, j.Ctx.Node, r.State.arrived, j.Deadline, now)
	}
	return nil
}

// TimedOut returns ErrNodeTimeout, in a *TimeoutError, for a node whose deadline has passed while it ran. Any goroutine, from Load to the
// end of the run.
func (r *Run) TimedOut(j *Job, now clock.Time) error {
	return r.State.nodeLate(ErrNodeTimeout, j.Ctx.Node, j.Started, j.Deadline, now)
}

// Fail settles a running node with an error, now. ended is when its body ended; zero means just now, or that the body
// continues. If the caller has left, that becomes the error, because the body's context has ended, too.
func (r *Run) Fail(node int, err error, ended, now clock.Time) {
	if gone := r.Req.contextErr(); gone != nil && !errors.Is(gone, context.DeadlineExceeded) {
		r.State.Abort(-1, ErrAbandoned)
	}
	if notes := r.State.notes; notes != nil && notes.failed != nil {
		notes.failed[node].Err = err
	}
	instead, rows := r.State.Fail(node, err, now)
	_, timedOut := errors.AsType[*TimeoutError](err)
	r.Journal.Fail(node, ended, trace.Failure{
		Err: err, TimedOut: timedOut, Late: errors.Is(err, ErrGivenUp), Instead: instead, Rows: rows,
	})
}

// Succeed settles the node of j with the result of its body.
func (r *Run) Succeed(j *Job) {
	r.note(j)
	r.State.Succeed(j.Ctx.Node.Index, j.Out)
}

// note notes the outcome of a node that is about to succeed, and its shortfall.
func (r *Run) note(j *Job) {
	c := &j.Ctx
	if s := tasks.Env(c).Shortfall; s != nil && (s.Dropped > 0 || s.Err != nil || s.Malformed != nil) {
		r.State.ReportShortfall(c.Node.Index, *s)
		if s.Err != nil {
			r.Journal.Shortfall(c.Node.Index, s.Err, s.Dropped)
		}
	}
	if v := tasks.ServiceVersion(c); v != "" {
		r.State.noteService(c.Node, v)
	}
	use := tasks.Cached(c)
	if use.Values > 0 {
		r.State.noteCached(c.Node.Index, use)
		r.Journal.Cached(c.Node.Index, use.Values, use.Age)
	}
	if notes := r.State.notes; notes != nil {
		notes.take(c.Node, c.Inputs, c.Refs, j.Out, use)
	}
	r.Journal.End(c.Node.Index, j.Ended, j.Out.N)
}

// Result returns the answer of a finished run.
func (r *Run) Result() *Result {
	result := r.State.Result()
	if g := r.Req.Graph; g.MinRows != nil && result.Err == nil {
		result = r.measured(result, g.Short(&r.Shared.Params, func(node int) int { return r.State.nodes[node].result.N }))
	}
	if r.Req.instead != nil {
		m := result.said()
		m.instead = r.Req.instead
		result.remarks = &m
	}
	if r.Req.Served != nil && result.Err == nil {
		r.serve()
	}
	if r.Req.Capture != nil {
		r.captured(result)
	}
	result.QueueDelay = r.Req.delay
	result.Recording = r.Journal.Finish(result.Err)
	return result
}

// measured returns a result of which these outputs have fewer rows than the plan wants.
func (r *Run) measured(result *Result, short []plan.Short) *Result {
	if short == nil {
		return result
	}
	m := result.said()
	m.short = short
	if r.Req.Graph.Below != plan.BelowError {
		result.remarks = &m
		return result
	}
	return &Result{Err: &BelowMinimumError{short[0]}, remarks: &remarks{completeness: m.completeness}}
}

// Fault returns the outcome of a run that a panic of the engine has broken.
func (r *Run) Fault() *Result { return &Result{Err: ErrFault, QueueDelay: r.Req.delay} }

// Job runs a node, or the nodes of a chain one after the other. One goroutine at a time; nothing else on it uses the
// Job meanwhile.
type Job struct {
	Ctx  task.Ctx // the arguments of the body; the engine sets how it waits
	spec *task.Spec

	Started  clock.Time // from which the timeout of the node counts; it may be zero without a deadline
	Deadline clock.Time // of the node; zero: none
	Ended    clock.Time // of the body; zero: it has not ended, or nobody needs the time
	Out      rowset.RowSet
	Err      error
}

// tasks is the view that engines have of package task.
var tasks = task.Engine(taskrun.Key{})

// Init sets what all nodes of an engine share, and how their bodies are asked to stop; nil: never.
func (j *Job) Init(outside *task.Outside, engine *taskrun.Engine, cancel *taskrun.Cancellation) {
	env := tasks.Env(&j.Ctx)
	env.Outside, env.Engine, env.Cancellation = outside, engine, cancel
}

// Steps runs the body of the node. After each body it calls next; while next fills in the arguments of another node
// and returns true, Steps runs that one, too. A nil next is for a single node; without a deadline its end needs no
// reading of the clock.
func (j *Job) Steps(next func() bool) {
	for more := true; more; more = next != nil && next() {
		j.Out, j.Err = tasks.Invoke(j.spec, &j.Ctx)
		if next != nil || j.Deadline != 0 {
			j.Ended = tasks.Env(&j.Ctx).Engine.Clock.Now()
		}
	}
}

// follow fills in the arguments of the node that alone reads the result.
func (j *Job) follow(node *plan.Node, spec *task.Spec, limit int, b *bounds) {
	c := &j.Ctx
	j.spec, j.Started, j.Deadline = spec, j.Ended, b.nodeDeadline(node, j.Ended)
	c.Node, c.Limit, tasks.Env(c).Deadline = node, limit, j.Deadline
	clear(c.Inputs)
	clear(c.Refs)
	c.Inputs, c.Refs = append(c.Inputs[:0], j.Out), c.Refs[:0]
}

// Late reports whether the body has ended after the deadline of its node. If strict is false, the node's timer
// decides. Exception: the client's timer for a call, or the body's context, came first at the same instant.
func (j *Job) Late(strict bool) bool {
	return j.Deadline.Passed(j.Ended) && (strict || outOfTime(j.Err))
}

// dropRows keeps the slice and drops the rows in it. For the one or two inputs of a node this is faster than the
// built-in clear.
func dropRows(rows []rowset.RowSet) {
	for i := range rows {
		rows[i].Batch, rows[i].Rows = nil, nil
	}
}

// outOfTime reports whether a body was ended by its deadline or cancelled.
func outOfTime(err error) bool { return stoppedEarly(err) || errors.Is(err, context.DeadlineExceeded) }

// clear ends the use of the arguments: what is the caller's is its own again.
func (j *Job) clear() {
	j.drop()
	j.Ctx.Registry, j.Ctx.Node, j.Ctx.Params, tasks.Env(&j.Ctx).Request = nil, nil, nil, nil
}

// drop ends the use of the rows of its nodes, which a kept slice must not keep alive. The last one may have read fewer
// than another one before it.
func (j *Job) drop() {
	dropRows(j.Ctx.Inputs[:cap(j.Ctx.Inputs)])
	dropRows(j.Ctx.Refs[:cap(j.Ctx.Refs)])
	tasks.Env(&j.Ctx).Shortfall = nil
	j.Out, j.Err = rowset.RowSet{}, nil
}
