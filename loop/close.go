package loop

// Closing makes fn run once in the closing phase, on a fresh stack. A host uses it to tell the user of a connection
// that it has ended. The next poll does not wait.
func (l *Loop) Closing(fn func()) { l.closing.add(fn) }

// closeHandle makes a handle's close callback run. The handle counts as open until then.
func (l *Loop) closeHandle(onClosed func()) {
	l.closing.add(func() {
		l.open--
		if onClosed != nil {
			onClosed()
		}
	})
}

// runClosing runs the close callbacks that were queued before it began.
func (l *Loop) runClosing() { l.closing.run(l) }
