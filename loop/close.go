package loop

// Closing has fn run in the closing phase, once, from a fresh stack. A host tells the user
// of a connection of its end this way. The next poll does not wait.
func (l *Loop) Closing(fn func()) { l.closing.add(fn) }

// closeHandle has a handle's close callback run. The handle counts as open until then.
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
