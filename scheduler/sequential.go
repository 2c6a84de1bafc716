package scheduler

import (
	"sync"
	"time"

	"github.com/rankd/rankd/clock"
)

// Sequential is the engine to compare with: each request on a goroutine of its
// own, one node at a time, in the order in which nodes become ready, blocking
// where it waits. Requests share one blocking connection per endpoint. Any goroutine.
//
// Deadlines hold as far as blocking calls allow: they are checked before each
// node and after it, sleeps and Redis calls end at them, and CPU work is asked to stop.
type Sequential struct {
	blocking

	mu      sync.Mutex
	closing bool
	live    sync.WaitGroup // requests in flight; Add only under mu while not closing
}

// Clock returns the clock on which deadlines are instants.
func (e *Sequential) Clock() clock.Clock { return e.clock }

// Submit implements Engine.
func (e *Sequential) Submit(req *Request, done func(*Result)) {
	arrived := req.Arrived
	if arrived == 0 {
		arrived = e.clock.Now()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing {
		go done(&Result{Err: ErrShuttingDown})
		return
	}
	e.live.Add(1)
	go func() {
		defer e.live.Done()
		done(e.execute(req, arrived))
	}()
}

// Close implements Engine.
func (e *Sequential) Close(grace time.Duration) {
	e.mu.Lock()
	first := !e.closing
	e.closing = true
	e.mu.Unlock()
	if first && grace < Forever {
		// Blocked calls cannot be taken back; giving up makes them fail.
		defer time.AfterFunc(grace, e.giveUp).Stop()
	}
	e.live.Wait()
	if first {
		e.closeClients()
	}
}

func (e *Sequential) execute(req *Request, arrived clock.Time) *Result {
	var s State
	var deltas []SchemaDelta
	if req.Trace {
		deltas = make([]SchemaDelta, len(req.Graph.Nodes))
	}
	s.Reset(req.Graph, arrived, req.Deadline)
	w := e.newWaiter()
	for i, ok := s.Next(e.clock.Now()); ok; i, ok = s.Next(e.clock.Now()) {
		node := req.Graph.Nodes[i]
		inputs, refs := s.Gather(i, nil, nil)
		out, err := e.run(&s, req, node, w, inputs, refs)
		if err != nil {
			s.Fail(i, err)
			continue
		}
		if deltas != nil {
			deltas[i] = schemaDelta(node, inputs, refs, out)
		}
		s.Succeed(i, out)
	}
	result := s.outputs()
	if result.Err == nil {
		result.Deltas = deltas
	}
	return result
}
