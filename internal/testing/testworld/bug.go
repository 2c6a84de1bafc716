package testworld

import (
	"context"
	"sync/atomic"
)

// A Bug is a deliberate one in what a program gives an engine: an error, or a context, one of whose uses panics. Any goroutine.
type Bug struct {
	left  atomic.Int64
	fired atomic.Bool
}

// Arm makes the n-th use from now on panic, and returns b.
func (b *Bug) Arm(n int) *Bug {
	b.fired.Store(false)
	b.left.Store(int64(n))
	return b
}

// Fired reports whether a use has panicked since Arm.
func (b *Bug) Fired() bool { return b.fired.Load() }

func (b *Bug) use() {
	if b.left.Add(-1) == 0 {
		b.fired.Store(true)
		panic("a deliberate bug")
	}
}

// Error implements error.
func (b *Bug) Error() string { b.use(); return "an error with a bug" }

// Is is a use: errors.Is calls it.
func (b *Bug) Is(error) bool { b.use(); return false }

// As is a use: errors.As calls it.
func (b *Bug) As(any) bool { b.use(); return false }

// Unwrap is a use: errors.Is calls it.
func (b *Bug) Unwrap() error { b.use(); return nil }

// Context returns a context that never ends, whose Err is a use.
func (b *Bug) Context(parent context.Context) context.Context { return &buggy{parent, b} }

type buggy struct {
	context.Context
	bug *Bug
}

func (c *buggy) Err() error { c.bug.use(); return nil }
