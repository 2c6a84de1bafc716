// Package clock is the one source of time. Every component that needs the
// time is given a Clock when it is built, so that a test or a simulation can
// hold time still and move it by hand.
//
// A deadline is a Time (an instant), a timeout is a time.Duration.
package clock

import (
	"sync/atomic"
	"time"
)

// Time is an instant on a monotonic clock, in nanoseconds since the clock's
// own origin. Zero is never a real instant and means "none".
type Time int64

// Never lies after every real instant.
const Never Time = 1<<63 - 1

// Add returns t moved by d, clamped to Never on overflow. A zero ("none") or
// Never t is returned unchanged.
func (t Time) Add(d time.Duration) Time {
	if t == 0 || t == Never {
		return t
	}
	u := t + Time(d)
	if d > 0 && u < t {
		return Never
	}
	return u
}

// Sub returns the duration t-u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Earlier returns the earlier of two deadlines, either of which may be zero
// for "none".
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
	// Now returns the current instant; it never goes backwards and is never 0.
	Now() Time
}

// Real reads the machine's monotonic clock. Any goroutine; immutable once built.
type Real struct{ origin time.Time }

// NewReal returns a clock whose origin is one second ago.
func NewReal() *Real { return &Real{origin: time.Now().Add(-time.Second)} }

// Now implements Clock.
func (c *Real) Now() Time { return Time(time.Since(c.origin)) }

// Manual is a clock that moves only when told. Any goroutine.
type Manual struct{ now atomic.Int64 }

// NewManual returns a clock that stands at one second past its origin.
func NewManual() *Manual {
	c := new(Manual)
	c.now.Store(int64(time.Second))
	return c
}

// Now implements Clock.
func (c *Manual) Now() Time { return Time(c.now.Load()) }

// Advance moves the clock forward by d.
func (c *Manual) Advance(d time.Duration) { c.now.Add(int64(d)) }
