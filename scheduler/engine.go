package scheduler

import (
	"context"
	"time"

	"github.com/rankd/rankd/internal/list"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/trace"
)

// Execution is one request, from Submit to done: what its caller asks for, and its progress. It belongs to the engine
// until the engine calls done. The engine only reads the exported fields except for Graph and Fallback, and any goroutine may read them until then.
//
// It is a request, an entry of the Admission's queue, and what its caller uses again, in one type: one owner at a time has all
// three, and the engines that take it need all of the first. Three types would be three allocations a request, or a copy of
// these fields at each handover, for the same order of events.
type Execution struct {
	Graph *plan.Graph
	// Fallback is the plan that answers if Graph does not have the rows that it should have; nil: none. Graph then has
	// its AnswerBy of the time until Deadline, and Fallback the rest. It runs within the request's admission, and
	// becomes the Graph.
	Fallback *plan.Graph
	UserID   int64
	// RequestID is the id that the caller gave the request; it need not be unique.
	RequestID string
	Params    expr.Params
	Arrived   clock.Time // on the engine's clock; zero means when it is submitted
	Deadline  clock.Time // on the engine's clock; zero means none
	Deltas    bool       // fill Result.Deltas()
	// KeepRows fills Result.Rows(). Each node then makes all its rows: none stops at a task.Ctx.Limit.
	KeepRows bool
	// Served is what the run leaves for the log of served rows; nil: nothing.
	Served *Served
	// Capture is what the request leaves for a record, or what it is played from; nil: neither.
	Capture *Capture
	Mode    plan.Mode // of this request; empty means the engine's
	// Required has the indices of the nodes whose whole result the request needs: it fails without it, even if the
	// plan would go on. It must not change any more.
	Required []int
	// Residents has the rows of plans that the nodes read from memory; nil: the plan has no such node.
	Residents taskrun.Residents
	// Flow says whose the request is, in case it has to wait.
	Flow Flow
	// Record says how much to record of this run, in Result.Recording.
	Record trace.Detail
	// Context is the caller's: bodies derive theirs from it (task.Ctx.Context). Once it has ended, the request starts
	// no further node: it fails with ErrAbandoned, or with ErrRequestDeadline if the context's deadline has passed.
	// The engine itself only polls it and starts no timer, so Deadline should not be later than the context's. Nil
	// means that the caller waits to the end.
	Context context.Context

	done    func(*Result)
	arrived clock.Time    // Arrived, or when it was submitted
	delay   time.Duration // until it was admitted
	instead *Instead      // set once Fallback runs
	former  former        // of Graph while Fallback runs
	resumed clock.Time    // when Fallback began; zero: it has not
	paid    Cost          // of Graph before Fallback ran
	leaves  bool          // Context may end; that of context.Background never does

	counts   *profile // that counts the request, of the plan that it asked for; nil before it begins
	admit    func()   // makes admitsTo begin it, bound once: see Renew
	admitsTo *Async

	// Of the Admission.
	share *share               // in whose queue it waits; nil: it does not
	since clock.Time           // when it began to wait
	place list.Link[Execution] // in share.queue
	fresh list.Link[Execution] // in Admission.fresh
	left  func()               // stops the timer of its deadline; nil: there is none
}

// Enter takes up x for an engine with that registry's endpoints: it checks x, notes its caller's context, and calls
// Admission.Enter, whose results it returns. The error may also be that of Check. Any goroutine.
func (x *Execution) Enter(reg *registry.Registry, a *Admission, c clock.Clock, done func(*Result)) (waits bool, loser *Execution, err error) {
	if err := x.Check(reg); err != nil {
		return false, nil, err
	}
	x.instead, x.former, x.resumed, x.paid, x.counts = nil, former{}, 0, Cost{}, nil
	x.done, x.arrived, x.delay, x.leaves = done, x.Arrived, 0, x.Context != nil && x.Context.Done() != nil
	if x.arrived == 0 {
		x.arrived = c.Now()
	}
	return a.Enter(x, c)
}

// Renew makes x as good as new, for another request. A caller that uses an Execution again saves an allocation by it.
func (x *Execution) Renew() {
	admit, admitsTo := x.admit, x.admitsTo
	*x = Execution{}
	x.admit, x.admitsTo = admit, admitsTo
}

// WhenLeft sets what stops the timer of the deadline of a request that waits. Next and TurnedAway call it.
func (x *Execution) WhenLeft(stop func()) { x.left = stop }

// stopWait stops the timer of a request that waits no more.
func (x *Execution) stopWait() {
	if x.left != nil {
		x.left()
		x.left = nil
	}
}

// Deliver calls done. From then on x is the caller's again.
func (x *Execution) Deliver(result *Result) { x.done(result) }

// TurnedAway returns the outcome of a request that has waited in vain.
func (x *Execution) TurnedAway(err error, now clock.Time) *Result {
	x.stopWait()
	return &Result{Err: err, QueueDelay: max(now.Sub(x.since), 0)}
}

// contextErr returns why the caller's context has ended, or nil if it has not.
func (x *Execution) contextErr() error {
	if !x.leaves {
		return nil
	}
	return x.Context.Err()
}

// Check returns an error if an engine that was opened with that registry cannot run x: ErrNoPlan, or ErrForeignPlan for a plan
// whose registry has other endpoints.
func (x *Execution) Check(reg *registry.Registry) error {
	switch {
	case x.Graph == nil:
		return ErrNoPlan
	case !x.Graph.Registry.SharesEndpoints(reg):
		return ErrForeignPlan
	}
	return nil
}

// Engine runs requests, any number at a time. Any goroutine.
type Engine interface {
	// Submit starts a request. Either it returns an error and never calls done: that of Execution.Check,
	// ErrOverloaded or ErrShuttingDown. Or it calls done exactly once, on a goroutine of the engine's choosing, never
	// inside Submit. The result has ErrOverloaded if the request waited and lost its place to a caller with fewer.
	// done must not block.
	Submit(x *Execution, done func(*Result)) error
	// Close refuses new requests and waits up to grace for those that run or wait. It fails the rest with
	// ErrShuttingDown, waits until abandoned work has ended, and frees everything. done must not call it. Several
	// calls may wait side by side; the grace that ends first counts.
	Close(grace time.Duration)
	// Connect adds endpoints to the engine. Each has an Index that no other endpoint of the engine has had. They
	// connect when a request first needs them. Any goroutine.
	Connect(endpoints []*registry.Endpoint)
	// Keep says which plans and endpoints requests begin with from now on. The engine forgets the others, and closes
	// their connections, once the last request for them has ended. Counters stay. Any goroutine.
	Keep(graphs map[*plan.Graph]bool, endpoints map[*registry.Endpoint]bool)
	// Metrics returns the counters as they are now. Counters of an endpoint are at its Index. done must not call it.
	Metrics() Metrics
}

// Forever is a grace that never ends.
const Forever time.Duration = 1<<63 - 1
