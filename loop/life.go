package loop

// Start hands the loop to the host that will drive it. When it returns, posts
// are accepted and the host has been woken for a first turn. A second Start does
// nothing and returns nil; after Stop it does nothing and returns ErrStopped. Any
// goroutine.
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

// Stop ends the loop. Posts are refused from now on; those accepted before run,
// then deferred work; timers and hooks end without being called, the host's
// connections are closed and told so, and the host finishes. Stop never waits: Done
// says when the end has come. Before Start it does nothing, and after the first Stop
// neither. Any goroutine.
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

// Done is closed when the loop has ended and its host has released all it held.
// Any goroutine.
func (l *Loop) Done() <-chan struct{} { return l.done }

// Close ends a loop that has nothing left to do. It returns ErrBusy, and changes
// nothing, while handles are open, requests are held, or callbacks are pending, and
// within an iteration; so it serves a loop that is driven by Run, between two
// runs. Stop is for all others. Closing a loop that has ended does nothing.
func (l *Loop) Close() error {
	l.mu.Lock()
	phase := l.phase.Load()
	if phase == stopped {
		l.mu.Unlock()
		return nil
	}
	if phase == stopping || l.awake || l.open > 0 || l.held > 0 ||
		!l.deferred.empty() || !l.closing.empty() || len(l.mu.inbox) > 0 {
		l.mu.Unlock()
		return ErrBusy
	}
	l.phase.Store(stopping) // no post can come in between
	l.mu.Unlock()
	l.finish()
	return nil
}

// windDownMax bounds the iterations that a stopping loop runs for the sake of
// deferred work and close callbacks once the host is drained: work that defers
// itself for ever must not keep the loop from ending. What is left then is dropped.
const windDownMax = 64

// windDown is an iteration's last phase while the loop is stopping.
func (l *Loop) windDown() {
	if !l.winding {
		if l.Metrics().PostsPending > 0 {
			return // accepted after this iteration took its posts: they run in the next
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
	if l.deferred.empty() && l.closing.empty() || l.drained > windDownMax {
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
