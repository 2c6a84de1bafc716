package scheduler

import "github.com/rankd/rankd/loop/clock"

// This file has what the loop does with a request before it begins.

// admit takes up a request that has entered: it begins at once, it waits, or it has lost its place. Others may have lost theirs to
// it.
func (e *Async) admit(req *Execution, entry Entry, arrived clock.Time, done func(*Result)) {
	if e.closing {
		e.admission.Retract(entry)
		done(&Result{Err: ErrShuttingDown})
		return
	}
	switch e.admission.TakeUp(entry) {
	case Runs:
		e.begin(req, arrived, 0, done)
	case Waits:
		e.wait(req, entry, arrived, done)
	default:
		e.deliver(&Result{Err: ErrOverloaded}, done)
	}
	if entry.Contends() {
		for w := e.admission.Displaced(); w != nil; w = e.admission.Displaced() {
			e.failWaiting(w, ErrOverloaded)
		}
	}
}

// wait puts a request into the queue, until its deadline at most.
func (e *Async) wait(req *Execution, entry Entry, arrived clock.Time, done func(*Result)) {
	w := e.freeWaiting.take()
	if w == nil {
		w = new(Waiting)
		w.timer = e.loop.NewTimer(func() { e.expire(w) })
		w.Left = w.timer.Stop
	}
	w.Request, w.Arrived, w.Done = req, arrived, done
	e.admission.Wait(entry, w, e.loop.Clock().Now())
	if req.Deadline != 0 {
		_ = w.timer.StartAt(req.Deadline) // Only a stopped loop refuses, and it ends all anyway.
	}
}

// expire fails a request whose deadline has passed while it waited.
func (e *Async) expire(w *Waiting) {
	if err := e.admission.Expire(w, e.loop.Clock().Now()); err != nil {
		e.failWaiting(w, err)
	}
}

// admitSoon has the queue looked at in this iteration, once. A request that ends does not begin the next one itself:
// requests that end at once would pile up on the stack, and the next one's work would count as this one's.
func (e *Async) admitSoon() {
	if !e.admitting {
		e.admitting = true
		e.loop.Defer(e.admitNextFn)
	}
}

// admitNext begins as many waiting requests as there are free places now. Places that become free meanwhile are for the
// next iteration, so that I/O comes in between.
func (e *Async) admitNext() {
	e.admitting = false
	now := e.loop.Clock().Now()
	for free := e.admission.Free(); free > 0; {
		w, err := e.admission.Next(now)
		switch {
		case w == nil:
			return
		case err != nil:
			e.failWaiting(w, err)
		default:
			free--
			req, arrived, delay, done := w.Request, w.Arrived, now.Sub(w.Since()), w.Done
			e.freeWait(w)
			e.begin(req, arrived, delay, done)
		}
	}
}

// failWaiting delivers the error of a request that has left the queue and will not run.
func (e *Async) failWaiting(w *Waiting, err error) {
	result, done := &Result{Err: err, QueueDelay: e.loop.Clock().Now().Sub(w.Since())}, w.Done
	e.freeWait(w)
	e.deliver(result, done)
	e.checkDrained()
}

func (e *Async) freeWait(w *Waiting) {
	w.Request, w.Done = nil, nil
	if !e.freeWaiting.put(w) {
		w.timer.Close(nil)
	}
}

// dropWaiting fails all requests that wait, because the engine gives up.
func (e *Async) dropWaiting() {
	for w := e.admission.Drop(); w != nil; w = e.admission.Drop() {
		e.failWaiting(w, ErrShuttingDown)
	}
}

// pending reports whether requests run or wait.
func (e *Async) pending() bool {
	return e.runs.Len() > 0 || e.admission.Queued() > 0
}
