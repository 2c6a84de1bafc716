package blocking

import (
	"errors"
	"sync"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/trace"
)

// record returns a recorder for a request that was let in after it had waited for delay, or nil if nobody records it.
func (e *engine) record(exec *scheduler.Execution, arrived clock.Time, delay time.Duration) *trace.Recorder {
	if exec.Record == trace.Off {
		return nil
	}
	r := e.recorders.Get().(*trace.Recorder)
	r.Begin(exec.Record, exec.Graph, e.model, "", arrived)
	r.LetIn(delay)
	r.Enter()
	return r
}

// freeRecorder ends the use of a recorder whose recording was delivered. It may be nil.
func (e *engine) freeRecorder(r *trace.Recorder) {
	if r != nil {
		r.Free()
		e.recorders.Put(r)
	}
}

// outcome returns how a node settles whose body has ended.
func outcome(n *nodeRun) trace.Outcome {
	o := trace.Outcome{Rows: n.out.N, Err: n.err, Dropped: n.lack.Dropped, Lack: n.lack.Err}
	if n.err != nil {
		var late *scheduler.TimeoutError
		o.TimedOut, o.Late = errors.As(n.err, &late), errors.Is(n.err, scheduler.ErrGivenUp)
		o.Instead, o.Rows = n.instead, n.insteadRows
	}
	return o
}

// work is what the worker of a recorded node takes down. It belongs to the worker until the node settles, and then to
// the holder of the request's lock.
type work struct {
	body       *trace.Recorder // what the body waited for
	worker     int
	start, end clock.Time
}

// begin starts the record of a node, on its worker. nil: nobody records the request.
func (e *engine) begin(exec *scheduler.Execution, worker int) *work {
	if exec.Record == trace.Off {
		return nil
	}
	w := &work{body: e.recorders.Get().(*trace.Recorder), worker: worker}
	w.body.BeginBody(exec.Record)
	w.start = e.clock.Now()
	return w
}

// into adds a node that settles to the record of its request.
func (w *work) into(r *trace.Recorder, node int, o trace.Outcome, e *engine) {
	r.Worked(node, w.worker, w.start)
	r.Started(node, w.worker, w.start)
	r.Posted(node, w.worker, w.end)
	r.Merge(w.body)
	e.recorders.Put(w.body)
	r.End(node, w.end, o)
}

// drop ends the record of a node that has settled before.
func (w *work) drop(e *engine) {
	w.body.Free()
	e.recorders.Put(w.body)
}

// numbers gives each worker that is busy a number of its own, the lowest that is free. Any goroutine.
type numbers struct {
	mu   sync.Mutex
	busy []bool
}

func (n *numbers) take() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, busy := range n.busy {
		if !busy {
			n.busy[i] = true
			return i
		}
	}
	n.busy = append(n.busy, true)
	return len(n.busy) - 1
}

func (n *numbers) give(number int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.busy[number] = false
}
