package blocking

import (
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

// recorded has a job that spawns now take down what happens to it.
func (j *job) recorded(node int, place trace.Place, now clock.Time) {
	r := j.run
	r.Recorder.Spawn(node, place, r.State.Rows(node))
	if j.workers == nil {
		r.Recorder.Start(node)
		j.body = r.Recorder
		return
	}
	r.Recorder.Submit(node, now, 1)
	j.body = r.engine.recorders.Get().(*trace.Recorder)
	j.body.BeginBody(r.Req.Record)
}

// begin notes that a worker has the job now.
func (j *job) begin() {
	if j.workers != nil {
		j.worker = j.workers.numbers.take()
		if j.body != nil {
			j.begun = j.run.engine.clock.Now()
		}
	}
}

// end notes that the worker is done with the job.
func (j *job) end() {
	if j.workers != nil {
		if j.body != nil {
			j.Ended = j.run.engine.clock.Now()
		}
		j.workers.numbers.give(j.worker)
	}
}

// merge adds what the worker of a job has taken down to the record of the request. The lock of the request is held.
func (j *job) merge() {
	if j.workers == nil || j.body == nil {
		return
	}
	r, node := j.run, j.Ctx.Node.Index
	r.Recorder.Worked(node, j.worker, j.begun)
	r.Recorder.Started(node, j.worker, j.begun)
	r.Recorder.Posted(node, j.worker, j.Ended)
	r.Recorder.Merge(j.body)
	r.engine.recorders.Put(j.body)
	r.returned = append(r.returned, node)
}

// drop forgets what the worker of a job has taken down that has settled before.
func (j *job) drop() {
	if j.body != nil {
		j.run.engine.freeRecorder(j.body)
	}
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
