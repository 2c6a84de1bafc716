package loop

// queue holds functions for a phase. What is added while the phase runs waits for
// the phase's next run. Loop only.
type queue struct{ next, batch []func() }

func (q *queue) add(fn func()) { q.next = append(q.next, fn) }

func (q *queue) empty() bool { return len(q.next) == 0 }

// run runs what is there, in order.
func (q *queue) run(l *Loop) {
	if len(q.next) == 0 {
		return
	}
	q.next, q.batch = q.batch, q.next
	l.runAll(q.batch)
	q.batch = reuse(q.batch)
}

// keepCap bounds the capacity that a list keeps after a burst: a million elements.
const keepCap = 1 << 20

// reuse empties list for the next batch, or drops it if a burst made it huge.
func reuse[E any](list []E) []E {
	if cap(list) > keepCap {
		return nil
	}
	clear(list)
	return list[:0]
}

// shrink returns list in an array of half the size if a burst made it huge and it fills
// no more than a quarter: so that each copy is paid for by as many removals.
func shrink[E any](list []E) []E {
	if cap(list) <= keepCap || len(list) > cap(list)/4 {
		return list
	}
	return append(make([]E, 0, cap(list)/2), list...)
}

// Post has fn run on the loop, after all posts accepted before it. It reports
// whether it was accepted: not before Start, and not after Stop. An accepted post
// always runs. A post made while posts are being run runs in the next iteration,
// after I/O. A nil fn does nothing, but counts as a post: the loop completes an iteration
// for it. Post costs a system call only if the loop is asleep and nobody has woken it yet. The inbox has no
// bound: whoever posts bounds what it has in flight. Any goroutine.
func (l *Loop) Post(fn func()) bool {
	if fn == nil {
		fn = nothing
	}
	l.lockInbox()
	if l.phase.Load() != running {
		l.mu.Unlock()
		return false
	}
	l.mu.inbox = append(l.mu.inbox, fn)
	if l.mu.asleep {
		// Under the lock, so that no wake can come after the loop has ended, when
		// the descriptor that it would write to may belong to somebody else.
		l.mu.asleep = false
		l.host.Wake()
	}
	l.mu.Unlock()
	return true
}

// nothing is the function of a post without one.
func nothing() {}

// lockSpins is how often a post tries to take the lock before it queues up for it.
// The lock is held for some 10 ns, but sync.Mutex parks a waiter at once when other
// goroutines wait for its processor. With 4 producers on 2 cores it is the
// difference between 22 and 41 M posts/s.
const lockSpins = 32

func (l *Loop) lockInbox() {
	for range lockSpins {
		if l.mu.TryLock() {
			return
		}
	}
	l.mu.Lock()
}

// runInbox runs the posts that were there when it was called.
func (l *Loop) runInbox() {
	l.mu.Lock()
	batch := l.mu.inbox
	if len(batch) == 0 {
		l.mu.Unlock()
		return
	}
	l.mu.inbox = l.spare
	l.count.PostsPendingMax = max(l.count.PostsPendingMax, len(batch))
	l.mu.Unlock()
	l.runAll(batch)
	l.spare = reuse(batch)
}

// Defer has fn run once at the end of this iteration, in the check phase, after the
// check hooks and what was deferred before it. What deferred work itself defers, and what is
// deferred after the check phase, runs in the next iteration, which then does not wait for I/O.
func (l *Loop) Defer(fn func()) { l.deferred.add(fn) }

// runCheck runs the check hooks, then the deferred work.
func (l *Loop) runCheck() {
	l.check.run(l)
	l.deferred.run(l)
}
