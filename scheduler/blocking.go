package scheduler

import (
	"errors"
	"sync"
	"time"

	"github.com/rankd/rankd/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// blocking is what engines without a loop share: they run a node's synchronous
// body on a goroutine and block it where the body waits. Any goroutine.
type blocking struct {
	reg         *registry.Registry
	clients     []*resp.SyncClient // by endpoint index; nil where the endpoint is no Redis
	clock       clock.Clock        // at the pace of real time
	nodeTimeout time.Duration

	stopped chan struct{} // closed by giveUp
	gaveUp  sync.Once
}

// giveUp makes sleeps and Redis calls fail, now and from now on.
func (b *blocking) giveUp() {
	b.gaveUp.Do(func() { close(b.stopped) })
	b.closeClients()
}

func (b *blocking) closeClients() {
	for _, c := range b.clients {
		if c != nil {
			c.Close()
		}
	}
}

// run runs one node on this goroutine, within its effective deadline as far as
// a body that blocks allows: what comes after it is late, whatever it is.
func (b *blocking) run(s *State, req *Request, node *plan.Node, w *blockingWaiter,
	inputs, refs []rowset.RowSet) (rowset.RowSet, error) {
	start := b.clock.Now()
	w.deadline = effectiveDeadline(start, s.deadline, b.nodeTimeout, node)
	if w.deadline.Passed(start) {
		return rowset.RowSet{}, s.late(ErrDeadlineBeforeStart, start, w.deadline)
	}
	cancel := new(task.Cancellation)
	if w.deadline != 0 {
		defer time.AfterFunc(w.deadline.Sub(start), cancel.Cancel).Stop()
	}
	spec := task.SpecOf(node)
	out, err := task.Invoke(spec, spec.Run, &task.Ctx{
		Node: node, Inputs: inputs, Refs: refs, UserID: req.UserID, Params: &req.Params,
		Registry: b.reg, Waiter: w, Cancellation: cancel,
	})
	if now := b.clock.Now(); w.deadline.Passed(now) {
		return rowset.RowSet{}, &TimeoutError{Kind: ErrNodeTimeout, Elapsed: now.Sub(start), Limit: w.deadline.Sub(start)}
	}
	if errors.Is(err, resp.ErrClosed) {
		err = ErrShuttingDown
	}
	return out, err
}

func (b *blocking) newWaiter() *blockingWaiter {
	return &blockingWaiter{engine: b}
}

// blockingWaiter waits by blocking its goroutine. One goroutine at a time.
type blockingWaiter struct {
	engine   *blocking
	deadline clock.Time // of the node that runs; zero: none
	batch    resp.Batch
	replies  resp.ReplyBuffer
}

// NewBatch implements task.Waiter.
func (w *blockingWaiter) NewBatch() *resp.Batch {
	w.batch.Reset()
	return &w.batch
}

// Do implements task.Waiter.
func (w *blockingWaiter) Do(ep *registry.Endpoint, b *resp.Batch) (resp.Replies, error) {
	client := w.engine.clients[ep.Index]
	if client == nil {
		return resp.Replies{}, errNoClient(ep)
	}
	return client.Exchange(b, w.deadline, &w.replies)
}

// Sleep implements task.Waiter. It ends at the node's deadline.
func (w *blockingWaiter) Sleep(d time.Duration) error {
	if w.deadline != 0 {
		d = min(d, max(0, w.deadline.Sub(w.engine.clock.Now())))
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-w.engine.stopped:
		return ErrShuttingDown
	}
}
