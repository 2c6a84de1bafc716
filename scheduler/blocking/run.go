package blocking

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alitto/pond/v2"

	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// run is one request in flight. The holder of mu has it.
type run struct {
	scheduler.Run
	engine *engine
	shared scheduler.Shared

	mu       sync.Mutex
	changed  sync.Cond   // on mu: a node has settled
	spawned  []*job      // nodes that workers run, settled ones among them
	fault    atomic.Bool // the engine itself has panicked, and the state may be broken
	returned []int       // recorded nodes that have settled since dispatch last looked
}

// run runs a request that was admitted, on its goroutine. It delivers the result even if a body ends the goroutine by runtime.Goexit.
func (e *engine) run(x *scheduler.Execution) { e.runPlan(x, x.Graph) }

// runPlan is run for a request that has asked for a plan, and maybe falls back to another one by now.
func (e *engine) runPlan(x *scheduler.Execution, asked *plan.Graph) {
	again := false
	defer func() {
		if !again {
			e.leave(asked) // The request is its caller's again by then, but for the plan.
		}
	}()
	r := &run{engine: e}
	r.Shared, r.shared.Given.Rows, r.changed.L = &r.shared, tasks.NewRowBudget(e.cfg.MaxRows), &r.mu
	r.Begin(x, e.cfg.NodeTimeout, cmp.Or(x.Mode, e.cfg.Placement.Mode))
	r.Record(e.journals, e.model, "")
	r.Journal.Enter()
	defer func() {
		var result *scheduler.Result
		if result, again = r.result(asked.Name); again {
			r.Journal.Free()
			go e.runPlan(x, asked) // A body may have ended this goroutine.
			return
		}
		e.admitNext()
		defer e.contain()
		x.Deliver(result)
		r.Journal.Free()
	}()
	r.contained(r.dispatch)
	if r.fault.Load() {
		r.breakOff()
	}
}

// result returns the answer of a run that has ended, and reports whether the fallback runs in its place. A panic of the engine is an
// answer, too. asked is the name of the plan that the request counts for.
func (r *run) result(asked string) (result *scheduler.Result, again bool) {
	r.contained(func() {
		if r.fault.Load() {
			return
		}
		result = r.Result()
		if again = r.FallsBack(result, r.engine.given.Clock.Now()); again {
			r.Req.Keep(result)
			r.engine.count(asked, &scheduler.Counts{Fallbacks: 1})
		} else if result = r.Req.Settled(result); result.Err == nil && result.Degraded() {
			r.engine.count(asked, &scheduler.Counts{Degraded: 1})
		}
	})
	if r.fault.Load() {
		return r.Fault(), false
	}
	return result, again
}

// contained calls a step of the engine, and notes its panic.
func (r *run) contained(step func()) {
	defer func() {
		if recovered := recover(); recovered != nil {
			r.panicked(recovered)
		}
	}()
	step()
}

func (r *run) panicked(recovered any) {
	r.fault.Store(true)
	r.engine.panicked(recovered)
}

// breakOff asks all bodies to stop, and waits for them: they use what the request's caller gets back.
func (r *run) breakOff() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, j := range r.spawned {
		j.cancel.Cancel(scheduler.ErrFault)
	}
	for _, j := range r.spawned {
		for !j.settled {
			r.changed.Wait()
		}
	}
}

// dispatch hands out ready nodes and
// sleeps while there is none, until nothing is in flight and nothing is left.
func (r *run) dispatch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.fault.Load() {
		now := r.engine.given.Clock.Now()
		if i, ok := r.Next(now); ok {
			r.spawn(i, now)
			continue
		}
		if r.State.OnlyOptional() {
			r.giveUpOptional(now)
			continue
		}
		if r.State.Finished() {
			return
		}
		r.Journal.Leave()
		r.changed.Wait()
		for _, node := range r.returned {
			r.Journal.Returned(node)
		}
		r.returned = r.returned[:0]
	}
}

// workers are one of the pools. Its queue is unbounded: a request waits for the nodes that it submits, so the callers
// bound them. Nobody has to stop a pool: a worker ends when its queue is empty, and Close
// returns when no request is in flight. Any goroutine.
type workers struct {
	pond.Pool

	mu   sync.Mutex
	busy []bool // by the number of a worker; guarded by mu
}

// takeNumber gives a worker that becomes busy a number of its own, the lowest that is free.
func (w *workers) takeNumber() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	number := slices.Index(w.busy, false)
	if number < 0 {
		number = len(w.busy)
		w.busy = append(w.busy, false)
	}
	w.busy[number] = true
	return number
}

func (w *workers) giveNumber(number int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy[number] = false
}

// spawn has a worker run a node, or runs it here if there are none. mu is held.
func (r *run) spawn(i int, start clock.Time) {
	e, node := r.engine, r.Req.Graph.Nodes[i]
	workers, place := e.cpu, trace.OnPool
	if tasks.SpecOf(node).Place == task.Waits {
		workers, place = e.io, trace.OnIOWorker
	}
	if workers == nil {
		place = trace.OnGoroutine
	}
	j := &job{run: r, workers: workers}
	j.Init(&e.outside, &e.given, &j.cancel)
	r.Journal.Spawn(i, place, r.State.Rows(i))
	if workers == nil {
		r.Journal.Start(i, start)
		j.waits = r.Journal
	} else {
		r.Journal.Submit(i, start, 1)
		j.waits = r.Journal.Body()
	}
	r.Load(&j.Job, i, tasks.SpecOf(node), tasks.Limit(r.Req.Graph, node), start)
	if workers == nil {
		r.mu.Unlock()
		defer r.mu.Lock()
		j.work()
		return
	}
	if node.Optional {
		e.mu.Lock()
		e.enter(r.Req.Graph)
		e.mu.Unlock()
	}
	graph := r.Req.Graph
	_ = workers.Go(func() { // Only a pool that was stopped refuses.
		if node.Optional {
			defer e.leave(graph)
		}
		j.work()
	})
	r.spawned = append(r.spawned, j)
}

// giveUpOptional settles the optional nodes that run. Their bodies are asked to stop, and nobody waits for them. mu is held.
func (r *run) giveUpOptional(now clock.Time) {
	r.Proceed(now) // Past the deadline of the request that is the error.
	for _, j := range r.spawned {
		if !j.settled && j.Ctx.Node.Optional {
			j.settled = true
			j.cancel.Cancel(scheduler.ErrGivenUp)
			r.Fail(j.Ctx.Node.Index, scheduler.ErrGivenUp, now, now)
		}
	}
}

// job is one run of a node, on a goroutine that blocks where the body waits. One goroutine at a time, except that any
// goroutine may cancel it.
type job struct {
	scheduler.Job
	run     *run
	workers *workers // that run it; nil: the goroutine of the request does
	cancel  taskrun.Cancellation
	settled bool // guarded by run.mu

	// waits has what the body waits for; nil: nobody records the request. It belongs to the goroutine of the body until the node
	// settles, and then to the holder of run.mu.
	waits *trace.Journal
}

// work runs the body on this goroutine, and settles the node unless it was given up.
func (j *job) work() {
	j.Err = task.ErrGoexit // stays if the body never returns
	defer j.settle()
	if j.workers != nil {
		number := j.workers.takeNumber()
		defer j.workers.giveNumber(number)
		j.waits.Work(number)
		defer j.waits.Done()
	}
	if j.cancel.Cancelled() {
		return // given up in the queue
	}
	w := j.run.engine.takeWaiter(j)
	j.invoke(w)
	j.run.engine.freeWaiter(w)
}

// invoke runs the body, and fills in its error.
func (j *job) invoke(w *waiter) {
	e, r := j.run.engine, j.run
	if deadline := j.Deadline; deadline != 0 {
		now := e.given.Clock.Now()
		if j.Err = r.CheckStart(&j.Job, now); j.Err != nil {
			return
		}
		timer := time.AfterFunc(deadline.Sub(now), func() { j.cancel.Cancel(r.TimedOut(&j.Job, e.given.Clock.Now())) })
		defer timer.Stop()
	}
	if e.stopped.Err() != nil {
		j.Err = scheduler.ErrShuttingDown
		return
	}
	defer context.AfterFunc(e.stopped, func() { j.cancel.Cancel(scheduler.ErrShuttingDown) })()
	j.Err = task.ErrGoexit
	env := tasks.Env(&j.Ctx)
	env.Waiter, env.Reads = w, w.reads
	j.Steps(nil)
	w.reads, env.Reads = env.Reads, nil
	switch err := j.Err; {
	case j.Late(true):
		j.Err = r.TimedOut(&j.Job, j.Ended)
	case errors.Is(err, resp.ErrClosed), errors.Is(err, remote.ErrClosed),
		(errors.Is(err, task.ErrCancelled) || errors.Is(err, loop.ErrCancelled)) && e.stopped.Err() != nil:
		j.Err = scheduler.ErrShuttingDown
	}
}

// settle settles the node, unless it was given up.
func (j *job) settle() {
	r, recovered := j.run, recover()
	r.mu.Lock()
	defer r.mu.Unlock()
	if j.settled {
		j.waits.Free()
		return
	}
	j.settled = true
	defer r.changed.Signal()
	if recovered != nil {
		r.panicked(recovered)
	}
	if !r.fault.Load() {
		r.contained(j.report)
	}
}

// report gives the outcome of the node to the run. run.mu is held.
func (j *job) report() {
	r := j.run
	if j.workers != nil && j.waits != nil {
		r.Journal.Merge(j.Ctx.Node.Index, j.waits)
		r.returned = append(r.returned, j.Ctx.Node.Index)
	}
	if j.Err != nil {
		r.Fail(j.Ctx.Node.Index, j.Err, j.Ended, r.engine.given.Clock.Now())
	} else {
		r.Succeed(&j.Job)
	}
}
