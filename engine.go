package rankd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/request"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/scheduler/blocking"
	"github.com/rankd/rankd/trace"
)

// Engine ranks candidates. Any goroutine.
type Engine struct {
	present atomic.Pointer[generation] // that requests begin with
	former  atomic.Pointer[generation] // to which Back returns; nil: there is none
	reloads reloads

	options Options
	allowed request.Grants  // what a request may ask for
	running context.Context // ends when Shutdown begins: nothing runs plans by itself any more
	stop    context.CancelFunc

	clock        clock.Clock
	scheduler    scheduler.Engine
	loads        loads
	stopEmbedded func() // nil if no server was started

	// Of Open, and then of whose turn it is to reload.
	server, embedded *registry.Server // that the options give; nil: none, or not yet
	config           scheduler.Config // of the scheduler
	places           int              // of endpoints, so far: the next one's Index

	lateAnswer time.Duration // see the constant

	calls  sync.Pool     // of *call
	asked  atomic.Uint64 // requests that a sample was drawn from
	closed sync.Once

	chooser trace.Chooser // the sink, if it chooses; else nil

	calendar atomic.Pointer[calendar] // the last reading; nil: none yet

	malformed malformedLog
	untracked untracked
}

// Open reads registry, models and plans and starts an engine. It connects to Redis when a request first
// needs it. The error reports all that is wrong with o, a table or the chosen plan. Close ends
// the engine.
func Open(o Options) (*Engine, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("rankd: options: %w", err)
	}
	e := &Engine{options: o, clock: clock.NewReal(), lateAnswer: lateAnswer}
	e.running, e.stop = context.WithCancel(context.Background())
	if err := e.open(); err != nil {
		if e.stopEmbedded != nil {
			e.stopEmbedded()
		}
		return nil, err
	}
	return e, nil
}

func (e *Engine) open() (err error) {
	o := &e.options
	first, err := e.load(nil)
	if err != nil {
		return err
	}
	first.number = 1
	e.present.Store(first)
	e.reloads.turn = make(chan struct{}, 1)
	e.allowed = request.Grants{
		request.GrantScheduling: o.AllowRequestScheduling, request.GrantTrace: o.AllowRequestTrace, request.GrantExplain: o.AllowRequestExplain,
		request.GrantNow: o.AllowRequestNow,
	}
	e.chooser, _ = o.TraceSink.(trace.Chooser)
	e.calls.New = func() any {
		c := &call{engine: e}
		c.deliverFn = c.deliver
		return c
	}
	e.scheduler, err = e.openScheduler()
	return err
}

// untracked has the endpoints that require a Redis that tells of changes and whose Redis refuses. Any goroutine.
type untracked struct {
	mu     sync.Mutex
	errors map[*registry.Endpoint]error
}

func (e *Engine) hearUntracked(u scheduler.Untracked) {
	go u.Log(e.options.Logger) // The loop does not wait for a log.
	if !u.Endpoint.Policy.Cache.Required {
		return
	}
	e.untracked.mu.Lock()
	defer e.untracked.mu.Unlock()
	if e.untracked.errors == nil {
		e.untracked.errors = make(map[*registry.Endpoint]error)
	}
	if u.Err == nil {
		delete(e.untracked.errors, u.Endpoint)
	} else {
		e.untracked.errors[u.Endpoint] = u.Err
	}
}

// Ready says why the engine should get no requests though it would answer them: the first run of a plan has not succeeded whose rows
// it keeps (Residents), or an endpoint has cache_require, and its Redis refuses to tell of
// changes. The error names the plan or the endpoint, and has the server's words. A Redis that cannot be reached leaves the engine ready: whether
// it refuses is not known then. The plan's errors say that it lacks.
func (e *Engine) Ready() error {
	for _, r := range e.Residents() {
		if r.Loaded.IsZero() {
			return fmt.Errorf("rankd: there are no rows of plan %s yet, which the engine keeps: %w", r.Plan, cmp.Or(r.Err, errFirstRun))
		}
	}
	e.untracked.mu.Lock()
	defer e.untracked.mu.Unlock()
	for _, ep := range e.Registry().Endpoints() {
		if err := e.untracked.errors[ep]; err != nil {
			return fmt.Errorf("rankd: endpoint %s has cache_require, and its Redis does not tell of changes: %w", ep.Name, err)
		}
	}
	return nil
}

func (e *Engine) openScheduler() (scheduler.Engine, error) {
	o := &e.options
	cfg := scheduler.Config{
		Registry:   new(registry.Registry).WithEndpointsOf(e.Registry()), // It outlives the generation.
		CPUThreads: o.CPUThreads, IOThreads: o.IOThreads, RedisConnections: o.RedisConnections,
		ClientName: o.ClientName, NodeTimeout: o.NodeTimeout, MaxRows: o.MaxRows, Clock: e.clock,
		MaxInflight: o.MaxInflight, MaxQueue: o.MaxQueue,
		MaxReplyBytes: o.MaxReplyBytes, NoCoalesceReads: o.NoCoalesceReads, BusyPoll: o.BusyPoll,
		Placement:   o.Scheduling,
		Credentials: func(ep *registry.Endpoint) func() (string, string, error) { return o.Credentials[ep.ID] },
		OnStuck:     func(s scheduler.Stuck) { s.Log(o.Logger) },
		OnUntracked: e.hearUntracked,
		OnPanic: func(recovered any, stack []byte) {
			o.Logger.Error("panic on the loop", "panic", recovered, "stack", string(stack))
		},
	}
	for _, ep := range cfg.Registry.Endpoints() {
		if err := ep.ClusterProblem(); err != nil {
			return nil, fmt.Errorf("rankd: endpoint %s: %w", ep.ID, err)
		}
	}
	e.config = cfg
	switch o.Model {
	case Pool:
		return blocking.OpenTwoPools(cfg), nil
	case Sequential:
		return blocking.OpenSequential(cfg), nil
	default:
		return scheduler.OpenAsync(cfg)
	}
}

// Rank runs a request and waits for its answer. The error is an *Error. When ctx is cancelled, Rank returns at once,
// and the request starts no further nodes. A deadline of ctx is the request's, too: Rank returns the engine's error,
// with its node and trace, and at most 50 ms later than ctx ends. A callback of an engine and the body of a task
// must not call Rank: the error is then of class ErrCallback.
func (e *Engine) Rank(ctx context.Context, r Request) (*Answer, error) {
	if inCallback() {
		return nil, waits(r.ID, "Rank waits, so a callback or a body must use Submit")
	}
	w := &rankWait{done: make(chan struct{})}
	if err := e.Intake().Start(ctx, r, w.deliver); err != nil {
		return nil, err
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		if !w.outlasts(ctx, e.lateAnswer) {
			return nil, cancelled(r.ID, ctx)
		}
	}
	if w.err != nil {
		return nil, w.err
	}
	return w.answer, nil
}

// lateAnswer is how long Rank and Shutdown wait for what the engine has to say once their context has ended. The error of a deadline
// comes at the same instant.
const lateAnswer = 50 * time.Millisecond

// rankWait is one goroutine's wait for an answer.
type rankWait struct {
	done   chan struct{} // closed when answer and err are there
	answer *Answer
	err    error
}

func (w *rankWait) deliver(a *Answer, err error) {
	w.answer, w.err = a, err
	close(w.done)
}

// outlasts reports whether the outcome comes within that time of the deadline of ctx, which has ended. It does not wait if ctx was
// cancelled.
func (w *rankWait) outlasts(ctx context.Context, by time.Duration) bool {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return false
	}
	timer := time.NewTimer(by)
	defer timer.Stop()
	select {
	case <-w.done:
		return true
	case <-timer.C:
		return false
	}
}

// Submit starts a request and returns. It calls done exactly once, never inside Submit, with an
// answer or an *Error. When ctx ends, the request starts no further nodes, and its error is of class ErrAbandoned or, if the
// deadline of ctx has passed, ErrTimeout. With the Reactor model done runs on the loop, so it must not block. With
// every model it must not call Rank, Close, Shutdown or Metrics. A panic of done is logged, and
// harms nothing else. runtime.Goexit on the loop (t.FailNow in a test, and so package require) ends
// the process. Submit panics if done is nil.
func (e *Engine) Submit(ctx context.Context, r Request, done func(*Answer, error)) {
	if err := e.Intake().Start(ctx, r, done); err != nil {
		go e.deliver(done, nil, err)
	}
}

var errNoPlan = errors.New("plan is missing, and the engine has none of its own")

// Plan is a plan that the engine offers, or a file of the plan folder that was refused.
// Immutable; any goroutine.
type Plan struct {
	Name string    // of the file, without suffix
	Info *PlanInfo // nil if Err is not
	Err  error     // why the plan was refused
}

// PlanInfo describes a plan as checked and compiled.
type PlanInfo = plan.Info

// Plans loads all plans of the plan folder and returns them by name. A plan that does not load
// is listed with its error. The engine begins to keep the rows that plans read from memory. The error is about reading the folder.
func (e *Engine) Plans() ([]Plan, error) {
	present := e.present.Load()
	listing, err := present.list(nil)
	if err != nil {
		return nil, err
	}
	for _, graph := range present.plans() {
		e.hold(present, graph)
	}
	plans := make([]Plan, len(listing))
	for i, l := range listing {
		plans[i] = Plan{Name: l.Name, Err: l.Err}
		if l.Err == nil {
			info := l.Graph.Info()
			plans[i].Info = &info
		}
	}
	return plans, nil
}

// PlanInfo describes the plan of that name, or the engine's own choice for "". The error is of
// class ErrUnknownPlan or ErrInvalidPlan.
func (e *Engine) PlanInfo(name string) (*PlanInfo, error) {
	graph, err := e.present.Load().choose(name)
	if err == nil && graph == nil {
		err = errNoPlan
	}
	if err != nil {
		return nil, planError("", err)
	}
	info := graph.Info()
	return &info, nil
}

// Artifact returns the text of the plan's artifact, for the engine's own choice if name is "". It
// compiles a source again. The caller must not change the text. The error is of class
// ErrUnknownPlan or ErrInvalidPlan.
func (e *Engine) Artifact(name string) ([]byte, error) {
	g := e.present.Load()
	graph, err := g.choose(name)
	switch {
	case err != nil:
	case graph == nil:
		err = errNoPlan
	case graph == g.plan && g.planText != nil:
		return g.planText, nil
	default:
		var text []byte
		if text, err = g.library.Artifact(graph.Name); err == nil {
			return text, nil
		}
	}
	return nil, planError("", err)
}

// Registry returns the keys, params and endpoints that the engine works with. Reload may replace it, with the same endpoints.
func (e *Engine) Registry() *registry.Registry { return e.present.Load().registry }

// Metrics are the counters of an engine. Not stable yet.
type Metrics = scheduler.Metrics

// PlacementStats say where computing nodes ran, and what that cost. Metrics has them for the
// engine (Placement) and by name of the plan (Plans). Not stable yet.
type PlacementStats = scheduler.PlacementStats

// Metrics returns the counters as they are now. It asks the loop, so a callback of an engine and the
// body of a task must not call it: Metrics then panics with an *Error of class ErrCallback.
func (e *Engine) Metrics() Metrics {
	if inCallback() {
		panic(waits("", "Metrics waits, so a callback or a body must not call it"))
	}
	return e.scheduler.Metrics()
}

// StuckFor returns for how long one callback has held up the loop of the model Reactor, such as a body that never
// returns: no request goes on meanwhile. Zero means that the loop goes round. It takes one or two seconds to be seen. The
// engine logs it, and Metrics counts it. Any goroutine.
func (e *Engine) StuckFor() time.Duration {
	if async, ok := e.scheduler.(*scheduler.Async); ok {
		return async.StuckFor()
	}
	return 0
}

// Close refuses new requests, waits for those in flight however long they take, and frees all
// that the engine holds. A second call waits, too. The error is of class ErrCallback if a
// callback of an engine or the body of a task calls Close; otherwise it is nil.
func (e *Engine) Close() error { return e.Shutdown(context.Background()) }

// Shutdown refuses new requests and waits for those in flight until ctx ends. It then fails the rest with ErrClosed, and returns at most
// 50 ms later: what is left ends in the background, and Close waits for it. With the models Pool and Sequential a request that
// only a running body can finish is not abandoned: it gets its answer. The error wraps the cause of ctx if ctx ended first, and says
// how many requests and bodies were left.
func (e *Engine) Shutdown(ctx context.Context) error {
	if inCallback() {
		return waits("", "Close waits, so a callback or a body must not call it")
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.stop()
		e.loads.close()
		e.scheduler.Close(scheduler.Forever)
		e.closed.Do(func() {
			if e.stopEmbedded != nil {
				e.stopEmbedded()
			}
		})
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	counted := make(chan Metrics, 1)
	go func() {
		counted <- e.scheduler.Metrics() // before the requests fail
		e.scheduler.Close(0)
	}()
	timer := time.NewTimer(e.lateAnswer)
	defer timer.Stop()
	select {
	case m := <-counted:
		return fmt.Errorf("rankd: shutdown: %w: %d requests fail that have not ended, and %d bodies run on",
			context.Cause(ctx), m.Live+m.Admission.Waiting, m.Bodies)
	case <-timer.C:
		return fmt.Errorf("rankd: shutdown: %w: the loop does not answer, so some body holds it", context.Cause(ctx))
	}
}

// loads counts the requests that wait for their plan to be loaded, so that Close waits for them.
// The zero value is ready. Any goroutine.
type loads struct {
	mu     sync.Mutex
	closed bool // guarded by mu; begin refuses
	active sync.WaitGroup
}

// begin counts one more request, which calls end. It reports false after close.
func (l *loads) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.active.Add(1)
	}
	return !l.closed
}

func (l *loads) end() { l.active.Done() }

// close refuses further requests and waits for those that began.
func (l *loads) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.active.Wait()
}

// callbackFrames are the beginnings of the names of functions that call back: the one that
// delivers answers with every model, the one that runs the body of a task wherever it runs, those
// of the loop, of its host, and of a coroutine, whose stack begins there.
var callbackFrames = [...]string{
	"github.com/rankd/rankd.(*Engine).deliver",
	"github.com/rankd/rankd/task.engine.Invoke",
	"github.com/rankd/rankd/loop.",
	"github.com/rankd/rankd/reactor.",
	"github.com/rankd/rankd/scheduler.newCoroutine.",
}

// inCallback reports whether the caller runs inside a callback of some engine, or inside a body. A
// wait there stops that engine's loop, one of its workers, or the request that Close waits for: for
// ever if the engine is the caller's own. inCallback reads the stack, since a goroutine has no identity
// to compare; BenchmarkInCallback says what that costs. The compiler inlines none of the functions
// that it looks for: they are called through interfaces, closures or defer.
func inCallback() bool {
	var pcs [64]uintptr
	for skip := 2; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs[:])
		if n == 0 {
			return false
		}
		for _, pc := range pcs[:n] {
			f := runtime.FuncForPC(pc)
			if f == nil {
				continue
			}
			for _, name := range callbackFrames {
				if strings.HasPrefix(f.Name(), name) {
					return true
				}
			}
		}
	}
}
