package loop

// Closing has fn run in the closing phase, once, from a fresh stack: how a host
// tells a connection's user that it has closed. It keeps the loop from waiting.
func (l *Loop) Closing(fn func()) { l.closing.add(fn) }

// closeHandle has a handle's close callback run, and counts it as open until then.
func (l *Loop) closeHandle(onClosed func()) {
	l.closing.add(func() {
		l.open--
		if onClosed != nil {
			onClosed()
		}
	})
}

// runClosing runs the close callbacks of what was closed before it began.
func (l *Loop) runClosing() { l.closing.run(l) }
