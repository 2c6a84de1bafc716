package scheduler

import (
	"context"
	"errors"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
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
	Journal *trace.Journal  // nil: nobody records the request
	Rows    *task.RowBudget // of the request, for its bodies
	Memory  *rowset.Memory  // of the request, for its bodies; nil: none
}

// Next is State.Next, now.
func (r *Run) Next(now clock.Time) (node int, ok bool) {
	if r.State.Ready() {
		r.expire(now)
	}
	return r.State.Next()
}

// Proceed ends the run if nobody waits for it any more, or if its deadline has passed. It reports whether a node that was
// handed out before may start.
func (r *Run) Proceed(now clock.Time) bool {
	r.expire(now)
	return r.State.err == nil
}

// expire ends the run if nobody waits for it any more, or if its deadline has passed.
func (r *Run) expire(now clock.Time) {
	if r.State.err == nil {
		r.State.Expire(now, r.State.abandoned(r.Req.Context, now))
	}
}

// Load has j run a node that Next has handed out. It fills in the arguments of the body, whose timeout counts from start. limit is the
// node's task.Limit.
func (r *Run) Load(j *Job, node int, spec *task.Spec, limit int, start clock.Time) {
	x, c := r.Req, &j.Ctx
	j.spec, j.Started, j.Ended = spec, start, 0
	c.Node, c.UserID, c.RequestID, c.Params, c.Required, c.Caller = x.Graph.Nodes[node], x.UserID, x.RequestID, &x.Params, x.Required, x.Context
	c.Rows, c.Memory, c.Limit = r.Rows, r.Memory, r.State.notes.limit(limit)
	c.Deadline = r.State.nodeDeadline(c.Node, start)
	c.Inputs, c.Refs = r.State.Gather(node, c.Inputs[:0], c.Refs[:0])
}

// CheckStart returns ErrDeadlineBeforeStart, in a *TimeoutError, if the deadline of a node has passed when its body is about to start.
func (r *Run) CheckStart(j *Job, now clock.Time) error {
	if j.Ctx.Deadline.Passed(now) {
		return r.State.nodeLate(ErrDeadlineBeforeStart, j.Ctx.Node, r.State.arrived, j.Ctx.Deadline, now)
	}
	return nil
}

// TimedOut returns ErrNodeTimeout, in a *TimeoutError, for a node whose deadline has passed while it ran. Any goroutine, from Load to the
// end of the run.
func (r *Run) TimedOut(j *Job, now clock.Time) error {
	return r.State.nodeLate(ErrNodeTimeout, j.Ctx.Node, j.Started, j.Ctx.Deadline, now)
}

// Fail settles a running node with an error, now. Its body has ended then; ended is zero for a body that ends just now, or goes on. If
// the caller has gone, that is the error: the body has seen it, too, since its context has ended.
func (r *Run) Fail(node int, err error, ended, now clock.Time) {
	if gone := r.State.abandoned(r.Req.Context, now); gone == ErrAbandoned {
		r.State.Abort(-1, gone)
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

// note notes the outcome of a node that is about to succeed, and what its result lacks.
func (r *Run) note(j *Job) {
	node, lack := j.Ctx.Node.Index, j.Ctx.Lack()
	if lack.Err != nil {
		r.State.ReportLack(node, lack)
		r.Journal.Lack(node, lack.Err, lack.Dropped)
	}
	r.State.Note(node, j.Ctx.Inputs, j.Ctx.Refs, j.Out)
	r.Journal.End(node, j.Ended, j.Out.N)
}

// Result returns the answer of a finished run.
func (r *Run) Result() *Result {
	result := r.State.Result()
	result.Recording = r.Journal.Finish(result.Err)
	return result
}

// Job runs a node, or the nodes of a chain one after the other. One goroutine at a time, on which nothing else uses it meanwhile.
type Job struct {
	// Ctx has the arguments of the body. Its owner sets once what all nodes of an engine share: Registry, Waiter, Cancellation,
	// Outside and Clock. Run.Load fills in the rest.
	Ctx  task.Ctx
	spec *task.Spec

	Started clock.Time // from which the timeout of the node counts; zero if it has no deadline
	Ended   clock.Time // of the body; zero: it has not ended, or nobody needs to know when
	Out     rowset.RowSet
	Err     error
}

// Steps runs the body of the node, and those of others as long as next, at the end of each, has filled in the arguments of one more
// and returns true. A nil next is for a single node. Without a deadline its end costs no reading of the clock.
func (j *Job) Steps(next func() bool) {
	for more := true; more; more = next != nil && next() {
		j.Out, j.Err = task.Invoke(j.spec, &j.Ctx)
		if next != nil || j.Ctx.Deadline != 0 {
			j.Ended = j.Ctx.Clock.Now()
		}
	}
}

// follow fills in the arguments of the node that reads the result alone.
func (j *Job) follow(node *plan.Node, spec *task.Spec, limit int, b *bounds) {
	c := &j.Ctx
	j.spec, j.Started = spec, j.Ended
	c.Node, c.Limit, c.Deadline = node, limit, b.nodeDeadline(node, j.Ended)
	clear(c.Inputs)
	clear(c.Refs)
	c.Inputs, c.Refs = append(c.Inputs[:0], j.Out), c.Refs[:0]
}

// Late reports whether the body has ended after the deadline of its node. If that is not strict, a timer decides, unless the
// client's timer for a call was ahead of it for the same instant, or the context of the body was.
func (j *Job) Late(strict bool) bool {
	return j.Ctx.Deadline.Passed(j.Ended) && (strict || stoppedEarly(j.Err) || errors.Is(j.Err, context.DeadlineExceeded))
}

// clear ends the use of the arguments: a kept slice must not keep rows alive, and what is the caller's is its own again.
func (j *Job) clear() {
	c := &j.Ctx
	clear(c.Inputs)
	clear(c.Refs)
	c.Node, c.Params, c.Required, c.Caller = nil, nil, nil, nil
	j.Out, j.Err = rowset.RowSet{}, nil
}
