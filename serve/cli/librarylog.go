package cli

import (
	stdlog "log"
	"log/slog"
	"os"
	"strings"

	"golang.org/x/time/rate"
)

// A libraryLog takes the lines that libraries write of their own accord, as net/http does of a service or a client that breaks the protocol. They
// become warnings of the log, and only so many a second, because strangers can cause them. Any goroutine.
type libraryLog struct {
	logger  *slog.Logger
	limiter *rate.Limiter
}

func newLibraryLog(logger *slog.Logger, perSecond int) *libraryLog {
	return &libraryLog{logger: logger, limiter: rate.NewLimiter(rate.Limit(perSecond), perSecond)}
}

// Write implements io.Writer.
func (l *libraryLog) Write(line []byte) (int, error) {
	if l.limiter.Allow() {
		l.logger.Warn("a library reports", "line", strings.TrimSpace(string(line)))
	}
	return len(line), nil
}

// takeOver has the process's own log write here, until the caller gives it back.
func (l *libraryLog) takeOver() (giveBack func()) {
	flags := stdlog.Flags()
	stdlog.SetFlags(0)
	stdlog.SetOutput(l)
	return func() {
		stdlog.SetFlags(flags)
		stdlog.SetOutput(os.Stderr)
	}
}
