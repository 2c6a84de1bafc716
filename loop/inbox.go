package loop

// queue holds functions for a phase. Functions added while the phase runs wait for its
// next run. Loop only.
type queue struct{ next, batch []func() }

func (q *queue) add(fn func()) { q.next = append(q.next, fn) }

func (q *queue) empty() bool { return len(q.next) == 0 }

// run runs the functions that are there when it begins, in order.
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

// reuse empties list for the next batch. It drops a list that a burst has made huge.
func reuse[E any](list []E) []E {
	if cap(list) > keepCap {
		return nil
	}
	clear(list)
	return list[:0]
}

// shrink halves the capacity that a burst has made huge once a quarter of it suffices.
// That many removals pay for each copy.
func shrink[E any](list []E) []E {
	if cap(list) <= keepCap || len(list) > cap(list)/4 {
		return list
	}
	return append(make([]E, 0, cap(list)/2), list...)
}

// Post has fn run on the loop, after all posts accepted before it. It reports whether
// the loop has accepted fn: it does from Start to Stop. An accepted post always runs.
// A post made while posts run is left for the next iteration, after I/O. A nil fn does
// nothing, but counts as a post: the loop completes an iteration for it. Post costs a
// system call only if the loop is asleep and nobody has woken it yet. The inbox has no
// bound: the caller bounds its own posts in flight. Any goroutine.
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
		// The lock is held, so that no wake can come after the loop has ended: the
		// descriptor that it writes to may have another owner by then.
		l.mu.asleep = false
		l.host.Wake()
	}
	l.mu.Unlock()
	return true
}

// nothing is the function that replaces a nil fn.
func nothing() {}

// lockSpins is how often a post tries to take the lock before it queues up for it. The
// lock is held for some 10 ns, but sync.Mutex parks a waiter at once if other goroutines
// wait for its processor. Spinning gives 41 M posts/s instead of 22 M with
// 4 producers on 2 cores.
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

// Defer has fn run once in the check phase of this iteration, after the check hooks and
// all work deferred before it. Work that is deferred by deferred work, or after the check
// phase, runs in the next iteration, which then does not wait for I/O.
func (l *Loop) Defer(fn func()) { l.deferred.add(fn) }

// BeforeFlush has fn run once, after the prepare hooks of this iteration and before the host
// sends what its connections have buffered. Between two iterations, and in a function that
// BeforeFlush runs, it means the next iteration. The loop stays alive until fn has run. Loop only.
func (l *Loop) BeforeFlush(fn func()) { l.flushing.add(fn) }

// runCheck runs the check hooks, then the deferred work.
func (l *Loop) runCheck() {
	l.check.run(l)
	l.deferred.run(l)
}
