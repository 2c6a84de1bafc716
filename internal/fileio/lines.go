package fileio

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// linesWaitMax bounds the lines that wait for the log to be written.
const linesWaitMax = 64

// Lines writes the lines of a log that strangers can cause, but only so many a second. The lines go through a Queue: a
// logger may wait for its reader, but the loop must not. A line says how many before it were left out. Any goroutine.
type Lines struct {
	now     func() time.Time
	dropped func() // called for each line that is left out
	limiter *rate.Limiter
	queue   *Queue[line]

	mu     sync.Mutex
	silent int // lines left out since the latest line; guarded by mu
}

// line is one line. Immutable.
type line struct {
	level   slog.Level
	message string
	attrs   func() []slog.Attr
	silent  int // lines before it that were left out
}

// NewLines returns Lines for a logger. dropped may be nil.
func NewLines(logger *slog.Logger, perSecond int, now func() time.Time, dropped func()) *Lines {
	return &Lines{
		now: now, dropped: dropped, limiter: rate.NewLimiter(rate.Limit(perSecond), perSecond),
		queue: NewQueue(linesWaitMax, func(l line) {
			attrs := l.attrs()
			if l.silent > 0 {
				attrs = append(attrs, slog.Int("unlogged", l.silent))
			}
			logger.LogAttrs(context.Background(), l.level, l.message, attrs...)
		}),
	}
}

// Put writes a line, unless there are too many, and reports whether it does. It never waits. attrs is called on another goroutine, and
// returns a slice that nobody else uses.
func (l *Lines) Put(level slog.Level, message string, attrs func() []slog.Attr) bool {
	allowed := l.limiter.AllowN(l.now(), 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if allowed && l.queue.Add(1, func() line { return line{level, message, attrs, l.silent} }) {
		l.silent = 0
		return true
	}
	l.silent++
	if l.dropped != nil {
		l.dropped()
	}
	return false
}

// Flush waits until the logger has all lines. The error is the cause of ctx if ctx ended first.
func (l *Lines) Flush(ctx context.Context) error { return l.queue.Flush(ctx) }
