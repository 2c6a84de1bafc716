package remote

import (
	"context"
	"errors"

	"github.com/rankd/rankd/internal/list"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
)

// A Carrier makes the requests of a Client off the loop: on goroutines through net/http, or in a simulation. Loop only.
type Carrier interface {
	// Carry begins a request, and calls back exactly once when it has ended: on the loop, never inside Carry or
	// cancel. After cancel the request soon ends: with the cause, unless it has succeeded. The Carrier calls the
	// functions of x before it calls back.
	Carry(x *Exchange, back func(received int, err error)) (cancel func(cause error))
}

// onGoroutines carries each request on a goroutine of its own.
type onGoroutines struct {
	loop    *loop.Loop
	service *Service
}

// Carry implements Carrier. It calls back whatever the functions of x do.
func (g onGoroutines) Carry(x *Exchange, back func(received int, err error)) (cancel func(cause error)) {
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		received, err := 0, errGoexit
		defer func() {
			g.loop.Post(func() { back(received, err) }) // Only a stopped loop refuses, and nobody waits there.
		}()
		received, err = g.service.exchange(ctx, x)
	}()
	return cancel
}

// A Client asks one service for a loop, and never blocks it. Loop only.
//
//	Do ──▶ waiting in line ──launch──▶ on its way ──the goroutine posts──▶ Done
//	             │                         │
//	             │                         └── timeout, Cancel, Close: its request is cancelled ─┐
//	             └──────────────────────────── timeout, Cancel, Close ──▶ Done(err)       post ──┴─▶ Done(err)
type Client struct {
	loop     *loop.Loop
	service  *Service
	carrier  Carrier
	waiting  list.List[Call] // in the order of their Do
	inFlight list.List[Call]
	taken    []bool // numbers of the calls on their way

	// One timer serves all calls. It fires no later than the first instant at which a call may be late.
	timer  *loop.Timer
	closed bool
}

// NewClient returns a client that has not connected yet. A nil carrier means net/http.
func NewClient(l *loop.Loop, carrier Carrier, o Options) *Client {
	o = o.withDefaults()
	c := &Client{loop: l, service: newService(o), taken: make([]bool, o.atOnce())}
	if c.carrier = carrier; carrier == nil {
		c.carrier = onGoroutines{l, c.service}
	}
	c.timer = l.NewTimer(c.tick)
	return c
}

// Do begins the call and invokes call.Done when it has ended. If Do returns an error (ErrClosed, ErrQueueFull, ErrPaused, or
// ErrTimeout for a deadline that has passed), nothing was sent and Done is not invoked. Do panics if the call is under
// way already.
func (c *Client) Do(call *Call) error {
	if call.state != idle {
		panic("remote: the call is under way already")
	}
	now := c.loop.Now()
	switch {
	case c.closed:
		return c.service.opError(ErrClosed, nil)
	case call.Deadline.Passed(now):
		return c.service.late(true, nil)
	case c.waiting.Len() >= c.service.opts.MaxWaiting:
		return c.service.opError(ErrQueueFull, nil)
	}
	if err := c.service.paused(now); err != nil {
		return err
	}
	call.Err, call.by = nil, now.Add(c.service.opts.RequestTimeout).Earlier(call.Deadline)
	c.service.count(func(s *Stats) { s.Calls++ })
	call.state = waiting
	c.waiting.Push(call, &call.place)
	c.schedule(call.by)
	c.launch()
	return nil
}

// Cancel ends the call early, under the contract of loop.ErrCancelled. If its request has left, it is cancelled; an
// answer that comes nevertheless is dropped.
func (c *Client) Cancel(call *Call) error {
	if call.state != waiting && call.state != sent {
		return loop.ErrBusy
	}
	c.end(call, c.service.opError(loop.ErrCancelled, nil))
	return nil
}

// Close ends all calls under way with ErrClosed and refuses later ones. A second Close does nothing. The owner closes
// the client before it stops the loop, on which the calls end.
func (c *Client) Close() {
	if c.closed {
		return
	}
	c.closed = true
	err := c.service.opError(ErrClosed, nil)
	for c.waiting.Len() > 0 {
		c.end(c.waiting.First(), err)
	}
	for call := c.inFlight.First(); call != nil; call = call.place.Next() {
		c.end(call, err)
	}
	c.timer.Close(nil)
	c.service.transport.CloseIdleConnections()
}

// Stats returns the counters as they are now.
func (c *Client) Stats() Stats {
	s := c.service.counted()
	s.Inflight, s.Waiting = c.inFlight.Len(), c.waiting.Len()
	return s
}

// end makes a call end with an error: a queued call as soon as the caller has returned, a call in flight when its
// goroutine has returned.
func (c *Client) end(call *Call, err error) {
	call.Err = err
	switch call.state {
	case sent:
		call.state = ending
		call.cancel(err)
	case waiting:
		c.waiting.Remove(&call.place)
		call.state = ended
		c.loop.Defer(func() { c.settle(call, err) })
	}
}

// launch sends the queued calls for which there is room. While the service asks for a pause, it ends them.
func (c *Client) launch() {
	for !c.closed && c.waiting.Len() > 0 && c.inFlight.Len() < len(c.taken) {
		call := c.waiting.First()
		if err := c.service.paused(c.loop.Now()); err != nil {
			c.end(call, err)
			continue
		}
		c.waiting.Remove(&call.place)
		c.inFlight.Push(call, &call.place)
		call.state, call.number = sent, c.takeNumber()
		call.Exchange.Left = call.by.Sub(c.loop.Now())
		if call.Watch != nil {
			call.Watch.Sent(call.number, 1, 0, c.loop.Clock().Now())
		}
		c.loop.Hold()
		call.cancel = c.carrier.Carry(call.Exchange, func(received int, err error) { c.completed(call, received, err) })
	}
}

// takeNumber returns the least number that no call in flight has.
func (c *Client) takeNumber() int {
	for n, taken := range c.taken {
		if !taken {
			c.taken[n] = true
			return n
		}
	}
	panic("remote: more calls on their way than numbers")
}

// completed ends a call whose request has ended.
func (c *Client) completed(call *Call, received int, err error) {
	c.loop.Release()
	call.cancel(nil) // It frees what the carrier has.
	c.taken[call.number] = false
	c.inFlight.Remove(&call.place)
	call.state, call.cancel = ended, nil
	c.service.heed(err, c.loop.Now())
	if c.closed && c.inFlight.Len() == 0 {
		c.service.transport.CloseIdleConnections()
	}
	if call.Watch != nil && received > 0 {
		call.Watch.Replied(call.number, 1, received)
	}
	c.launch()
	if errors.Is(call.Err, loop.ErrCancelled) {
		err = call.Err // The answer may have come meanwhile.
	}
	c.settle(call, err)
}

// settle hands a call back to its owner.
func (c *Client) settle(call *Call, err error) {
	c.service.count(func(s *Stats) { s.ended(err) })
	call.state, call.Err = idle, err
	call.Done(call)
}

// schedule makes tick run at an instant, or before.
func (c *Client) schedule(at clock.Time) {
	if !c.closed && c.timer.StartBy(at) != nil {
		c.loop.Defer(c.Close) // The loop is stopping, and nothing would end a call that waits.
	}
}

// tick ends the calls that are late, and sets the timer for the next instant.
func (c *Client) tick() {
	now := c.loop.Now()
	for _, calls := range [...]*list.List[Call]{&c.waiting, &c.inFlight} {
		for call := calls.First(); call != nil; {
			next := call.place.Next() // end takes a waiting call out of the list.
			switch {
			case call.state == ending:
			case !call.by.Passed(now):
				c.schedule(call.by)
			case call.state == waiting:
				c.end(call, c.service.late(call.by == call.Deadline, queuedBehind(c.inFlight.Len())))
			default:
				c.end(call, c.service.late(call.by == call.Deadline, nil))
			}
			call = next
		}
	}
}
