package reactor

// logger forwards gnet's warnings and errors, or drops them. It never ends the process,
// unlike gnet's own logger at Fatalf. Any goroutine.
type logger struct {
	logf func(format string, args ...any)
}

func (l logger) log(format string, args []any) {
	if l.logf != nil {
		l.logf(format, args...)
	}
}

func (l logger) Debugf(string, ...any)             {}
func (l logger) Infof(string, ...any)              {}
func (l logger) Warnf(format string, args ...any)  { l.log(format, args) }
func (l logger) Errorf(format string, args ...any) { l.log(format, args) }
func (l logger) Fatalf(format string, args ...any) { l.log(format, args) }
