package remote

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
)

// Blocking asks one service for engines that block. Any goroutine.
type Blocking struct {
	clock   clock.Clock
	service *Service
	numbers chan int // free numbers of requests
	waiting atomic.Int64
	closing context.Context // done once it is closed
	close   context.CancelCauseFunc
}

// NewBlocking returns a client that has not connected yet. Deadlines are instants on clk, which must run in real
// time.
func NewBlocking(clk clock.Clock, o Options) *Blocking {
	o = o.withDefaults()
	b := &Blocking{clock: clk, service: newService(o), numbers: make(chan int, o.atOnce())}
	b.closing, b.close = context.WithCancelCause(context.Background())
	for n := range o.atOnce() {
		b.numbers <- n
	}
	return b
}

// Exchange makes one request and waits for its end. It ends at the deadline (zero: none), after RequestTimeout, or
// with loop.ErrCancelled when caller is done. The wait for other requests counts. watch may be nil.
func (b *Blocking) Exchange(caller context.Context, x *Exchange, deadline clock.Time, watch Watch) error {
	now := b.clock.Now()
	switch {
	case b.closing.Err() != nil:
		return context.Cause(b.closing)
	case deadline.Passed(now):
		return b.service.late(true, nil)
	}
	if err := b.service.paused(now); err != nil {
		return err
	}
	b.service.count(func(s *Stats) { s.Calls++ })
	err := b.exchange(caller, x, now.Add(b.service.opts.RequestTimeout).Earlier(deadline), deadline, watch)
	b.service.count(func(s *Stats) { s.ended(err) })
	return err
}

func (b *Blocking) exchange(caller context.Context, x *Exchange, by, deadline clock.Time, watch Watch) error {
	ctx, cancel := context.WithCancelCause(caller)
	defer cancel(nil)
	defer context.AfterFunc(b.closing, func() { cancel(context.Cause(b.closing)) })()
	defer time.AfterFunc(by.Sub(b.clock.Now()), func() { cancel(b.service.late(by == deadline, nil)) }).Stop()
	number, err := b.takeNumber(ctx)
	if err == nil {
		defer func() { b.numbers <- number }()
		now := b.clock.Now()
		if err := b.service.paused(now); err != nil {
			return err
		}
		if watch != nil {
			watch.Sent(number, 1, 0, now)
		}
		var received int
		x.Left = by.Sub(now)
		received, err = b.service.exchange(ctx, x)
		b.service.heed(err, b.clock.Now())
		if watch != nil && received > 0 {
			watch.Replied(number, 1, received)
		}
	}
	if errors.Is(err, context.Canceled) { // the caller's, since all other causes are errors of this package
		err = b.service.opError(loop.ErrCancelled, nil)
	}
	return err
}

// takeNumber waits until a request may leave.
func (b *Blocking) takeNumber(ctx context.Context) (int, error) {
	select {
	case number := <-b.numbers:
		return number, nil
	default:
	}
	if b.waiting.Add(1) > int64(b.service.opts.MaxWaiting) {
		b.waiting.Add(-1)
		return 0, b.service.opError(ErrQueueFull, nil)
	}
	defer b.waiting.Add(-1)
	select {
	case number := <-b.numbers:
		return number, nil
	case <-ctx.Done():
		cause := context.Cause(ctx)
		if late := (*OpError)(nil); errors.As(cause, &late) && errors.Is(cause, ErrTimeout) {
			cause = b.service.late(errors.Is(cause, ErrDeadline), queuedBehind(cap(b.numbers)))
		}
		return 0, cause
	}
}

// Close ends the calls under way with ErrClosed and refuses later ones. A second Close does nothing.
func (b *Blocking) Close() {
	b.close(b.service.opError(ErrClosed, nil))
	b.service.transport.CloseIdleConnections()
}

// Stats returns the counters as they are now.
func (b *Blocking) Stats() Stats {
	s := b.service.counted()
	s.Inflight, s.Waiting = cap(b.numbers)-len(b.numbers), int(b.waiting.Load())
	return s
}
