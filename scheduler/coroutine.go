package scheduler

import "iter"

// A coroutine runs a task body for the loop, so that the body reads straight down and can still
// wait: suspend gives control back to the loop, and resume takes it up again.
//
// One goroutine still owns all state, because iter.Pull hands control over synchronously. resume
// blocks the loop goroutine inside next until the body suspends or ends. So at every instant
// exactly one of the two runs. The hand-over is a happens-before edge both ways, and the race
// detector knows it as such. A body may therefore touch what the loop owns, with no lock. A
// switch costs about a tenth of a microsecond; it involves no run queue and no thread.
//
// A coroutine serves many bodies, because creating one costs more than a switch. Loop only.
type coroutine struct {
	next  func() (ended bool, ok bool)
	yield func(ended bool) bool
	body  func()
	// stop ends the coroutine. A suspended body sees suspend return false and runs to its end
	// inside this call.
	stop    func()
	stopped bool // stop was called while a body was suspended
}

func newCoroutine() *coroutine {
	c := new(coroutine)
	c.next, c.stop = iter.Pull(func(yield func(bool) bool) {
		c.yield = yield
		for {
			c.body()
			c.body = nil
			if c.stopped || !yield(true) {
				return
			}
		}
	})
	return c
}

// start runs body until it first suspends or ends. It reports whether it ended. The body must
// not panic.
func (c *coroutine) start(body func()) (ended bool) {
	c.body = body
	return c.resume()
}

// resume continues the suspended body until it suspends again or ends. It reports whether it
// ended. The coroutine is then free for another body.
func (c *coroutine) resume() (ended bool) {
	ended, ok := c.next()
	return ended || !ok
}

// suspend gives control back to the caller of start or resume, until the next resume. Only the body calls it. False
// means that the coroutine is stopping: the body must end without waiting again.
func (c *coroutine) suspend() bool {
	if c.stopped {
		return false
	}
	if !c.yield(false) {
		c.stopped = true
		return false
	}
	return true
}
