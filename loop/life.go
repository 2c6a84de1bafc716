package loop

// Start gives the loop its host. When Start returns, the loop accepts posts and the host
// has been woken for a first iteration. A second Start does nothing and returns nil;
// after Stop it does nothing and returns ErrStopped. Any goroutine.
func (l *Loop) Start(h Host) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.phase.Load() {
	case idle:
		l.host = h
		l.phase.Store(running)
		l.mu.waiting, l.mu.since = true, l.clock.Now()
		h.Wake()
		return nil
	case running:
		return nil
	default:
		return ErrStopped
	}
}

// Stop ends the loop. It refuses further posts. The present iteration finishes: if its timers phase has begun,
// the timers that were due then fire. Accepted posts run, then deferred work, and hooks run in each iteration up to
// that one. After it, timers and hooks end without being called. The host closes its connections, tells
// their users, and finishes. Stop never waits: Done says when the loop has ended. Before
// Start, and after the first Stop, it does nothing. Any goroutine.
func (l *Loop) Stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase.Load() != running {
		return
	}
	l.phase.Store(stopping)
	if l.mu.asleep {
		l.mu.asleep = false
		l.host.Wake()
	}
}

// Done returns a channel that is closed when the loop has ended and its host has released
// all its resources. Any goroutine.
func (l *Loop) Done() <-chan struct{} { return l.done }

// Close ends a loop that has nothing left to do. It returns ErrBusy, and changes nothing,
// while handles are open, requests are held or callbacks are pending, and within an
// iteration. So it serves a loop that is driven by Run, between two runs; Stop serves all
// others. Closing a loop that has ended does nothing. Loop only.
func (l *Loop) Close() error {
	l.mu.Lock()
	phase := l.phase.Load()
	if phase == stopped {
		l.mu.Unlock()
		return nil
	}
	if phase == stopping || l.awake || l.open > 0 || l.held > 0 ||
		!l.deferred.empty() || !l.flushing.empty() || !l.closing.empty() || len(l.mu.inbox) > 0 {
		l.mu.Unlock()
		return ErrBusy
	}
	l.phase.Store(stopping) // no post can come in between
	l.mu.Unlock()
	l.finish()
	return nil
}

// windDownMax bounds the iterations that a stopping loop runs for deferred work and close
// callbacks once the host has drained. Work that defers itself for ever must not keep the
// loop from ending. The loop drops work that is left after that.
const windDownMax = 64

// windDown is the last phase of an iteration while the loop is stopping.
func (l *Loop) windDown() {
	if !l.winding {
		if l.Metrics().PostsPending > 0 {
			return // accepted after this iteration took its posts; they run in the next iteration
		}
		l.winding = true
		l.dropTimers()
		l.idle.stopAll()
		l.prepare.stopAll()
		l.check.stopAll()
	}
	if l.host.Drain() {
		return
	}
	l.drained++
	if l.deferred.empty() && l.flushing.empty() && l.closing.empty() || l.drained > windDownMax {
		l.finish()
	}
}

// finish ends the loop.
func (l *Loop) finish() {
	l.mu.Lock()
	l.phase.Store(stopped)
	l.mu.asleep, l.mu.waiting = false, false
	l.mu.count = l.count
	l.mu.Unlock()
	done := func() { close(l.done) }
	if l.host == nil {
		done()
		return
	}
	l.host.Finish(done)
}
