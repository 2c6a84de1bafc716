package scheduler

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/internal/testing/loopsim"
	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/internal/testing/simnet"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// simLab is what the worlds of many seeds share. One world uses it at a time. One goroutine.
type simLab struct {
	reg         *registry.Registry
	tasks       *task.Catalog
	workers     []*simWorker
	world       *simWorld
	inReference bool // the running body belongs to the reference
	decoder     *resp.Decoder
}

const simWorkersMax = 3

func newSimLab() (*simLab, error) {
	lab := &simLab{decoder: resp.NewDecoder(resp.Limits{})}
	tables := registrytest.BuiltIn()
	tables.Keys += simKeys
	tables.Endpoints = `
[[endpoint]]
id = "ep_0001"
name = "redis_one"
kind = "redis"
host = "one"
port = 6379
[[endpoint]]
id = "ep_0002"
name = "redis_two"
kind = "redis"
url = "unix:///run/two.sock"
[[endpoint]]
id = "ep_0003"
name = "model"
kind = "http"
url = "http://model/score"
`
	lab.reg = tables.Load()
	var err error
	if lab.tasks, err = simTasks(lab); err != nil {
		return nil, err
	}
	for range simWorkersMax {
		lab.workers = append(lab.workers, newSimWorker())
	}
	return lab, nil
}

// close ends the workers' coroutines.
func (lab *simLab) close() {
	for _, worker := range lab.workers {
		worker.co.stop()
	}
}

// simConfig says what may happen in a world. Each seed draws its own.
type simConfig struct {
	grain     time.Duration // instants are multiples of it; a coarse grain makes ties
	netMax    time.Duration // the longest latency of the network,
	serverMax time.Duration // of a server that is well,
	cpuMax    time.Duration // and of half a CPU job
	net       simnet.Config
	redis     struct {
		fault  float64 // probability of a server's fault, per command
		refuse float64 // probability that a server refuses a key
		down   int     // times that a server goes down
		tight  bool    // timeouts and limits of the clients are within reach
	}
	service struct {
		fault float64 // probability of the service's fault, per request
		tight bool    // timeouts and limits of its client are within reach
	}
	deadlines    bool // of requests
	nodeTimeout  time.Duration
	planTimeouts bool // of single nodes
	maxRows      int  // bound per request; 0: more than it makes
	taskFaults   bool
	lenient      bool    // nodes may be optional, or fail without failing the request
	popular      bool    // some bodies ask for the same
	replyBytes   int     // bound of the replies to one call; 0: larger than all of them
	persistent   bool    // some bodies retry again and again, with sleeps in between, even after Close
	watchful     bool    // some bodies on the loop look whether they are cancelled
	crowd        int     // bodies that sleep for a minute, in addition to the rest
	panics       float64 // probability that the receiver of an answer panics
	stalls       float64 // probability that a body on the loop computes for long
	lag          float64 // probability that the loop is late
	placement    Placement
	modes        float64 // probability that a request has its own mode
	hints        bool    // of nodes
	maxInflight  int     // of requests that run; 0: no bound
	maxQueue     int     // of requests that wait
	workers      int
	queueMax     int // of the CPU pool
	requests     int
	spread       time.Duration // within which they arrive
	shutdown     bool          // in the midst of the requests
	stopAtOnce   bool          // the loop stops as soon as the engine is drained, whatever is still to come
}

func (w *simWorld) drawConfig() {
	rng, c := w.rng, &w.cfg
	c.grain = []time.Duration{1, 50 * time.Microsecond, time.Millisecond}[rng.IntN(3)]
	c.netMax = w.between(0, 3*time.Millisecond)
	c.serverMax = w.between(0, time.Millisecond)
	c.cpuMax = w.between(0, 3*time.Millisecond)
	c.net.Latency = func() time.Duration { return w.between(0, c.netMax) }
	c.net.Split = 0.3 * float64(rng.IntN(3))
	c.workers, c.queueMax = 1+rng.IntN(simWorkersMax), 1<<16
	c.requests, c.spread = 4+rng.IntN(32), w.between(0, 40*time.Millisecond)
	c.placement = Placement{
		Mode: modes[rng.IntN(3)], NoInlineExecution: w.hits(0.1), NoContinuationChaining: w.hits(0.2), MaxInlineDepth: rng.IntN(4),
		InlineThreshold: w.between(0, 2*c.cpuMax), InlineBudget: w.between(0, 2*c.cpuMax),
	}
	if w.hits(0.3) {
		c.modes = 0.5
	}
	c.hints = w.hits(0.5)
	if w.hits(0.3) {
		c.stalls = 0.05
	}
	if w.hits(0.3) {
		c.lag = 0.1
	}
	c.popular = w.hits(0.4)
	if w.hits(0.15) {
		c.replyBytes = 40 + rng.IntN(400)
	}
	c.taskFaults = w.hits(0.4)
	c.stopAtOnce = w.hits(0.5)
	c.lenient = w.hits(0.5)
	if w.hits(0.15) {
		return // only what the plan says fails
	}
	if w.hits(0.5) {
		c.net.Refuse, c.net.Ignore, c.net.Loss = 0.2*rng.Float64(), 0.1*rng.Float64(), 0.05*rng.Float64()
	}
	if w.hits(0.5) {
		c.redis.fault = 0.03 * rng.Float64()
	}
	if c.lenient && w.hits(0.4) {
		c.redis.refuse = 0.1 * rng.Float64()
	}
	if w.hits(0.3) {
		c.redis.down = 1 + rng.IntN(3)
	}
	c.redis.tight = w.hits(0.4)
	if w.hits(0.4) {
		c.service.fault = 0.2 * w.rng.Float64()
	}
	c.service.tight = w.hits(0.3)
	c.deadlines = w.hits(0.6)
	c.planTimeouts = w.hits(0.4)
	if w.hits(0.3) {
		c.nodeTimeout = w.between(time.Millisecond, 10*time.Millisecond)
	}
	if w.hits(0.2) {
		c.queueMax = 1 + rng.IntN(4)
	}
	c.shutdown = w.hits(0.3)
	if w.hits(0.1) {
		c.panics = 0.1
	}
	if w.hits(0.2) {
		c.maxRows = 1 + rng.IntN(200)
	}
	c.persistent = w.hits(0.2)
	c.watchful = w.hits(0.2)
	if w.hits(0.03) {
		c.crowd = 1500 + rng.IntN(3000)
		c.shutdown = true
	}
}

// redisTrouble reports whether calls to Redis may fail.
func (c *simConfig) redisTrouble() bool {
	return c.redis.fault > 0 || c.redis.refuse > 0 || c.redis.down > 0 || c.redis.tight || c.net.Refuse > 0 || c.net.Ignore > 0 || c.net.Loss > 0
}

func (c *simConfig) latency(w *simWorld) time.Duration { return w.between(0, c.serverMax) }

// simWorld is the engine in the world of one seed. One goroutine.
type simWorld struct {
	lab   *simLab
	seed  uint64
	rng   *rand.Rand
	cfg   simConfig
	trace io.Writer // nil: nobody reads the log

	traces simTraces

	crowds   [2]uint64  // callers and connections of each, if there are bounds
	crowding *rand.Rand // for what concerns admission, so that worlds without bounds stay as they are
	falls    *rand.Rand // for minimums and plans that answer instead, so that worlds without them stay as they are; nil: there are none
	held     int        // requests that the engine has taken and not answered
	failed   uint64     // requests that ran and were answered with an error

	sim     *loopsim.Sim
	net     *simnet.Net
	exec    *simExecutor
	pool    *cpupool.Pool
	engine  *Async
	clients []Caller
	options []resp.Options // of the clients
	remotes []Remote       // by endpoint index
	service *simService
	plans   []*plan.Graph
	swaps   simSwaps
	cluster simCluster
	master  simMaster

	requests      []*simRequest // by user id, which is the request's number, from 1 on
	submitting    bool          // Submit is on the stack
	closing       bool          // the engine was told to close
	graceEnd      clock.Time    // when it gives up what is in flight; zero: never
	stalled       bool          // some callback took time
	bodies        int           // begun and not ended
	woken         int           // sleeps of orphans that have ended at the instant wokenAt
	wokenMax      int           // the most of them at one instant
	wokenAt       clock.Time
	lateSleeps    int           // begun by orphans after Close
	lateFunctions int           // functions of Await that ran when nobody waited any more
	away          int           // functions of Await that have not returned
	played        int           // nodes that were played again
	playedReads   int           // those that had got something from outside
	late          uint64        // bodies on the loop that ended after their node, by themselves
	stopped       uint64        // those that ended because they, or what they awaited, noticed
	retries       int           // attempts after the first
	inline        int           // bodies that ran inline
	waiting       []simJob      // for a worker, in the order of their submission
	queueFull     int           // refusals of the CPU pool
	computed      int           // jobs of bodies on the loop
	asked         commandCounts // commands that bodies have handed to the clients
	reached       commandCounts // those that a server has executed
	faults        int           // of servers
	givenUp       int           // calls that bodies gave up before they had left
	tooLarge      int           // calls whose replies were too large
	parts         int           // batches that exceed the bound on commands in flight
	answers       map[string]int
	instants      int
	violation     error // the first; ends the run
}

// simRequest is one request of a simulation, with copies of what the engine was given.
type simRequest struct {
	req      Execution
	user     int64
	graph    *plan.Graph
	params   expr.Params
	deadline clock.Time
	mode     plan.Mode
	arrived  clock.Time
	spans    map[int]*simSpan // of the bodies that have begun, by node
	required []int            // indices of nodes
	begun    map[int]bool     // nodes whose body has begun, by index
	// lateBodies are the nodes whose body ended after its deadline, by index. They must fail
	// for it.
	lateBodies map[int]bool
	faults     map[int][]fault // replies that servers have spoiled, by node
	then       *simRequest     // the run of the fallback: a copy with a graph of its own; nil: there is none
	fell       clock.Time      // when that run was first seen
	refused    bool            // submitted after the engine was told to close
	flow       Flow
	taken      bool          // the engine has not refused it at once
	overloaded bool          // the engine has refused it, at once, or in favor of another
	ran        bool          // it was admitted
	since      clock.Time    // when its wait for admission began, if it was seen to wait
	delay      time.Duration // until it was admitted, or had to leave
	came, left clock.Time    // when it was submitted and answered
	answers    int
	outputs    []rowset.RowSet // of the answer
	digest     uint64          // of outputs
	capture    *Capture        // of the run; nil: none
}

// simInstantsMax bounds a run: one takes some hundreds of instants.
const simInstantsMax = 200_000

// run plays one seed and returns the first violation of an invariant. It writes the log to
// trace, unless that is nil.
func (lab *simLab) run(seed uint64, trace io.Writer) (err error) {
	w := &simWorld{lab: lab, seed: seed, trace: trace, answers: map[string]int{}, rng: rand.New(rand.NewPCG(seed, 0x72616e6b64)), traces: newSimTraces(seed)}
	lab.world = w
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	w.drawConfig()
	w.drawAdmission()
	w.drawSwaps()
	w.drawFalls()
	w.drawCluster()
	w.drawMaster()
	w.build()
	w.populate()
	w.cluster.populate()
	w.master.populate()
	w.play()
	w.shutDown()
	return w.violation
}

// build makes the engine and all below it.
func (w *simWorld) build() {
	c := &w.cfg
	w.sim = loopsim.New(w.rng, func(recovered any, stack []byte) {
		if recovered != errSimPanic {
			w.violate("panic on the loop: %v\n%s", recovered, stack)
		}
	})
	w.net = simnet.New(w.sim, w.rng, c.net)
	w.exec = new(simExecutor)
	w.exec.reset(w, c.workers)
	w.pool = cpupool.New(w.sim.Loop, cpupool.Config{
		Workers: c.workers, QueueMax: c.queueMax, Clock: w.sim.Clock, Executor: w.exec,
	})
	for _, ep := range w.lab.reg.Endpoints() {
		if ep.Kind == registry.HTTP {
			w.buildService(ep)
			continue
		}
		o := resp.Options{
			Addr: ep.Addr(), Connections: 1 + w.rng.IntN(2), MaxInflight: 1 + w.rng.IntN(40),
			ClientName: []string{"", "rankd"}[w.rng.IntN(2)], Database: w.rng.IntN(2),
			ConnectTimeout: 20 * time.Second, RequestTimeout: 20 * time.Second, Seed: w.rng.Uint64(),
			MaxReplyBytes: c.replyBytes, NoCoalesceReads: w.hits(0.1),
		}
		if c.redisTrouble() {
			o.ConnectTimeout = w.between(10*time.Millisecond, 50*time.Millisecond)
			o.RequestTimeout = w.between(20*time.Millisecond, 100*time.Millisecond)
		}
		if c.redis.tight {
			o.MaxWaiting = 1 + w.rng.IntN(8)
			o.RequestTimeout = w.between(2*time.Millisecond, 20*time.Millisecond)
		}
		w.options = append(w.options, o)
		w.clients = append(w.clients, w.openRedis(ep, o))
	}
	w.engine = NewAsync(AsyncConfig{
		Loop: w.sim.Loop, CPU: simCPU{w.pool, w}, Clients: w.clients, Remotes: w.remotes, TraceEvents: w.traces.events, Go: w.goAway,
		Config: Config{
			Registry: w.lab.reg, NodeTimeout: c.nodeTimeout, MaxRows: c.maxRows, MaxInflight: c.maxInflight, MaxQueue: c.maxQueue,
			Placement: c.placement, Memory: poisonedPool(),
		},
	})
	w.drawPatience()
	for i := range 1 + w.rng.IntN(3) {
		w.plans = append(w.plans, w.makePlan(fmt.Sprintf("plan_%d", i)))
	}
}

// populate schedules all that comes from outside.
func (w *simWorld) populate() {
	for range w.cfg.requests {
		w.sim.After(w.between(0, w.cfg.spread), func() { w.submit(w.anyPlan()) })
	}
	if w.cfg.crowd > 0 {
		crowd := w.makeCrowd("crowd")
		w.swaps.crowd = crowd
		for range w.cfg.crowd / crowdNodes {
			w.sim.After(w.between(0, w.cfg.spread), func() { w.submit(crowd) })
		}
	}
	for range w.cfg.redis.down {
		addr := w.serverOf(w.rng.IntN(len(w.options)))
		from := w.between(0, w.cfg.spread)
		w.sim.After(from, func() {
			w.logf("%s goes down", addr)
			w.net.SetDown(addr, true)
		})
		w.sim.After(from+w.between(time.Millisecond, 30*time.Millisecond), func() {
			w.logf("%s is up", addr)
			w.net.SetDown(addr, false)
		})
	}
	if w.cfg.shutdown {
		w.sim.After(w.between(0, w.cfg.spread+10*time.Millisecond), w.beginClose)
	}
}

// serverOf returns the address of an endpoint's server; of several, that of the first.
func (w *simWorld) serverOf(endpoint int) string {
	switch {
	case endpoint == 0 && w.cluster.exists():
		return simNodeAddr(0)
	case endpoint == 1 && w.master.exists():
		return simMasterAddr(0)
	}
	return w.options[endpoint].Addr
}

func (w *simWorld) anyPlan() *plan.Graph { return w.plans[w.rng.IntN(len(w.plans))] }

// submit gives the engine another request, for that plan.
func (w *simWorld) submit(g *plan.Graph) {
	if w.sim.Ended() {
		return // see checkSubmitAfterEnd
	}
	now := w.sim.Now()
	w.step()
	q := &simRequest{
		user: int64(len(w.requests)) + 1, graph: g, mode: w.cfg.placement.Mode, begun: map[int]bool{}, refused: w.closing,
		arrived: now, spans: map[int]*simSpan{}, lateBodies: map[int]bool{}, faults: map[int][]fault{},
	}
	if w.hits(0.3) {
		q.params.SetFloat(paramWeight, float64(w.rng.IntN(10)))
	}
	if w.hits(0.7) {
		q.params.SetString(paramBlocklist, "^C[1-9]")
	}
	if w.cfg.deadlines && w.hits(0.7) {
		q.deadline = now.Add(w.between(-time.Millisecond, 40*time.Millisecond))
		if w.hits(0.05) {
			q.deadline = clock.Never
		}
	}
	q.req = Execution{Graph: q.graph, UserID: q.user, Params: q.params, Deadline: q.deadline, Deltas: w.hits(0.2), Record: w.traces.detail()}
	if q.user%3 == 0 {
		q.capture = new(Capture)
		q.req.Capture = q.capture
	}
	w.drawRequired(q)
	if w.hits(0.5) {
		q.arrived = now.Add(-w.between(0, time.Millisecond))
		q.req.Arrived = q.arrived
	}
	if w.hits(w.cfg.modes) {
		q.mode = modes[w.rng.IntN(3)]
		q.req.Mode = q.mode
	}
	w.requests = append(w.requests, q)
	w.logf("request %d of %s, %v, deadline %v", q.user, q.graph.Name, q.mode, time.Duration(q.deadline))
	w.drawAbandoned(q)
	w.drawFlow(q)
	w.drawFallback(q)
	w.ask(q)
}

// answered takes a request's answer.
func (w *simWorld) answered(q *simRequest, r *Result) {
	w.logf("answer to %d: %v", q.user, r.Err)
	w.held--
	w.check(!w.submitting, "request %d was answered inside Submit", q.user)
	w.check(w.exec.current == nil, "request %d was answered off the loop", q.user)
	w.check(!w.sim.Ended(), "request %d was answered after the end of the loop", q.user)
	if q.answers++; q.answers > 1 {
		w.violate("request %d was answered %d times", q.user, q.answers)
		return
	}
	w.step()
	w.leaves(q, r)
	w.judge(q, r)
	w.checkTrace(q, r)
	q.outputs, q.digest = r.Outputs, digestOf(r.Outputs...)
	// The request belongs to its caller again, who may change it.
	q.req = Execution{UserID: -1}
	q.req.Params.SetFloat(paramWeight, -1)
	if len(w.requests) < 2*w.cfg.requests && w.hits(0.1) {
		w.submit(w.anyPlan())
	}
	if w.hits(w.cfg.panics) {
		w.logf("the receiver of the answer to %d panics", q.user)
		panic(errSimPanic)
	}
}

// errSimPanic is what a receiver of answers panics with.
var errSimPanic = errors.New("simulated panic")

// beginClose does on the loop what Close does first.
func (w *simWorld) beginClose() {
	if w.closing {
		return
	}
	grace := []time.Duration{0, w.between(0, 20*time.Millisecond), Forever}[w.rng.IntN(3)]
	w.logf("close with grace %v", grace)
	w.closing = true
	w.sim.Loop.Post(func() {
		if grace < Forever {
			w.graceEnd = w.sim.Now().Add(grace)
		}
	})
	w.engine.shut(grace)
}

// play goes from instant to instant until nothing is left to happen.
func (w *simWorld) play() {
	for w.violation == nil {
		if err := w.sim.Settle(); err != nil {
			w.violate("%v", err)
			return
		}
		w.checkSettled()
		if w.cfg.stopAtOnce && w.drained() && w.away == 0 && !w.sim.Ended() {
			return
		}
		at, ok := w.sim.Next()
		if !ok {
			return
		}
		if w.instants++; w.instants > simInstantsMax {
			w.violate("no end after %d instants", w.instants)
			return
		}
		if w.hits(w.cfg.lag) {
			at = at.Add(w.between(0, 5*time.Millisecond))
		}
		w.sim.MoveTo(at)
	}
}

// shutDown closes the engine, unless that has happened, and ends the loop.
func (w *simWorld) shutDown() {
	if w.violation != nil {
		return
	}
	w.checkQuiet()
	w.beginClose()
	w.play()
	if w.violation != nil {
		return
	}
	w.checkClosed()
	w.stopLoop()
	if w.violation != nil {
		return
	}
	w.checkSubmitAfterEnd()
	w.play() // the steps of other goroutines and of the network that are still to come
}

// stopLoop stops the loop and runs it to its end. It stops it from outside, or from a callback
// after the iteration has taken its posts. Earlier posts run, later posts do not.
func (w *simWorld) stopLoop() {
	l := w.sim.Loop
	ran := false
	stop := func() {
		w.check(l.Post(func() { ran = true }), "a running loop refused a post")
		l.Stop()
		w.check(!l.Post(w.afterTheEnd), "a post was accepted after Stop")
	}
	if w.hits(0.5) {
		l.Defer(stop)
		w.sim.Iterate()
	} else {
		stop()
	}
	if err := w.sim.Stop(); err != nil {
		w.violate("%v", err)
	}
	w.check(ran, "a post that was accepted before Stop did not run")
	w.check(!l.Post(w.afterTheEnd), "a post was accepted after the end of the loop")
}

// drained reports whether Close has come to its end.
func (w *simWorld) drained() bool {
	select {
	case <-w.engine.drained:
		return true
	default:
		return false
	}
}

// afterTheEnd is posted to a loop that must not run it.
func (w *simWorld) afterTheEnd() { w.violate("a post ran after the end of the loop") }

// checkSubmitAfterEnd submits to an engine whose loop is gone.
func (w *simWorld) checkSubmitAfterEnd() {
	err := w.engine.Submit(&Execution{Graph: w.plans[0], UserID: 1}, func(*Result) { w.violate("a request after the end was answered") })
	w.check(err == ErrShuttingDown, "a request after the end got %v", err)
}

// requestOf returns the request that a node belongs to, or the run of its fallback.
func (w *simWorld) requestOf(c *task.Ctx) *simRequest { return w.runOf(c.UserID, c.Node) }

// runOf is requestOf for a user and a node.
func (w *simWorld) runOf(user int64, n *plan.Node) *simRequest {
	q := w.requests[user-1]
	if t := q.then; t != nil && n.Index < len(t.graph.Nodes) && t.graph.Nodes[n.Index] == n {
		return t
	}
	return q
}

// hits reports true with that probability.
func (w *simWorld) hits(p float64) bool { return p > 0 && w.rng.Float64() < p }

// between draws a duration, a multiple of the grain.
func (w *simWorld) between(from, to time.Duration) time.Duration {
	d := from + time.Duration(w.rng.Int64N(int64(to-from)+1))
	return d - d%max(w.cfg.grain, 1)
}

// check records a violation unless ok.
func (w *simWorld) check(ok bool, format string, args ...any) {
	if !ok {
		w.violate(format, args...)
	}
}

func (w *simWorld) violate(format string, args ...any) {
	if w.violation == nil {
		w.violation = fmt.Errorf(format, args...)
		w.logf("VIOLATION: %v", w.violation)
	}
}

// logf writes a line of the log.
func (w *simWorld) logf(format string, args ...any) {
	if w.trace == nil {
		return
	}
	var now time.Duration
	if w.sim != nil {
		now = time.Duration(w.sim.Now()) - time.Second // when a manual clock begins
	}
	fmt.Fprintf(w.trace, "%12v  %s\n", now, fmt.Sprintf(format, args...))
}

// goAway runs a function of Await, later.
func (w *simWorld) goAway(fn func()) {
	w.away++
	w.sim.After(w.between(0, 8*time.Millisecond), func() {
		w.check(!w.sim.Ended(), "the loop has ended before a function of Await has returned")
		w.away--
		fn()
	})
}
