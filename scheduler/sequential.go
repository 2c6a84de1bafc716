package scheduler

import (
	"sync"
	"time"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// Sequential is the engine to compare with: each request on a goroutine of its
// own, one node at a time, in the order in which nodes become ready, blocking
// where it waits. Requests share one blocking connection per endpoint. Any goroutine.
type Sequential struct {
	reg     *registry.Registry
	clients []*resp.SyncClient // by endpoint index; nil where the endpoint is no Redis

	mu      sync.Mutex
	closing bool
	live    sync.WaitGroup // requests in flight; Add only under mu while not closing
}

// NewSequential returns a sequential engine. It closes the clients in the end.
func NewSequential(reg *registry.Registry, clients []*resp.SyncClient) *Sequential {
	return &Sequential{reg: reg, clients: clients}
}

// Submit implements Engine.
func (e *Sequential) Submit(req *Request, done func(*Result)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing {
		go done(&Result{Err: ErrShuttingDown})
		return
	}
	e.live.Add(1)
	go func() {
		defer e.live.Done()
		done(e.execute(req))
	}()
}

// Close implements Engine.
func (e *Sequential) Close() {
	e.mu.Lock()
	first := !e.closing
	e.closing = true
	e.mu.Unlock()
	e.live.Wait()
	if first {
		for _, c := range e.clients {
			if c != nil {
				c.Close()
			}
		}
	}
}

func (e *Sequential) execute(req *Request) *Result {
	var s State
	var deltas []SchemaDelta
	if req.Trace {
		deltas = make([]SchemaDelta, len(req.Graph.Nodes))
	}
	s.Reset(req.Graph)
	waiter := &blockingWaiter{clients: e.clients}
	for i, ok := s.Next(); ok; i, ok = s.Next() {
		node := req.Graph.Nodes[i]
		inputs, refs := s.Gather(i, nil, nil)
		out, err := runBlocking(req, node, e.reg, waiter, inputs, refs)
		if err != nil {
			s.Fail(i, err)
			continue
		}
		if deltas != nil {
			deltas[i] = schemaDelta(node, inputs, refs, out)
		}
		s.Succeed(i, out)
	}
	result := s.outputs()
	if result.Err == nil {
		result.Deltas = deltas
	}
	return result
}

// runBlocking runs the synchronous body of one node on this goroutine.
func runBlocking(req *Request, node *plan.Node, reg *registry.Registry, w *blockingWaiter,
	inputs, refs []rowset.RowSet) (rowset.RowSet, error) {
	spec := task.SpecOf(node)
	return task.Invoke(spec, spec.Run, &task.Ctx{
		Node: node, Inputs: inputs, Refs: refs,
		UserID: req.UserID, Params: &req.Params, Registry: reg, Waiter: w,
	})
}

// blockingWaiter waits by blocking its goroutine. One goroutine at a time.
type blockingWaiter struct {
	clients []*resp.SyncClient
	batch   resp.Batch
	replies resp.ReplyBuffer
}

// NewBatch implements task.Waiter.
func (w *blockingWaiter) NewBatch() *resp.Batch {
	w.batch.Reset()
	return &w.batch
}

// Do implements task.Waiter.
func (w *blockingWaiter) Do(ep *registry.Endpoint, b *resp.Batch) (resp.Replies, error) {
	client := w.clients[ep.Index]
	if client == nil {
		return resp.Replies{}, errNoClient(ep)
	}
	return client.Exchange(b, 0, &w.replies)
}

// Sleep implements task.Waiter.
func (w *blockingWaiter) Sleep(d time.Duration) error {
	time.Sleep(d)
	return nil
}
