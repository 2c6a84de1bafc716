package resp

import (
	"math/rand/v2"
	"time"

	"github.com/rankd/rankd/loop/clock"
)

// A Backoff says when a client may dial one of its connections again. The loop's client and the blocking one both
// follow it. One goroutine at a time.
//
// A connection proves itself when it has answered a call and has been ready for BackoffMax. A proven connection is
// replaced at once, and the pauses start anew. Every other end is a failure: a refused dial, a failed greeting, a
// server that answers once and hangs up. The pause after a failure doubles from BackoffMin to BackoffMax, and the
// jitter cuts it by up to half. So no server can make a client connect more often than every BackoffMax/2 in the long
// run.
type Backoff struct {
	min, max time.Duration
	rand     *rand.Rand

	pause    time.Duration // the latest, before its jitter; zero: no failure since a proven connection
	retryAt  clock.Time    // no attempt before this instant
	readyAt  clock.Time    // when the present connection began to take calls
	answered bool          // the present connection has answered a call
}

// NewBackoff returns a backoff with the bounds of o, defaults filled in, that allows the first attempt
// at any time. The jitter comes from r.
func NewBackoff(o *Options, r *rand.Rand) Backoff {
	return Backoff{min: o.BackoffMin, max: o.BackoffMax, rand: r}
}

// RetryAt returns the instant before which nobody may try to connect.
func (b *Backoff) RetryAt() clock.Time { return b.retryAt }

// Ready notes that the connection takes calls from now on.
func (b *Backoff) Ready(now clock.Time) { b.readyAt = now }

// Answered notes that the connection has answered a call.
func (b *Backoff) Answered() { b.answered = true }

// Ended notes that the connection, or the attempt to make it, has ended. It sets RetryAt.
func (b *Backoff) Ended(now clock.Time) {
	proven := b.answered && now.Sub(b.readyAt) >= b.max
	b.answered = false
	if proven {
		b.pause, b.retryAt = 0, now
		return
	}
	b.pause = min(b.max, max(b.min, 2*b.pause))
	jitter := time.Duration(b.rand.Int64N(int64(b.pause/2) + 1))
	b.retryAt = now.Add(b.pause - jitter)
}
