package blocking

import (
	"sync"

	"github.com/alitto/pond/v2"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// TwoPools is the model that scheduler.Async replaces: two pools of workers that block. Each
// request has a goroutine that dispatches ready nodes by their task's Place, and waits for
// completions under a mutex and a condition. Any goroutine.
type TwoPools struct {
	engine
	// The queues are unbounded: a request waits for the nodes that it submits, so the callers
	// bound them. Nobody has to stop a pool: a worker ends when its queue is empty, and Close
	// returns when no request is in flight.
	cpu, io pond.Pool

	cpuNumbers, ioNumbers numbers // of the workers
}

// OpenTwoPools starts a two-pool engine. Close ends it.
func OpenTwoPools(cfg scheduler.Config) *TwoPools {
	cfg = cfg.WithDefaults()
	e := &TwoPools{cpu: pond.NewPool(cfg.CPUThreads), io: pond.NewPool(cfg.IOThreads)}
	e.init(&cfg)
	e.execute, e.model = e.dispatch, trace.TwoPools
	return e
}

// run is one request in flight.
type run struct {
	engine *TwoPools
	exec   *scheduler.Execution
	rows   *task.RowBudget

	mu      sync.Mutex
	changed sync.Cond       // on mu: a node has settled
	state   scheduler.State // guarded by mu, but for its deadlines and deltas: see State

	recorder *trace.Recorder // guarded by mu; nil: nobody records the request
	returned []int           // recorded nodes that have settled since dispatch last looked
}

// dispatch runs on the request's goroutine: it hands out ready nodes and
// sleeps while there is none, until nothing is in flight and nothing is left.
func (e *TwoPools) dispatch(exec *scheduler.Execution, arrived clock.Time, recorder *trace.Recorder, result *scheduler.Result) {
	r := &run{engine: e, exec: exec, recorder: recorder, rows: task.NewRowBudget(e.maxRows)}
	r.changed.L = &r.mu
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Begin(exec, arrived)
	for {
		now := e.clock.Now()
		if i, ok := r.state.Next(now); ok {
			r.spawn(i, now)
			continue
		}
		if r.state.Finished() {
			*result = *r.state.Result()
			if recorder != nil {
				result.Recording = recorder.Finish(result.Err)
			}
			return
		}
		if r.recorder != nil {
			r.recorder.Leave()
		}
		r.changed.Wait()
		for _, node := range r.returned {
			r.recorder.Returned(node)
		}
		r.returned = r.returned[:0]
	}
}

// spawn submits a node to the pool of its kind. mu is held.
func (r *run) spawn(i int, start clock.Time) {
	e, node := r.engine, r.exec.Graph.Nodes[i]
	workers, numbers, place := e.cpu, &e.cpuNumbers, trace.OnPool
	if task.SpecOf(node).Place == task.Waits {
		workers, numbers, place = e.io, &e.ioNumbers, trace.OnIOWorker
	}
	if r.recorder != nil {
		r.recorder.Spawn(i, place, r.state.Rows(i))
		r.recorder.Submit(i, start, 1)
	}
	inputs, refs := r.state.Gather(i, nil, nil)
	_ = workers.Go(func() { // Only a pool that was stopped refuses.
		var out rowset.RowSet
		err := error(task.ErrGoexit) // stays if the body never returns
		number := numbers.take()
		work := e.begin(r.exec, number)
		defer func() {
			if work != nil {
				work.end = e.clock.Now()
			}
			numbers.give(number)
			r.settle(i, inputs, refs, out, err, work)
		}()
		w := e.takeWaiter()
		if work != nil {
			w.record(work.body, i)
		}
		out, err = e.run(&r.state, r.exec, node, start, w, r.rows, inputs, refs)
		e.freeWaiter(w)
	})
}

// settle settles a node on its worker.
func (r *run) settle(i int, inputs, refs []rowset.RowSet, out rowset.RowSet, err error, work *work) {
	if err == nil {
		r.state.Note(i, inputs, refs, out)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if work != nil {
		work.into(r.recorder, i, outcome(out.N, err), &r.engine.engine)
		r.returned = append(r.returned, i)
	}
	if err != nil {
		r.state.Fail(i, err)
	} else {
		r.state.Succeed(i, out)
	}
	r.changed.Signal()
}
