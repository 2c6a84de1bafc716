package blocking

import (
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	respblocking "github.com/rankd/rankd/resp/blocking"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
)

// A waiter is the task.Waiter of a body that waits by blocking its goroutine. One goroutine at a
// time.
type waiter struct {
	engine   *engine
	deadline clock.Time         // of the node that runs; zero: none
	cancel   *task.Cancellation // of the node that runs
	batch    resp.Batch
	replies  respblocking.ReplyBuffer
	part     resp.Replies // for Next
}

// takeWaiter returns a waiter with the buffers of an earlier use; freeWaiter takes
// it back when no body has it any more.
func (e *engine) takeWaiter() *waiter {
	if w, ok := e.waiters.Get().(*waiter); ok {
		return w
	}
	return &waiter{engine: e}
}

func (e *engine) freeWaiter(w *waiter) { e.waiters.Put(w) }

// NewBatch implements task.Waiter.
func (w *waiter) NewBatch() *resp.Batch {
	w.batch.Reset()
	w.part = resp.Replies{}
	return &w.batch
}

// Do implements task.Waiter.
func (w *waiter) Do(ep *registry.Endpoint, b *resp.Batch) (resp.Replies, error) {
	client := w.engine.clients[ep.Index]
	if client == nil {
		return resp.Replies{}, scheduler.NoClientError(ep)
	}
	return client.Exchange(b, w.deadline, &w.replies)
}

// Begin implements task.Waiter. It waits for all replies.
func (w *waiter) Begin(ep *registry.Endpoint, b *resp.Batch) (err error) {
	w.part, err = w.Do(ep, b)
	return err
}

// Next implements task.Waiter. All replies are one part.
func (w *waiter) Next() (from int, part resp.Replies, err error) {
	part, w.part = w.part, resp.Replies{}
	return 0, part, nil
}

// Sleep implements task.Waiter.
func (w *waiter) Sleep(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-w.cancel.Done():
		return task.ErrCancelled
	}
}
