package scheduler

import "iter"

// A coroutine runs a task body on the loop's behalf so that the body can be
// written straight down and still wait: suspend gives control back to the loop, resume
// takes it up again.
//
// Why this is still one goroutine's ownership: iter.Pull hands control over
// synchronously. resume blocks the loop goroutine inside next until the body
// suspends or ends, so at every instant exactly one of the two runs, and the
// hand-over is a happens-before edge both ways (the race detector knows it as
// such). A body may therefore touch what the loop owns, with no lock. It costs
// about a tenth of a microsecond per switch; no run queue, no thread.
//
// A coroutine is reused for many bodies, because creating one costs more than
// the switch. Loop only.
type coroutine struct {
	next  func() (ended bool, ok bool)
	stop  func()
	yield func(ended bool) bool
	body  func()
	torn  bool // stop was called while a body was suspended
}

func newCoroutine() *coroutine {
	c := new(coroutine)
	c.next, c.stop = iter.Pull(func(yield func(bool) bool) {
		c.yield = yield
		for {
			c.body()
			c.body = nil
			if c.torn || !yield(true) {
				return
			}
		}
	})
	return c
}

// start runs body until it first suspends or ends. It reports whether it ended.
// The body must not panic.
func (c *coroutine) start(body func()) (ended bool) {
	c.body = body
	return c.resume()
}

// resume continues the suspended body until it suspends again or ends. It
// reports whether it ended; the coroutine is then free for another body.
func (c *coroutine) resume() (ended bool) {
	ended, ok := c.next()
	return ended || !ok
}

// suspend gives control back to whoever called start or resume, until the next resume.
// It is called by the body only. False means that the coroutine is being
// torn down: the body must come to its end without waiting again.
func (c *coroutine) suspend() bool {
	if c.torn {
		return false
	}
	if !c.yield(false) {
		c.torn = true
		return false
	}
	return true
}

// tear ends the coroutine: a suspended body sees suspend return false and runs
// to its end inside this call.
func (c *coroutine) tear() { c.stop() }
