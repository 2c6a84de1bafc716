package scheduler

import (
	"sync/atomic"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/loop/latency"
)

// Admission is the one place where an engine lets requests in. So many run, so many wait, first in first out, and
// the rest is refused. Admission decides. The engine runs what it lets in, and tells it of each end.
//
//	Enter ─┬─▶ refused
//	       ├─▶ Retract                  the engine is closing
//	       └─┬─▶ Start ─────────▶ runs ──▶ End
//	         └─▶ Wait ─┬─ Next ─▶ runs ──▶ End
//	                   └─ Next, Expire or Drop: it never runs
//
// T is what the engine ends the wait of a request with, at its deadline. Any goroutine calls Enter and Retract. All else
// belongs to the loop, or to the holder of the engine's lock.
type Admission[T any] struct {
	inflightMax int   // of requests that run; 0: no bound, and nothing below is counted but running
	heldMax     int64 // of requests that run or wait

	held    atomic.Int64 // requests that have entered and not ended: Enter counts up to heldMax
	refused atomic.Uint64

	running        int
	waiting        int
	oldest, newest *Waiting[T]
	expired        uint64
	dropped        uint64
	delays         latency.Histogram // of requests that waited and were let in
}

// AdmissionStats count what an Admission has decided. A copy; any goroutine.
type AdmissionStats struct {
	Waiting    int               // requests that wait now
	Refused    uint64            // at once
	Expired    uint64            // requests whose deadline passed while they waited
	Dropped    uint64            // requests that waited until their caller had gone, or the engine gave up
	QueueDelay latency.Quantiles // of the requests that waited and were let in
}

// Waiting is a request that waits to be let in. It belongs to the engine; the Admission links it.
type Waiting[T any] struct {
	Request *Execution
	Arrived clock.Time
	Done    func(*Result)
	Timer   T // ends the wait at the deadline of the request

	since      clock.Time
	prev, next *Waiting[T]
	queued     bool
}

// Since returns when the wait began.
func (w *Waiting[T]) Since() clock.Time { return w.since }

// Bound sets the bounds: inflightMax requests run at the same time and queueMax wait. An inflightMax of zero means no
// bound. Bound comes first.
func (a *Admission[T]) Bound(inflightMax, queueMax int) {
	a.inflightMax, a.heldMax = inflightMax, int64(inflightMax)+int64(queueMax)
}

// Enter counts one more request in, or refuses it. Any goroutine.
func (a *Admission[T]) Enter() bool {
	if a.inflightMax == 0 {
		return true
	}
	for {
		held := a.held.Load()
		if held >= a.heldMax { // A refusal writes nothing that other requests read.
			a.refused.Add(1)
			return false
		}
		if a.held.CompareAndSwap(held, held+1) {
			return true
		}
	}
}

// Retract takes back an Enter that neither Start nor Wait has followed. Any goroutine.
func (a *Admission[T]) Retract() {
	if a.inflightMax > 0 {
		a.held.Add(-1)
	}
}

// Start reports whether a request that has entered runs at once, and counts it. Otherwise Wait follows.
func (a *Admission[T]) Start() bool {
	if a.inflightMax > 0 && (a.running >= a.inflightMax || a.waiting > 0) {
		return false
	}
	a.running++
	return true
}

// Wait puts a request at the end of the queue.
func (a *Admission[T]) Wait(w *Waiting[T], now clock.Time) {
	w.since, w.queued = now, true
	w.prev, w.next = a.newest, nil
	if a.newest != nil {
		a.newest.next = w
	} else {
		a.oldest = w
	}
	a.newest = w
	a.waiting++
}

// Next takes the oldest request out of the queue if one more may run. It returns nil if none may. An error means that
// the request fails with it and never runs: its deadline has passed, or its caller has gone.
func (a *Admission[T]) Next(now clock.Time) (*Waiting[T], error) {
	w := a.oldest
	if w == nil || a.running >= a.inflightMax {
		return nil, nil
	}
	if err := a.Expire(w, now); err != nil {
		return w, err
	}
	a.remove(w)
	if err := abandoned(w.Request.Context, w.Arrived, w.Request.Deadline, now); err != nil {
		a.Retract()
		if late, ok := err.(*TimeoutError); ok {
			late.Waiting = true
			a.expired++
		} else {
			a.dropped++
		}
		return w, err
	}
	a.running++
	a.delays.Add(now.Sub(w.since))
	return w, nil
}

// Expire takes a request whose deadline has passed out of the queue, and returns the error that it fails with. It
// returns nil, and does nothing, if the deadline is still to come or the request does not wait any more.
func (a *Admission[T]) Expire(w *Waiting[T], now clock.Time) error {
	deadline := w.Request.Deadline
	if !w.queued || !deadline.Passed(now) {
		return nil
	}
	a.remove(w)
	a.Retract()
	a.expired++
	return &TimeoutError{Kind: ErrRequestDeadline, Elapsed: now.Sub(w.Arrived), Limit: deadline.Sub(w.Arrived), Waiting: true}
}

// Drop takes the oldest request out of the queue, whatever its deadline. It returns nil if none waits.
func (a *Admission[T]) Drop() *Waiting[T] {
	w := a.oldest
	if w != nil {
		a.remove(w)
		a.Retract()
		a.dropped++
	}
	return w
}

// End counts the end of a request that ran. It reports whether Next may let another one in.
func (a *Admission[T]) End() bool {
	a.running--
	a.Retract()
	return a.waiting > 0
}

// Free returns how many more requests may run, if there is a bound.
func (a *Admission[T]) Free() int { return a.inflightMax - a.running }

// Running returns how many requests run.
func (a *Admission[T]) Running() int { return a.running }

// Queued returns how many requests wait.
func (a *Admission[T]) Queued() int { return a.waiting }

// Stats returns the counters as they are now.
func (a *Admission[T]) Stats() AdmissionStats {
	return AdmissionStats{Waiting: a.waiting, Refused: a.refused.Load(), Expired: a.expired, Dropped: a.dropped, QueueDelay: latency.Of(&a.delays)}
}

// remove unlinks a request that waits.
func (a *Admission[T]) remove(w *Waiting[T]) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		a.oldest = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		a.newest = w.prev
	}
	w.prev, w.next, w.queued = nil, nil, false
	a.waiting--
}
