package blocking

import (
	"context"
	"time"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/remote"
	"github.com/rankd/rankd/resp"
	respblocking "github.com/rankd/rankd/resp/blocking"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/trace"
)

// A waiter is the taskrun.Waiter of a body that waits by blocking its goroutine. One goroutine at a
// time.
type waiter struct {
	engine   *engine
	deadline clock.Time            // of the node that runs; zero: none
	cancel   *taskrun.Cancellation // of the node that runs
	batch    resp.Batch
	replies  respblocking.ReplyBuffer
	part     resp.Replies // for Next

	recorder *trace.Recorder // of the body; nil: nobody records the request
	node     int             // index of the node that runs, if it is recorded
	endpoint int             // of the call under way, if it is recorded
}

// takeWaiter returns a waiter with the buffers of an earlier use; freeWaiter takes
// it back when no body has it any more.
func (e *engine) takeWaiter() *waiter {
	if w, ok := e.waiters.Get().(*waiter); ok {
		return w
	}
	return &waiter{engine: e}
}

func (e *engine) freeWaiter(w *waiter) {
	w.record(nil, 0)
	e.waiters.Put(w)
}

// record has the recorder see what the node waits for, from now on. It may be nil.
func (w *waiter) record(r *trace.Recorder, node int) {
	w.recorder, w.node, w.replies.Watch = r, node, nil
	if r != nil {
		w.replies.Watch = w
	}
}

// NewBatch implements taskrun.Waiter.
func (w *waiter) NewBatch() *resp.Batch {
	w.batch.Reset()
	w.part = resp.Replies{}
	return &w.batch
}

// Do implements taskrun.Waiter.
func (w *waiter) Do(ep *registry.Endpoint, b *resp.Batch) (resp.Replies, error) {
	client := w.engine.clients[ep.Index]
	if client == nil {
		return resp.Replies{}, scheduler.NoClientError(ep)
	}
	if w.recorder == nil {
		return client.Exchange(b, w.deadline, &w.replies)
	}
	w.endpoint = ep.Index
	w.recorder.Await(w.node, b.Len())
	defer w.recorder.Resume(w.node)
	return client.Exchange(b, w.deadline, &w.replies)
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
	client := w.engine.remotes[ep.Index]
	if client == nil {
		return scheduler.NoRemoteError(ep)
	}
	asker := asker{context.Background(), w.cancel}
	if w.recorder == nil {
		return client.Exchange(asker, x, w.deadline, nil)
	}
	w.endpoint = ep.Index
	w.recorder.AwaitHTTP(w.node)
	defer w.recorder.Resume(w.node)
	return client.Exchange(asker, x, w.deadline, w)
}

// asker is a context that is done once the body is cancelled.
type asker struct {
	context.Context
	cancel *taskrun.Cancellation
}

// Done implements context.Context.
func (a asker) Done() <-chan struct{} { return a.cancel.Done() }

// Err implements context.Context.
func (a asker) Err() error {
	if a.cancel.Cancelled() {
		return context.Canceled
	}
	return nil
}

// Sent implements resp.Watch.
func (w *waiter) Sent(conn, n, bytes int, at clock.Time) {
	w.recorder.Sent(w.node, w.endpoint, conn, n, bytes, at)
}

// Replied implements resp.Watch.
func (w *waiter) Replied(conn, n, bytes int) {
	w.recorder.Replied(w.node, w.endpoint, conn, n, bytes, 0)
}

// Sleep implements taskrun.Waiter.
func (w *waiter) Sleep(d time.Duration) error {
	due := w.engine.clock.Now().Add(d)
	if w.recorder != nil {
		w.recorder.AwaitTimer(w.node, due)
		defer w.recorder.Resume(w.node)
	}
	err := w.cancel.Sleep(d)
	if w.recorder != nil && err == nil {
		w.recorder.Fired(w.node, true, due)
	}
	return err
}

// Await implements taskrun.Waiter.
func (w *waiter) Await(fn func() error) error {
	if w.recorder != nil {
		w.recorder.AwaitFunction(w.node)
		defer w.recorder.Resume(w.node)
	}
	return w.engine.awaits.Block(fn, w.cancel)
}
