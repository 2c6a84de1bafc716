package blocking

import (
	"context"
	"time"

	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	respblocking "github.com/rankd/rankd/resp/blocking"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// A waiter is the taskrun.Waiter of a body that waits by blocking its goroutine. One goroutine at a
// time.
type waiter struct {
	engine   *engine
	job      *job // whose body it is
	batch    resp.Batch
	replies  respblocking.ReplyBuffer
	reads    *task.Reads  // of its bodies, one after the other; nil before the first that asks
	part     resp.Replies // for Next
	endpoint int          // of the call under way, if it is recorded
}

// takeWaiter returns a waiter for the body of j, with the buffers of an earlier use; freeWaiter takes
// it back when no body has it any more.
func (e *engine) takeWaiter(j *job) *waiter {
	w, ok := e.waiters.Get().(*waiter)
	if !ok {
		w = &waiter{engine: e}
	}
	if w.job = j; j.waits != nil {
		w.replies.Watch = w
	}
	return w
}

func (e *engine) freeWaiter(w *waiter) {
	w.job, w.replies.Watch = nil, nil
	e.waiters.Put(w)
}

// journal returns what takes down the waits of the body, and the index of its node.
func (w *waiter) journal() (*trace.Journal, int) { return w.job.waits, w.job.Ctx.Node.Index }

// NewBatch implements taskrun.Waiter.
func (w *waiter) NewBatch() *resp.Batch {
	w.batch.Reset()
	w.part = resp.Replies{}
	return &w.batch
}

// Do implements taskrun.Waiter.
func (w *waiter) Do(ep *registry.Endpoint, b *resp.Batch) (resp.Replies, error) {
	client := (*w.engine.endpoints.Load())[ep.Index].redis
	if client == nil {
		return resp.Replies{}, scheduler.NoClientError(registry.Redis, ep)
	}
	w.endpoint = ep.Index
	journal, node := w.journal()
	journal.Wait(node, trace.ForRedis, b.Len(), 0)
	defer journal.Resume(node)
	return client.Exchange(b, w.job.Deadline, &w.replies)
}

// Begin implements taskrun.Waiter. It waits for all replies.
func (w *waiter) Begin(ep *registry.Endpoint, b *resp.Batch) (err error) {
	w.part, err = w.Do(ep, b)
	return err
}

// Next implements taskrun.Waiter. All replies are one part.
func (w *waiter) Next() (from int, part resp.Replies, err error) {
	part, w.part = w.part, resp.Replies{}
	return 0, part, nil
}

// Exchange implements taskrun.Waiter. It blocks.
func (w *waiter) Exchange(ep *registry.Endpoint, x *remote.Exchange) error {
	client := (*w.engine.endpoints.Load())[ep.Index].service
	if client == nil {
		return scheduler.NoClientError(registry.HTTP, ep)
	}
	var watch remote.Watch
	journal, node := w.journal()
	if w.endpoint = ep.Index; journal != nil {
		watch = w
	}
	journal.Wait(node, trace.ForHTTP, 1, 0)
	defer journal.Resume(node)
	return client.Exchange(cancellable{context.Background(), &w.job.cancel}, x, w.job.Deadline, watch)
}

// cancellable is a context that is done once the body is cancelled.
type cancellable struct {
	context.Context
	cancel *taskrun.Cancellation
}

// Done implements context.Context.
func (a cancellable) Done() <-chan struct{} { return a.cancel.Done() }

// Err implements context.Context.
func (a cancellable) Err() error {
	if a.cancel.Cancelled() {
		return context.Canceled
	}
	return nil
}

// Sent implements resp.Watch.
func (w *waiter) Sent(conn, n, bytes int, at clock.Time) {
	journal, node := w.journal()
	journal.Sent(node, w.endpoint, conn, n, bytes, at)
}

// Replied implements resp.Watch.
func (w *waiter) Replied(conn, n, bytes int) {
	journal, node := w.journal()
	journal.Replied(node, w.endpoint, conn, n, bytes, 0)
}

// Sleep implements taskrun.Waiter.
func (w *waiter) Sleep(d time.Duration) error {
	journal, node := w.journal()
	if journal == nil {
		return w.job.cancel.Sleep(d)
	}
	due := w.engine.given.Clock.Now().Add(d)
	journal.Wait(node, trace.ForTimer, 0, due)
	defer journal.Resume(node)
	err := w.job.cancel.Sleep(d)
	if err == nil {
		journal.Fired(node, trace.ForTimer, due)
	}
	return err
}

// Await implements taskrun.Waiter.
func (w *waiter) Await(fn func() error) error {
	journal, node := w.journal()
	journal.Wait(node, trace.ForFunction, 0, 0)
	defer journal.Resume(node)
	return w.engine.awaits.Block(fn, &w.job.cancel)
}
