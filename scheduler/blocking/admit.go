package blocking

import (
	"time"

	"github.com/rankd/rankd/scheduler"
)

// wait puts a request into the queue, until its deadline at most. mu is held.
func (e *engine) wait(x *scheduler.Execution) {
	now, waits := e.given.Clock.Now(), new(true) // guarded by mu
	var left func()
	if x.Deadline != 0 {
		timer := time.AfterFunc(x.Deadline.Sub(now), func() { e.expire(x, waits) })
		left = func() {
			timer.Stop()
			*waits = false
		}
	}
	e.admission.Wait(x, now, left)
}

// expire fails a request whose deadline has passed while it waited. If it waits no more, it is its caller's already.
func (e *engine) expire(x *scheduler.Execution, waits *bool) {
	e.mu.Lock()
	var err error
	if *waits {
		err = e.admission.Expire(x, e.given.Clock.Now())
	}
	e.mu.Unlock()
	if err != nil {
		e.turnAway(x, err)
	}
}

// admitNext counts the end of a request that ran, and starts the next one.
func (e *engine) admitNext() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.admission.End() {
		return
	}
	now := e.given.Clock.Now()
	for x, err := e.admission.Next(now); x != nil; x, err = e.admission.Next(now) {
		if err != nil {
			go e.turnAway(x, err)
			continue
		}
		go e.run(x)
	}
}

// turnAway delivers the error of a request that has left the queue and will not run.
func (e *engine) turnAway(x *scheduler.Execution, err error) {
	defer e.leave(x.Graph)
	x.Deliver(x.TurnedAway(err, e.given.Clock.Now()))
}
