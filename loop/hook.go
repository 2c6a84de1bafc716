package loop

// A Hook calls a function once in each iteration and keeps the loop alive while it is
// active. Hooks of one kind run in the order of their starts. A hook that is started by
// a hook of its kind first runs in the next iteration. Loop only.
type Hook struct {
	loop   *Loop
	list   *hookList
	fn     func()
	pos    int // place in the list; inactive if in none
	closed bool
}

// NewPrepare returns an inactive hook that runs right before the poll.
func (l *Loop) NewPrepare(fn func()) *Hook { return l.newHook(&l.prepare, fn) }

// NewCheck returns an inactive hook that runs in the check phase, before deferred work.
func (l *Loop) NewCheck(fn func()) *Hook { return l.newHook(&l.check, fn) }

// NewIdle returns an inactive hook that runs before the prepare hooks. The poll does not
// wait while an idle hook is active.
func (l *Loop) NewIdle(fn func()) *Hook { return l.newHook(&l.idle, fn) }

func (l *Loop) newHook(list *hookList, fn func()) *Hook {
	l.open++
	return &Hook{loop: l, list: list, fn: fn, pos: inactive}
}

// Start makes the hook active. An active hook keeps its place in the order. Errors:
// ErrHandleClosed, ErrNoCallback, ErrStopped.
func (h *Hook) Start() error {
	switch {
	case h.closed:
		return ErrHandleClosed
	case h.fn == nil:
		return ErrNoCallback
	case h.loop.phase.Load() >= stopping:
		return ErrStopped
	case h.pos == inactive:
		h.list.add(h)
	}
	return nil
}

// Stop makes the hook inactive: it does not run again, not even in this iteration.
func (h *Hook) Stop() {
	if h.pos != inactive {
		h.list.remove(h)
	}
}

// Active reports whether the hook runs in each iteration.
func (h *Hook) Active() bool { return h.pos != inactive }

// Close stops the hook for good. onClosed, which may be nil, is called once,
// later, in the closing phase. A second Close does nothing.
func (h *Hook) Close(onClosed func()) {
	if h.closed {
		return
	}
	h.Stop()
	h.closed = true
	h.loop.closeHandle(onClosed)
}

// hookList holds the active hooks of one kind. Loop only.
// Invariants: hooks[i].pos == i where hooks[i] is not nil; active counts the hooks that are not nil.
type hookList struct {
	hooks  []*Hook // in order of their starts, nil where one was stopped
	active int
}

func (s *hookList) add(h *Hook) {
	h.pos = len(s.hooks)
	s.hooks = append(s.hooks, h)
	s.active++
}

func (s *hookList) remove(h *Hook) {
	s.hooks[h.pos] = nil
	h.pos = inactive
	s.active--
}

// run calls the hooks that are active when it begins. It skips a hook that another one
// stops first.
func (s *hookList) run(l *Loop) {
	end := len(s.hooks)
	for next := 0; next < end; {
		next = s.runFrom(l, next, end)
	}
	if s.active < len(s.hooks) {
		s.compact()
	}
}

// runFrom calls the hooks from next on until one panics, and returns where to go on.
func (s *hookList) runFrom(l *Loop, next, end int) (resume int) {
	resume = next
	l.depth++
	defer l.endBatch()
	for ran := false; resume < end; {
		h := s.hooks[resume]
		resume++
		if h == nil {
			continue
		}
		if ran {
			l.measure()
		}
		ran = true
		h.fn()
	}
	return resume
}

// compact closes the gaps left by stopped hooks.
func (s *hookList) compact() {
	kept := s.hooks[:0]
	for _, h := range s.hooks {
		if h != nil {
			h.pos = len(kept)
			kept = append(kept, h)
		}
	}
	clear(s.hooks[len(kept):])
	s.hooks = shrink(kept)
}

// stopAll makes all hooks of the list inactive.
func (s *hookList) stopAll() {
	for _, h := range s.hooks {
		if h != nil {
			h.Stop()
		}
	}
}
