package rankd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rankd/rankd/internal/drift"
	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/internal/generation"
	"github.com/rankd/rankd/internal/recorder"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/internal/served"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/reactor"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/scheduler/blocking"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// Engine ranks candidates. Any goroutine.
type Engine struct {
	kept *generation.Keeper // what requests begin with

	options Options
	allowed request.Grants // what a request may ask for

	clock     clock.Clock
	scheduler scheduler.Engine
	config    scheduler.Config // of the scheduler

	lateAnswer time.Duration // see the constant

	calls sync.Pool     // of *call
	asked atomic.Uint64 // requests that a sample was drawn from

	chooser trace.Chooser // the sink, if it chooses; else nil

	calendar atomic.Pointer[calendar] // the last reading; nil: none yet

	told toldLog

	served   *served.Log        // nil: none
	recorder *recorder.Recorder // nil: no request is recorded

	lines     *fileio.Lines // that requests cause
	untracked untracked
	services  services
	drift     drift.Watch
}

// Open reads registry, models and plans and starts an engine. It connects to Redis when a request first
// needs it. It asks the model servers of endpoints with dialect open_inference what they serve, and refuses those that serve
// another model than the table says; one that is silent makes the engine not Ready. The error reports all that is wrong with o, a
// table or the chosen plan. Close ends the engine.
func Open(o Options) (*Engine, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("rankd: options: %w", err)
	}
	e := &Engine{options: o, clock: clock.NewReal(), lateAnswer: lateAnswer}
	e.lines = fileio.NewLines(o.Logger, linesPerSecond, time.Now, nil)
	e.drift.Clock = e.clock
	e.options.Redis = "" // The engine keeps no second copy of the password.
	if e.kept, err = generation.Open(o.source(), host{e}, o.Logger); err != nil {
		return nil, err
	}
	e.allowed = request.Grants{
		request.GrantScheduling: o.AllowRequestScheduling, request.GrantTrace: o.AllowRequestTrace, request.GrantExplain: o.AllowRequestExplain,
		request.GrantNow: o.AllowRequestNow, request.GrantTraffic: o.AllowRequestTraffic,
	}
	if e.served, err = e.openServed(); err != nil {
		return nil, fmt.Errorf("rankd: options: ServedUserKeys: %w", err)
	}
	e.openRecorder()
	e.chooser, _ = o.TraceSink.(trace.Chooser)
	e.calls.New = func() any {
		c := &call{engine: e}
		c.deliverFn = c.deliver
		return c
	}
	if e.scheduler, err = e.openScheduler(); err != nil {
		e.kept.StopServer()
		return nil, err
	}
	if o.NoSecrets { // It connects to nobody.
		return e, nil
	}
	if err := e.askServices(context.Background(), e.Registry().Endpoints()); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// untracked has the endpoints that require a Redis to report changes, and whose Redis refuses. Any goroutine.
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

// Ready says why the engine should not get requests although it would answer them. Either the first run of a plan
// whose rows it keeps (Residents) has not succeeded yet. Or an endpoint has cache_require, and its Redis refuses to
// report changes. Or the model server of an endpoint has not said yet which model it serves; Ready then has it asked again. The
// error names the plan or the endpoint, and quotes the server. An unreachable Redis leaves the
// engine ready: it is then unknown whether the server would refuse, and the errors of plans say that it is missing.
func (e *Engine) Ready() error {
	if err := e.kept.NotReady(); err != nil {
		return fmt.Errorf("rankd: %w", err)
	}
	if err := e.heardServices(); err != nil {
		return fmt.Errorf("rankd: %w", err)
	}
	e.untracked.mu.Lock()
	defer e.untracked.mu.Unlock()
	for _, ep := range e.Registry().Endpoints() {
		if err := e.untracked.errors[ep]; err != nil {
			return fmt.Errorf("rankd: endpoint %s has cache_require, and its Redis does not report changes: %w", ep.Name, err)
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
		OnTurn:      func(t scheduler.Turn) { go t.Log(o.Logger) },
		OnDenied:    func(d scheduler.Denied) { go d.Log(o.Logger) }, // The loop does not wait for a log.
		OnPanic:     func(recovered any, stack []byte) { e.logFault("in the engine", "", recovered, stack) },
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

// lateAnswer is how long Rank and Shutdown wait for the engine's result after their context has ended. The error of a
// deadline comes at the same instant.
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
	present := e.kept.Present()
	listing, err := present.List(nil)
	if err != nil {
		return nil, err
	}
	for _, graph := range present.Plans() {
		e.kept.Hold(present, graph)
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
	graph, err := e.kept.Present().Choose(name)
	if err == nil && graph == nil {
		err = generation.ErrNoPlan
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
	text, err := e.kept.Present().Artifact(name)
	if err != nil {
		return nil, planError("", err)
	}
	return text, nil
}

// Registry returns the keys, params and endpoints that the engine works with. Reload may replace it, with the same endpoints.
func (e *Engine) Registry() *registry.Registry { return e.kept.Present().Registry }

// Generation describes what an engine has loaded together: the tables, the models and the plans. Immutable; any goroutine.
type Generation struct {
	// Number counts the generations that the engine has begun requests with: 1 is what Open has loaded.
	Number uint64
	// Digest is the hex SHA-256 of what the tables, the models and the plans say, whenever they were loaded and wherever from. It is empty
	// until all plans of the folder have been loaded, as Plans and Reload do.
	Digest string
	Loaded time.Time
	// Parts are what Digest covers: the digest of each, by kind and name ("tables", "plan home", "model ctr"). Nil while Digest is empty; must not be changed.
	Parts map[string]string
	Plans []PlanVersion // that are loaded, by name
	// Aliases are the second names of plans, by name.
	Aliases []Alias
}

// Alias is a name under which requests ask for one of two plans.
type Alias = plan.Alias

// PlanVersion is one plan of a Generation. Immutable; any goroutine.
type PlanVersion struct {
	Name   string `json:"name"`
	Digest string `json:"digest"` // hex SHA-256 of the artifact
}

// Generation describes what requests begin with now. It loads nothing, and never waits.
func (e *Engine) Generation() Generation { return describe(e.kept.Present()) }

// describe returns what is known of g now. Of nil it returns the zero value.
func describe(g *generation.Generation) Generation {
	if g == nil {
		return Generation{}
	}
	d := Generation{Number: g.Number, Digest: g.Digest(), Parts: g.Parts(), Loaded: g.Loaded}
	for _, a := range g.Aliases {
		d.Aliases = append(d.Aliases, *a)
	}
	slices.SortFunc(d.Aliases, func(a, b Alias) int { return cmp.Compare(a.Name, b.Name) })
	for _, graph := range g.Plans() {
		d.Plans = append(d.Plans, PlanVersion{graph.Name, graph.Digest})
	}
	return d
}

// ErrNoFormer: Back has no generation to go back to, since the engine has had one only.
var ErrNoFormer = generation.ErrNoFormer

// Reload reads tables, models and plans again, beside those that requests run with. It loads all plans, and asks each that has changed once,
// for user 1. Then all requests that come begin with the new generation, which it returns. Those that have begun end as they began.
// If all is as before, it returns the present generation.
//
// After an error everything stays as it was. The error says what is wrong with each file, and where: a plan may be refused only if
// the present generation refuses it, too. It is of class ErrCallback in a callback of an
// engine or the body of a task, since Reload waits. Endpoints whose tables are the same stay, with passwords, connections and caches; others are connected first, and must answer. Counters stay, and so do models and
// plans whose files are the same. One call runs at a time; others wait until ctx ends.
func (e *Engine) Reload(ctx context.Context) (Generation, error) { return e.change(ctx, e.kept.Reload) }

// Back returns to the generation before the present one, at once: nothing is read. A second call returns to where the first one began. The error matches ErrNoFormer
// if there was none, and otherwise is as for Reload.
func (e *Engine) Back(ctx context.Context) (Generation, error) { return e.change(ctx, e.kept.Back) }

func (e *Engine) change(ctx context.Context, to func(context.Context) (*generation.Generation, error)) (Generation, error) {
	if inCallback() {
		return Generation{}, waits("", "Reload waits, so a callback or a body must not call it")
	}
	g, err := to(ctx)
	return describe(g), err
}

// Reloads says what became of the calls of Reload and Back. A copy; any goroutine.
type Reloads struct {
	Succeeded, Failed uint64
	Err               error // of the last call; nil: it succeeded, or there was none
}

// Reloads says what became of the calls of Reload and Back so far.
func (e *Engine) Reloads() Reloads { return Reloads(e.kept.Reloads()) }

// Resident describes the rows of one plan that an engine keeps for the task resident. A copy; any goroutine.
type Resident struct {
	Plan           string
	Digest         string // of the plan, as PlanVersion; empty if there is no such plan
	Rows           int
	Bytes          int       // about how many bytes the rows take
	Loaded         time.Time // when the run ended that has returned them; zero: none has
	Runs, Failures uint64    // runs that succeeded and that failed, in this generation and those before that had the plan
	Err            error     // why the last run failed; nil: it did not
}

// Residents describes the rows that the engine keeps for requests that come now, by plan. They are there once a plan that reads them
// is loaded. It never waits.
func (e *Engine) Residents() []Resident {
	var all []Resident
	for _, r := range e.kept.Residents() {
		all = append(all, Resident(r))
	}
	return all
}

// host is the engine as generations see it. Any goroutine.
type host struct{ engine *Engine }

// Keep implements generation.Host.
func (h host) Keep(graphs map[*plan.Graph]bool, endpoints map[*registry.Endpoint]bool) {
	h.engine.scheduler.Keep(graphs, endpoints)
}

// Connect implements generation.Host.
func (h host) Connect(added []*registry.Endpoint) { h.engine.scheduler.Connect(added) }

// Ping implements generation.Host.
func (h host) Ping(ctx context.Context, ep *registry.Endpoint) error {
	return blocking.Ping(ctx, &h.engine.config, ep)
}

// Warm implements generation.Host. A plan that fails here may still be sound, since its users are unknown.
func (h host) Warm(ctx context.Context, g *generation.Generation, graph *plan.Graph) {
	if _, err := h.engine.ask(ctx, g, graph, 0); err != nil && !errors.Is(err, ErrInvalidRequest) {
		h.engine.options.Logger.Warn("a new plan has failed its first request", "plan", graph.Name, "error", err)
	}
}

// Run implements generation.Host.
func (h host) Run(ctx context.Context, g *generation.Generation, graph *plan.Graph, limit time.Duration) (rows rowset.RowSet, ids *rowset.IDTexts, err error) {
	answer, err := h.engine.ask(ctx, g, graph, limit)
	if err != nil {
		return rowset.RowSet{}, nil, err
	}
	out := answer.Output(0)
	return out.rows, out.texts, nil
}

// warmID is the id of requests of the engine's own.
const warmID = "reload"

// ask runs a request of the engine's own for a plan of g, and waits for its answer. Its nodes compute off the loop: nobody waits for them there, or knows yet what they
// cost. limit is its deadline in place of those of the options; 0: theirs.
func (e *Engine) ask(ctx context.Context, g *generation.Generation, graph *plan.Graph, limit time.Duration) (*Answer, error) {
	r := Request{ID: warmID, Plan: graph.Name, UserID: 1}
	if g.Registry.User().TextIDs() {
		r.UserID, r.UserIDText = 0, "1"
	}
	w := &rankWait{done: make(chan struct{})}
	c := e.calls.Get().(*call)
	c.generation, c.RequestID, c.done, c.Context, c.Arrived = g, r.ID, w.deliver, ctx, e.clock.Now()
	if err := c.prepare(&r, graph, nil); err != nil {
		c.free()
		return nil, err
	}
	c.Mode, c.sampled, c.Record, c.Fallback = OffloadAll, false, trace.Off, nil // An answer of another plan says nothing of this one.
	c.unserved()                                                                // Nobody is.
	c.recorded, c.Capture = nil, nil
	if limit > 0 {
		c.Deadline = c.Arrived.Add(limit)
	}
	if err := e.scheduler.Submit(&c.Execution, c.deliverFn); err != nil {
		c.free()
		return nil, err
	}
	select {
	case <-w.done:
		return w.answer, w.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

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

// DriftColumn says what some requests of one plan and one side of an alias have computed with in one column. Not stable yet.
type DriftColumn = drift.Column

// DriftSampled says how many requests of one plan and side these are. Not stable yet.
type DriftSampled = drift.Sampled

// Drift says what requests compute with, by plan, alias, side and column: of about one request a second for each plan and side. Any
// goroutine.
func (e *Engine) Drift() ([]DriftColumn, []DriftSampled) { return e.drift.Columns() }

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
		e.kept.Close()
		e.scheduler.Close(scheduler.Forever)
		e.kept.StopServer()
		e.drift.Wait()
		e.closeServed()
		e.closeRecorder()
		e.flushLines()
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

// callbackFrames are the beginnings of the names of functions that call back: the one that
// delivers answers with every model, the one that runs the body of a task wherever it runs, those
// of the loop, of its host, and of a coroutine, whose stack begins there.
var callbackFrames = [...]string{
	reflect.TypeFor[Engine]().PkgPath() + ".(*Engine).deliver",
	reflect.TypeFor[task.Ctx]().PkgPath() + ".engine.Invoke",
	reflect.TypeFor[loop.Loop]().PkgPath() + ".",
	reflect.TypeFor[reactor.Reactor]().PkgPath() + ".",
	reflect.TypeFor[scheduler.Async]().PkgPath() + ".newCoroutine.",
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
