package scheduler

import (
	"errors"
	"time"

	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/internal/rowcache"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
)

// A try runs a node inline although its body may wait, because all its reads are probably in memory. The try is the
// body's Waiter, and a wait ends it. The node then runs again in a coroutine, and only the time of the try is lost.
// Only bodies of Recalls are tried.
//
// A node saves some instructions and two switches of goroutines against a coroutine (BenchmarkRequest, memory). Loop
// only.
type try struct {
	taskrun.NoWaiter
	on     bool // the node that runs is a try
	waits  bool // the body has to wait
	batch  resp.Batch
	table  *rowcache.Table // nil: the node's reads are not kept
	counts rowcache.Counts // of the table, before the body
}

// errNotInMemory ends the body of a try. Nobody else sees it.
var errNotInMemory = errors.New("not all is in memory")

// begin runs the node that in has loaded as a try.
func (t *try) begin(in *inliner) {
	env := tasks.Env(&in.job.Ctx)
	t.on, t.waits, t.table = true, false, nil
	env.Waiter, env.Engine, env.Now = t, &in.engine.givenOnLoop, in.job.Started
	if tables := env.Engine.Tables; tables != nil {
		if t.table = tables[in.job.Ctx.Node.Endpoint.Index]; t.table != nil {
			t.counts = t.table.Counts()
		}
	}
}

// end has the job of in run its next node as any other.
func (t *try) end(in *inliner) {
	env := tasks.Env(&in.job.Ctx)
	t.on, env.Waiter, env.Engine, env.Now = false, nil, &in.engine.given, 0
}

// giveUp starts the node of in in a coroutine. Its timeout counts from the start of the try.
func (t *try) giveUp(in *inliner) {
	r, tried := in.run, &in.job
	node := tried.Ctx.Node.Index
	in.spent += tried.Ended.Sub(tried.Started)
	tasks.GiveBack(&tried.Ctx)
	if t.table != nil {
		t.table.Recount(t.counts)
	}
	j := r.newJob(node, onLoop)
	r.Journal.Spawn(node, places[onLoop], in.rows)
	j.takeOver(tried)
	if r.State.timeLimited(j.node) {
		j.started = j.Started
	}
	r.launch(j)
}

// wait notes that the body has to wait.
func (t *try) wait() error {
	t.waits = true
	return errNotInMemory
}

// NewBatch implements taskrun.Waiter.
func (t *try) NewBatch() *resp.Batch {
	t.batch.Reset()
	t.batch.Shrink(keepBatchBytes)
	return &t.batch
}

// Do implements taskrun.Waiter.
func (t *try) Do(*registry.Endpoint, *resp.Batch) (resp.Replies, error) {
	return resp.Replies{}, t.wait()
}

// Begin implements taskrun.Waiter.
func (t *try) Begin(*registry.Endpoint, *resp.Batch) error { return t.wait() }

// Exchange implements taskrun.Waiter.
func (t *try) Exchange(*registry.Endpoint, *remote.Exchange) error { return t.wait() }

// Sleep implements taskrun.Waiter.
func (t *try) Sleep(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	return t.wait()
}

// Await implements taskrun.Waiter.
func (t *try) Await(func() error) error { return t.wait() }
