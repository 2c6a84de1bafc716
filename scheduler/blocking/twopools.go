package blocking

import (
	"sync"

	"github.com/alitto/pond/v2"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/loop/clock"
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
	rows   *taskrun.RowBudget

	mu      sync.Mutex
	changed sync.Cond       // on mu: a node has settled
	state   scheduler.State // guarded by mu, but for its deadlines and deltas: see State

	optional []*nodeRun // spawned optional nodes, settled ones among them; guarded by mu

	recorder *trace.Recorder // guarded by mu; nil: nobody records the request
	returned []int           // recorded nodes that have settled since dispatch last looked
}

// dispatch runs on the request's goroutine: it hands out ready nodes and
// sleeps while there is none, until nothing is in flight and nothing is left.
func (e *TwoPools) dispatch(exec *scheduler.Execution, arrived clock.Time, recorder *trace.Recorder, result *scheduler.Result) {
	r := &run{engine: e, exec: exec, recorder: recorder, rows: tasks.NewRowBudget(e.maxRows)}
	r.changed.L = &r.mu
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Begin(exec, arrived)
	for {
		now := e.clock.Now()
		if i, ok := exec.Next(&r.state, now); ok {
			r.spawn(i, now)
			continue
		}
		if r.state.OnlyOptional() {
			r.giveUpOptional(now)
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
	if tasks.SpecOf(node).Place == task.Waits {
		workers, numbers, place = e.io, &e.ioNumbers, trace.OnIOWorker
	}
	if r.recorder != nil {
		r.recorder.Spawn(i, place, r.state.Rows(i))
		r.recorder.Submit(i, start, 1)
	}
	n := &nodeRun{node: node, start: start, rows: r.rows}
	n.inputs, n.refs = r.state.Gather(i, nil, nil)
	exec := r.exec
	if node.Optional {
		r.optional = append(r.optional, n)
		e.live.Add(1) // Its body may outlive the request,
		own := *exec  // which is its caller's again then.
		exec = &own
	}
	_ = workers.Go(func() { // Only a pool that was stopped refuses.
		n.err = task.ErrGoexit // stays if the body never returns
		number := numbers.take()
		work := e.begin(exec, number)
		defer func() {
			if work != nil {
				work.end = e.clock.Now()
			}
			numbers.give(number)
			r.settle(n, work)
			if node.Optional {
				e.live.Done()
			}
		}()
		if n.cancel.Cancelled() {
			return // given up in the queue
		}
		w := e.takeWaiter()
		if work != nil {
			w.record(work.body, i)
		}
		e.runNode(&r.state, exec, n, w)
		e.freeWaiter(w)
	})
}

// settle settles a node on its worker, unless it was given up.
func (r *run) settle(n *nodeRun, work *work) {
	e := r.engine
	r.mu.Lock()
	defer r.mu.Unlock()
	if n.settled {
		if work != nil {
			work.drop(&e.engine)
		}
		return
	}
	n.settled = true
	e.settle(&r.state, r.exec, n)
	if work != nil {
		work.into(r.recorder, n.node.Index, outcome(n), &e.engine)
		r.returned = append(r.returned, n.node.Index)
	}
	r.changed.Signal()
}

// giveUpOptional settles the optional nodes that run. Their bodies are asked to stop, and nobody waits for them. mu is held.
func (r *run) giveUpOptional(now clock.Time) {
	r.exec.Proceed(&r.state, now) // Past the deadline of the request that is the error.
	for _, n := range r.optional {
		if n.settled {
			continue
		}
		n.settled = true
		n.cancel.Cancel(scheduler.ErrGivenUp)
		o := trace.Outcome{Err: scheduler.ErrGivenUp, Late: true}
		o.Instead, o.Rows = r.exec.Fail(&r.state, n.node.Index, o.Err, now)
		if r.recorder != nil {
			r.recorder.End(n.node.Index, now, o)
		}
	}
	r.optional = nil
}
