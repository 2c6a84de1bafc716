package rankd

import "sync"

// loads counts the requests that wait for their plan to be loaded, so that Close waits for them.
// The zero value is ready. Any goroutine.
type loads struct {
	mu     sync.Mutex
	closed bool // guarded by mu; begin refuses
	active sync.WaitGroup
}

// begin counts one more request, which calls end. It reports false after close.
func (l *loads) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.active.Add(1)
	}
	return !l.closed
}

func (l *loads) end() { l.active.Done() }

// close refuses further requests and waits for those that began.
func (l *loads) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.active.Wait()
}
