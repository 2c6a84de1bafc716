package scheduler

import (
	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// Remote asks the service behind one endpoint of kind http: a *remote.Client, or a simulated one. Each method says who
// may call it.
type Remote interface {
	// Do begins a call, which ends by its Done unless Do returns an error. Loop only.
	Do(c *remote.Call) error
	// Cancel ends a call early, by the contract of loop.ErrCancelled. Loop only.
	Cancel(c *remote.Call) error
	// Close ends the calls under way and refuses later ones. Loop only.
	Close()
	// Stats returns the counters as they are now. Loop only.
	Stats() remote.Stats
}

// remoteWait is the call to a service for which a loopBody waits; it makes one at a time. Loop only.
type remoteWait struct {
	client Remote // has the call; nil: not under way
	call   remote.Call
}

// Exchange implements taskrun.Waiter. It suspends the code until the call has ended. Until then a goroutine off the
// loop may use everything that the functions of x refer to.
func (b *loopBody) Exchange(ep *registry.Endpoint, x *remote.Exchange) error {
	if b.cancelled {
		return task.ErrCancelled
	}
	b.dropCall()
	client := b.engine.endpoints[ep.Index].service
	if client == nil {
		return NoClientError(registry.HTTP, ep)
	}
	if b.remote == nil {
		b.remote = new(remoteWait)
		b.remote.call.Done = func(*remote.Call) { b.exchanged() }
	}
	call := &b.remote.call
	call.Exchange, call.Deadline, call.Watch = x, b.job.deadline, nil
	if b.journal != nil {
		b.endpoint, call.Watch = ep.Index, serviceWatch{b}
	}
	if err := client.Do(call); err != nil {
		return err
	}
	b.remote.client = client
	b.journal.Wait(b.index, trace.ForHTTP, 1, 0)
	if !b.co.suspend() {
		return task.ErrCancelled
	}
	return call.Err
}

// exchanged resumes the code when its call to a service has ended.
func (b *loopBody) exchanged() {
	b.remote.client, b.remote.call.Exchange = nil, nil
	if b.remote.call.Err != nil {
		b.journal.Enter()
	}
	b.wake()
}

// serviceWatch notes in the journal of a body's request how its call proceeds.
type serviceWatch struct{ body *loopBody }

// Sent implements remote.Watch.
func (s serviceWatch) Sent(number, requests, bytes int, at clock.Time) {
	s.body.Sent(number, requests, bytes, at)
}

// Replied implements remote.Watch. It reads the clock, because the loop may have worked for other requests in
// between.
func (s serviceWatch) Replied(number, requests, bytes int) {
	s.body.journal.Replied(s.body.index, s.body.endpoint, number, requests, bytes, 0)
}

// cancel ends a call to a service whose answer nobody wants any more.
func (w *remoteWait) cancel() {
	if w != nil && w.client != nil {
		_ = w.client.Cancel(&w.call) // The error says that its end is due.
	}
}
