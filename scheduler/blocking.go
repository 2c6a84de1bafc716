package scheduler

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// blocking is what the engines without a loop share: intake, drain, and
// running a node's synchronous body on a goroutine that blocks where the body
// waits. Any goroutine.
//
// Deadlines hold as far as blocking calls allow: they are checked before each node is
// spawned, at its start and at its end; sleeps and Redis calls end at them; CPU work is asked to
// stop. A body that neither waits nor looks runs on, and the answer waits for it.
type blocking struct {
	reg         *registry.Registry
	clients     []*resp.SyncPool // by endpoint index; nil where the endpoint is no Redis
	clock       clock.Clock      // at the pace of real time
	nodeTimeout time.Duration
	maxRows     int // of a request
	mode        Mode

	execute func(req *Execution, arrived clock.Time) *Result // blocks
	release func()                                           // called last by Close; may be nil

	mu      sync.Mutex
	closing bool           // guarded by mu
	live    sync.WaitGroup // requests in flight; Add only under mu while not closing
	closed  sync.Once

	waiters sync.Pool       // of *blockingWaiter that no body has: only their buffers are kept
	stopped context.Context // done when the grace is over
	giveUp  context.CancelFunc
}

// init fills in what all such engines have.
func (b *blocking) init(cfg *Config) {
	b.reg, b.clock, b.nodeTimeout, b.maxRows = cfg.Registry, cfg.Clock, cfg.NodeTimeout, cfg.MaxRows
	b.mode = cfg.Placement.Mode
	b.stopped, b.giveUp = context.WithCancel(context.Background())
	b.clients = make([]*resp.SyncPool, len(cfg.Registry.Endpoints()))
	for i, ep := range cfg.Registry.Endpoints() {
		if ep.Kind == registry.Redis {
			b.clients[i] = resp.NewSyncPool(cfg.Clock, cfg.redisOptions(ep))
		}
	}
}

// Clock returns the clock on which deadlines are instants.
func (b *blocking) Clock() clock.Clock { return b.clock }

// Submit implements Engine. Each request has a goroutine.
func (b *blocking) Submit(req *Execution, done func(*Result)) {
	if err := req.Check(b.reg); err != nil {
		go done(&Result{Err: err})
		return
	}
	arrived := req.Arrived
	if arrived == 0 {
		arrived = b.clock.Now()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closing {
		go done(&Result{Err: ErrShuttingDown})
		return
	}
	b.live.Add(1)
	go func() {
		defer b.live.Done()
		done(b.execute(req, arrived))
	}()
}

// Close implements Engine. When the grace is over sleeps and Redis calls fail, CPU work is
// asked to stop and no node starts any more, and so the requests end.
func (b *blocking) Close(grace time.Duration) {
	b.mu.Lock()
	b.closing = true
	b.mu.Unlock()
	if grace < Forever {
		defer time.AfterFunc(grace, b.endAll).Stop()
	}
	b.live.Wait()
	b.closed.Do(func() {
		b.endAll()
		if b.release != nil {
			b.release()
		}
	})
}

// endAll makes all that waits end.
func (b *blocking) endAll() {
	b.giveUp()
	b.closeClients()
}

func (b *blocking) closeClients() {
	for _, c := range b.clients {
		if c != nil {
			c.Close()
		}
	}
}

// Metrics implements Engine: the counters of the Redis clients; the rest is zero.
func (b *blocking) Metrics() Metrics {
	stats := make([]resp.Stats, len(b.clients))
	for i, c := range b.clients {
		if c != nil {
			stats[i] = c.Stats()
		}
	}
	return Metrics{Redis: stats}
}

// run runs one node on this goroutine. start is when it was spawned; rows is the request's.
func (b *blocking) run(s *State, req *Execution, node *plan.Node, start clock.Time, w *blockingWaiter,
	rows *task.RowBudget, inputs, refs []rowset.RowSet) (rowset.RowSet, error) {
	w.deadline = effectiveDeadline(start, s.deadline, b.nodeTimeout, node)
	cancel := new(task.Cancellation)
	w.cancel = cancel
	if w.deadline != 0 {
		now := b.clock.Now()
		if w.deadline.Passed(now) {
			return rowset.RowSet{}, s.late(ErrDeadlineBeforeStart, now, w.deadline)
		}
		defer time.AfterFunc(w.deadline.Sub(now), cancel.Cancel).Stop()
	}
	if b.stopped.Err() != nil {
		return rowset.RowSet{}, ErrShuttingDown
	}
	spec := task.SpecOf(node)
	defer context.AfterFunc(b.stopped, cancel.Cancel)()
	mode, limit := b.mode, 0
	if req.Mode != nil {
		mode = *req.Mode
	}
	if mode != OffloadAll {
		limit = task.Limit(req.Graph, node)
	}
	out, err := task.Invoke(spec, &task.Ctx{
		Limit: limit,
		Node:  node, Inputs: inputs, Refs: refs, UserID: req.UserID, Params: &req.Params,
		Registry: b.reg, Waiter: w, Rows: rows, Cancellation: cancel,
	})
	if w.deadline != 0 {
		if now := b.clock.Now(); w.deadline.Passed(now) {
			return rowset.RowSet{}, &TimeoutError{
				Kind: ErrNodeTimeout, Elapsed: now.Sub(start), Limit: w.deadline.Sub(start),
			}
		}
	}
	if errors.Is(err, resp.ErrClosed) || errors.Is(err, task.ErrCancelled) && b.stopped.Err() != nil {
		err = ErrShuttingDown
	}
	return out, err
}

// takeWaiter returns a waiter with the buffers of an earlier use; freeWaiter takes
// it back when no body has it any more.
func (b *blocking) takeWaiter() *blockingWaiter {
	if w, ok := b.waiters.Get().(*blockingWaiter); ok {
		return w
	}
	return &blockingWaiter{engine: b}
}

func (b *blocking) freeWaiter(w *blockingWaiter) { b.waiters.Put(w) }

// blockingWaiter waits by blocking its goroutine. One goroutine at a time.
type blockingWaiter struct {
	engine   *blocking
	deadline clock.Time         // of the node that runs; zero: none
	cancel   *task.Cancellation // of the node that runs
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

// Sleep implements task.Waiter.
func (w *blockingWaiter) Sleep(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-w.cancel.Done():
		return task.ErrCancelled
	}
}
