// Package clock, which is not covered by the compatibility promise, is the only source of time. Every
// component that needs the time gets a Clock when it is built. So a test or a simulation can stop the time
// and move it by hand.
//
// A deadline is a Time (an instant), a timeout is a time.Duration.
package clock

import (
	"sync/atomic"
	"time"
)

// Time is an instant on a monotonic clock, in nanoseconds since the clock's own origin.
// Zero means "none", and never a real instant. Immutable.
type Time int64

// First is the earliest real instant. Never is later than any real instant.
const (
	First Time = 1
	Never Time = 1<<63 - 1
)

// Add returns t moved by d, clamped to First and Never. It returns zero ("none") and Never
// unchanged.
func (t Time) Add(d time.Duration) Time {
	if t == 0 || t == Never {
		return t
	}
	u := t + Time(d)
	switch {
	case d > 0 && u < t:
		return Never
	case d < 0:
		return max(u, First)
	default:
		return u
	}
}

// Sub returns the duration t-u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Earlier returns the earlier of two deadlines. Either may be zero for "none".
func (t Time) Earlier(u Time) Time {
	switch {
	case t == 0:
		return u
	case u == 0 || t < u:
		return t
	default:
		return u
	}
}

// Passed reports whether deadline t is set and has been reached at now.
func (t Time) Passed(now Time) bool { return t != 0 && now >= t }

// A Clock tells the time. Any goroutine.
type Clock interface {
	// Now returns the current instant. It never goes backwards and is never 0.
	Now() Time
}

// Real reads the machine's monotonic clock. Any goroutine; immutable once built.
type Real struct{ origin time.Time }

// NewReal returns a clock whose origin is one second ago.
func NewReal() *Real { return &Real{origin: time.Now().Add(-time.Second)} }

// Now implements Clock.
func (c *Real) Now() Time { return Time(time.Since(c.origin)) }

// Manual is a clock that only Advance moves. It starts one second after its origin. The
// zero value works. Any goroutine.
type Manual struct{ moved atomic.Int64 }

// NewManual returns a clock that has not moved.
func NewManual() *Manual { return new(Manual) }

// Now implements Clock.
func (c *Manual) Now() Time { return Time(int64(time.Second) + c.moved.Load()) }

// Advance moves the clock forward by d.
func (c *Manual) Advance(d time.Duration) { c.moved.Add(int64(d)) }
