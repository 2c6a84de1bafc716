package blocking

import (
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/scheduler"
)

// wait puts a request into the queue, until its deadline at most. mu is held.
func (e *engine) wait(exec *scheduler.Execution, entry scheduler.Entry, arrived clock.Time, done func(*scheduler.Result)) {
	w, now := &scheduler.Waiting{Request: exec, Arrived: arrived, Done: done}, e.clock.Now()
	e.admission.Wait(entry, w, now)
	if exec.Deadline != 0 {
		timer := time.AfterFunc(exec.Deadline.Sub(now), func() { e.expire(w) })
		w.Left = func() { timer.Stop() }
	}
}

// expire fails a request whose deadline has passed while it waited.
func (e *engine) expire(w *scheduler.Waiting) {
	e.mu.Lock()
	err := e.admission.Expire(w, e.clock.Now())
	e.mu.Unlock()
	if err != nil {
		e.fail(w, err)
	}
}

// admitNext counts the end of a request that ran, and starts the next one.
func (e *engine) admitNext() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.admission.End() {
		return
	}
	now := e.clock.Now()
	for w, err := e.admission.Next(now); w != nil; w, err = e.admission.Next(now) {
		if err != nil {
			go e.fail(w, err)
			continue
		}
		go e.run(w.Request, w.Arrived, now.Sub(w.Since()), w.Done)
	}
}

// fail delivers the error of a request that has left the queue and will not run.
func (e *engine) fail(w *scheduler.Waiting, err error) {
	defer e.live.Done()
	w.Done(&scheduler.Result{Err: err, QueueDelay: e.clock.Now().Sub(w.Since())})
}
