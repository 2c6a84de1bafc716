package scheduler

import (
	"sync"
	"time"

	"github.com/rankd/rankd/internal/list"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/reactor"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// Async is the asynchronous engine: it drives any number of requests on one loop. Its state is
// loop only. Any goroutine may call Submit, Post, Close, Clock, Reactor and Metrics.
type Async struct {
	loop        *loop.Loop
	reactor     *reactor.Reactor // hosts loop if OpenAsync started it; otherwise nil
	cpu         CPU
	reg         *registry.Registry
	given       taskrun.Engine              // for bodies
	endpoints   []endpoint                  // by their index
	kept        map[*registry.Endpoint]bool // see Keep; nil: all
	connect     func(ep *registry.Endpoint) // makes what an endpoint needs; nil: the owner has given the engine everything
	nodeTimeout time.Duration
	maxRows     int // of a request
	outside     task.Outside
	awaits      Awaits
	memory      *rowset.Pool
	placement   Placement
	policy      policy        // of requests without a mode of their own
	patience    time.Duration // see due
	inliner     inliner
	journals    *trace.Journals
	left        clock.Time // when the loop left the request that it has just worked for; zero: that one is not recorded

	// The engine learns these from the plans that ran.
	profiles     map[*plan.Graph]*profile
	forgotten    map[string]*tally  // the sums of forgotten ones, by name of the plan; "" has those of many names
	forgottenOps map[string]OpStats // of the same

	admission   Admission
	admitting   bool   // admitNext is deferred
	admitNextFn func() // the method admitNext, bound once

	runs    list.List[run]      // requests in flight
	orphans list.List[asyncJob] // settled nodes whose body has not ended

	watchdog *watchdog // nil: nobody checks whether the loop is stuck
	closing  bool
	over     bool // no request begins any more: the grace is over, or none was left
	grace    *loop.Timer
	graceEnd clock.Time    // when grace fires; zero: not armed
	drained  chan struct{} // closed when closing and nothing is left
	ended    bool          // drained is closed
	closed   sync.Once
	release  func() // ends loop and pool if OpenAsync started them; otherwise nil

	// The free lists keep state, batches and coroutines of a request warm for the next one.
	freeWaits freeList[waitTimer]
	freeRuns  freeList[run]
	freeJobs  [2]freeList[asyncJob] // by place: onLoop or onPool
	idle      *loop.Timer           // ends free jobs on the loop; nil until there are many
}

// AsyncConfig sets an Async up. Immutable once given to NewAsync.
type AsyncConfig struct {
	Config            // without what the loop, the CPU and the clients have been given: threads, connections, replies, clock and reports
	Loop   *loop.Loop // required
	CPU    CPU        // required
	// Clients run the calls to Redis, by Endpoint.Index; nil for an endpoint that is not a Redis.
	// The engine closes them.
	Clients []Caller
	// Remotes ask the services, by Endpoint.Index; nil for an endpoint of another kind than http. The engine closes
	// them. Nil: there is none.
	Remotes []Remote
	// Go runs the functions of task.Ctx.Await. Nil means a go statement.
	Go func(fn func())
	// TraceEvents bounds the events that recorded requests in flight hold together. Zero means
	// trace.DefaultEvents.
	TraceEvents int
}

// NewAsync returns an engine on a running loop, which others may use, too.
func NewAsync(cfg AsyncConfig) *Async {
	e := &Async{
		loop: cfg.Loop, cpu: cfg.CPU, reg: cfg.Registry, nodeTimeout: cfg.NodeTimeout,
		maxRows: cfg.MaxRows, placement: cfg.Placement.withDefaults(), patience: patience, drained: make(chan struct{}),
		profiles: make(map[*plan.Graph]*profile), forgotten: make(map[string]*tally), forgottenOps: make(map[string]OpStats), journals: trace.NewJournals(cfg.Loop.Clock(), cfg.TraceEvents), memory: cfg.Memory,
	}
	if e.memory == nil {
		e.memory = rowset.NewPool(rowset.PoolConfig{})
	}
	e.given.Clock, e.given.LoopValues = cfg.Loop.Clock(), loopValuesMax
	for _, ep := range cfg.Registry.Endpoints() {
		e.add(ep)
	}
	for i, c := range cfg.Clients {
		e.endpoints[i].redis = c
	}
	for i, c := range cfg.Remotes {
		e.endpoints[i].service = c
	}
	e.policy = e.placement.policy(e.placement.Mode)
	e.awaits.Go = cfg.Go
	e.admitNextFn = e.admitNext
	e.inliner.init(e)
	e.admission.Bound(cfg.MaxInflight, cfg.MaxQueue)
	return e
}

// Clock returns the clock on which deadlines are instants. Any goroutine.
func (e *Async) Clock() clock.Clock { return e.loop.Clock() }

// Post makes fn run on the loop. If the loop has stopped, Post reports false, and fn does not run. Any goroutine.
func (e *Async) Post(fn func()) bool { return e.loop.Post(fn) }

// Close implements Engine. The loop and the pool that NewAsync was given stay with their owner, idle.
func (e *Async) Close(grace time.Duration) {
	if e.shut(grace) {
		<-e.drained
	}
	e.closed.Do(func() {
		e.cpu.WaitIdle()
		e.awaits.Wait()
		if e.release != nil {
			e.release()
		}
	})
}

// shut stops the intake, and makes the loop begin the drain. It reports false if the loop has stopped. Any goroutine.
func (e *Async) shut(grace time.Duration) bool {
	e.admission.Close()
	return e.loop.Post(func() { e.beginClose(grace) })
}

// beginClose begins the drain: requests that run or wait have until the grace ends. After several calls, the grace
// that ends first counts.
func (e *Async) beginClose(grace time.Duration) {
	if e.ended {
		return
	}
	e.closing = true
	switch {
	case !e.pending() || grace == Forever:
	case grace <= 0:
		e.giveUp()
	default:
		e.armGrace(grace)
	}
	e.checkDrained()
}

func (e *Async) armGrace(grace time.Duration) {
	if e.grace == nil {
		e.grace = e.loop.NewTimer(e.giveUp)
	}
	if end := e.loop.Clock().Now().Add(grace); e.graceEnd == 0 || end < e.graceEnd {
		e.graceEnd = end
		_ = e.grace.StartAt(end) // Only a stopped loop refuses, and it ends everything anyway.
	}
}

// giveUp fails the requests that wait and those in flight. No request ends before all nodes have settled: the end of
// the last request ends orphans.
func (e *Async) giveUp() {
	e.over = true
	e.dropWaiting()
	for _, step := range [...]func(*run){(*run).shutDown, (*run).resume} {
		for r := e.runs.First(); r != nil; {
			next := r.link.Next()
			step(r)
			r = next
		}
	}
}

// checkDrained ends the drain in three steps, each after the previous one. First no request is in flight or waits.
// Then the clients close, which fails the calls of orphans, until no orphan is left. Then Close returns. Each
// orphan's end calls checkDrained, so a call costs the same however many orphans there are.
func (e *Async) checkDrained() {
	if !e.closing || e.ended || e.pending() {
		return
	}
	e.over = true
	for i := range e.endpoints {
		e.endpoints[i].close() // fails the calls of orphans, which ends their bodies
	}
	if e.orphans.Len() > 0 {
		return // CPU work, or a wait that is about to end: each calls this again at its end
	}
	for i := range e.freeJobs {
		for _, j := range e.freeJobs[i].items {
			j.close()
		}
		e.freeJobs[i] = freeList[asyncJob]{}
	}
	for _, w := range e.freeWaits.items {
		w.timer.Close(nil)
	}
	e.freeWaits, e.freeRuns = freeList[waitTimer]{}, freeList[run]{}
	if e.grace != nil {
		e.grace.Close(nil)
	}
	if e.idle != nil {
		e.idle.Close(nil)
	}
	e.ended = true
	close(e.drained)
}
