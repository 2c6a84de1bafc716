package scheduler

import (
	"sync"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// Pool is the model that the reactor replaces: two pools of workers that
// block. Each request has a goroutine that dispatches ready nodes by their task's
// IsIO and waits for completions under a mutex and a condition:
//
//	request's goroutine ── IsIO ─▶ I/O workers: block on Redis ──┐
//	        ▲           └─ else ─▶ CPU workers: compute        ──┤
//	        └──────────── lock, settle, signal ◀─────────────────┘
//
// It drives the same State and runs the same Run bodies as the other engines,
// with the same batched commands, so what differs is the model alone. Any
// goroutine.
type Pool struct {
	blocking
	cpu, io *cpupool.Workers
}

// OpenPool starts a two-pool engine. Close ends it.
func OpenPool(cfg Config) *Pool {
	cfg = cfg.withDefaults()
	e := &Pool{cpu: cpupool.NewWorkers(cfg.CPUThreads), io: cpupool.NewWorkers(cfg.IOThreads)}
	e.init(&cfg)
	e.execute = e.dispatch
	e.release = func() {
		e.io.Close()
		e.cpu.Close()
	}
	return e
}

// poolRun is one request in flight.
type poolRun struct {
	engine *Pool
	req    *Execution
	rows   *task.RowBudget
	deltas []rowset.SchemaDelta // entry i is written by node i's worker

	mu      sync.Mutex
	changed sync.Cond // on mu: a node has settled
	state   State     // guarded by mu
}

// dispatch runs on the request's goroutine: it hands out ready nodes and
// sleeps while there is none, until nothing is in flight and nothing is left.
func (e *Pool) dispatch(req *Execution, arrived clock.Time) *Result {
	r := &poolRun{engine: e, req: req, rows: task.NewRowBudget(e.maxRows), deltas: newDeltas(req)}
	r.changed.L = &r.mu
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Reset(req.Graph, arrived, req.Deadline)
	r.state.abandoned = req.Abandoned
	for {
		now := e.clock.Now()
		if i, ok := r.state.Next(now); ok {
			r.spawn(i, now)
			continue
		}
		if r.state.Finished() {
			return r.state.result(r.deltas)
		}
		r.changed.Wait()
	}
}

// spawn submits a node to the pool of its kind. mu is held.
func (r *poolRun) spawn(i int, start clock.Time) {
	e, node := r.engine, r.req.Graph.Nodes[i]
	inputs, refs := r.state.Gather(i, nil, nil)
	workers := e.cpu
	if task.SpecOf(node).Place == task.Waits {
		workers = e.io
	}
	err := workers.Go(func() {
		w := e.takeWaiter()
		out, err := e.run(&r.state, r.req, node, start, w, r.rows, inputs, refs)
		e.freeWaiter(w)
		if err == nil && r.deltas != nil {
			r.deltas[i] = rowset.NewSchemaDelta(node.ID, inputs, refs, out)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if err != nil {
			r.state.Fail(i, err)
		} else {
			r.state.Succeed(i, out)
		}
		r.changed.Signal()
	})
	if err != nil {
		r.state.Fail(i, err)
	}
}
