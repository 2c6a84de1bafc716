package scheduler

import "github.com/rankd/rankd/loop"

// This file has what happens to a request on the loop before it begins.

// Submit implements Engine. done runs on the loop.
func (e *Async) Submit(x *Execution, done func(*Result)) error {
	waits, loser, err := x.Enter(e.reg, &e.admission, e.loop.Clock(), done)
	if err != nil {
		return err
	}
	posted := false
	if waits {
		posted = e.loop.Post(func() { e.queued(loser) })
	} else {
		if x.admitsTo != e {
			x.admit, x.admitsTo = func() { e.admit(x) }, e
		}
		posted = e.loop.Post(x.admit)
	}
	if !posted {
		e.admission.Retract(x)
		return ErrShuttingDown
	}
	return nil
}

// admit begins a request that was admitted at once, unless the engine has closed meanwhile.
func (e *Async) admit(x *Execution) {
	if !e.over {
		e.begin(x)
		return
	}
	if x.counts != nil { // It was about to fall back.
		x.counts.counts.Failed++
		e.endLive(x.counts)
	}
	e.admission.End()
	e.deliver(x, &Result{Err: ErrShuttingDown})
	e.checkDrained()
}

// queued handles a request that has entered the queue. loser, unless nil, has lost its place to it.
func (e *Async) queued(loser *Execution) {
	if loser != nil {
		e.turnAway(loser, ErrOverloaded)
	}
	for x := e.admission.Fresh(); x != nil; x = e.admission.Fresh() {
		e.limitWait(x)
	}
}

// waitTimer is the timer of a request that waits, or of none. Loop only.
type waitTimer struct {
	timer *loop.Timer
	x     *Execution // nil: free
	stop  func()     // the end of the wait, bound once
}

// limitWait bounds the wait of a request by its deadline.
func (e *Async) limitWait(x *Execution) {
	w := e.freeWaits.take()
	if w == nil {
		w = new(waitTimer)
		w.timer = e.loop.NewTimer(func() { e.expire(w.x) })
		w.stop = func() { e.stopWait(w) }
	}
	w.x = x
	x.WhenLeft(w.stop)
	_ = w.timer.StartAt(x.Deadline) // Only a stopped loop refuses, and it ends all anyway.
}

func (e *Async) stopWait(w *waitTimer) {
	w.timer.Stop()
	if w.x = nil; !e.freeWaits.put(w) {
		w.timer.Close(nil)
	}
}

// expire fails a request whose deadline has passed while it waited.
func (e *Async) expire(x *Execution) {
	if err := e.admission.Expire(x, e.loop.Clock().Now()); err != nil {
		e.turnAway(x, err)
	}
}

// admitSoon makes admitNext run once in this iteration. A request that ends does not begin the next one itself:
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
	running, _ := e.admission.Held()
	for free := int(e.admission.inflightMax) - running; free > 0; {
		x, err := e.admission.Next(now)
		switch {
		case x == nil:
			return
		case err != nil:
			e.turnAway(x, err)
		default:
			free--
			e.begin(x)
		}
	}
}

// turnAway delivers the error of a request that has left the queue and will not run.
func (e *Async) turnAway(x *Execution, err error) {
	e.deliver(x, x.TurnedAway(err, e.loop.Clock().Now()))
	e.checkDrained()
}

// dropWaiting fails all requests that wait, because the engine gives up.
func (e *Async) dropWaiting() {
	for x := e.admission.Drop(); x != nil; x = e.admission.Drop() {
		e.turnAway(x, ErrShuttingDown)
	}
}

// pending reports whether requests run, or are about to, or wait.
func (e *Async) pending() bool {
	running, waiting := e.admission.Held()
	return running+waiting > 0
}
