package rankd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rankd/rankd/artifacts"
	"github.com/rankd/rankd/gbdt"
	"github.com/rankd/rankd/internal/excerpt"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/request"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/scheduler/blocking"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
	"github.com/rankd/rankd/trace"
)

// Engine ranks candidates. Any goroutine.
type Engine struct {
	options  Options
	registry *registry.Registry
	library  *plan.Library
	plan     *plan.Graph         // for requests that name none; nil if there is none
	encoders [2]*request.Encoder // by Format
	requests *request.Parser
	allowed  [request.GrantCount]bool // what a request may ask for

	clock        clock.Clock
	scheduler    scheduler.Engine
	loads        loads
	stopEmbedded func() // nil if no server was started

	lateAnswer time.Duration // see the constant

	calls  sync.Pool     // of *call
	asked  atomic.Uint64 // requests that a sample was drawn from
	closed sync.Once

	chooser trace.Chooser // the sink, if it chooses; else nil

	calendar atomic.Pointer[calendar] // the last reading; nil: none yet

	malformed malformedLog
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
	if e.registry, err = e.loadRegistry(); err != nil {
		return err
	}
	var models *gbdt.Set
	if o.Models != nil {
		if models, err = gbdt.ReadFolder(o.Models, o.ModelsName); err != nil {
			return err
		}
	}
	tasks, err := task.Engine(taskrun.Key{}).NewTrustingCatalog(builtin.SpecsWith(models), o.Tasks...)
	if err != nil {
		return err
	}
	folder := o.Plans
	if folder == nil {
		folder = artifacts.Plans()
	}
	e.library = plan.NewLibrary(folder, o.PlansName, tasks, e.registry, e.compile(folder, o.PlansDir, tasks))
	switch {
	case o.PlanFile != "":
		if o.PlanText == nil { // only once: it may be a pipe
			o.PlanText, err = e.readPlanFile(tasks)
		}
		if err == nil {
			e.plan, err = plan.Load(o.PlanFile, o.PlanText, tasks, e.registry)
		}
	case o.Plan != "":
		e.plan, err = e.library.Get(o.Plan)
	}
	if err != nil {
		return err
	}
	e.requests = request.NewParser(e.registry)
	e.allowed = [...]bool{
		request.GrantScheduling: o.AllowRequestScheduling, request.GrantTrace: o.AllowRequestTrace, request.GrantExplain: o.AllowRequestExplain,
	}
	for _, f := range [...]Format{FormatFlat, FormatFields} {
		e.encoders[f] = request.NewEncoder(e.registry, f)
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

// compile returns how plans of a folder are compiled, nil if the engine has no compiler. dir is the path
// of the folder, "" if it has none.
func (e *Engine) compile(folder fs.FS, dir string, tasks *task.Catalog) plan.Compile {
	c := e.options.Compiler
	if c == nil {
		return nil
	}
	return func(file string) ([]byte, error) { return c.Compile(folder, dir, file, tasks, e.registry) }
}

// readPlanFile returns the artifact of Options.PlanFile. It compiles a source.
func (e *Engine) readPlanFile(tasks *task.Catalog) ([]byte, error) {
	path := e.options.PlanFile
	if !strings.HasSuffix(path, plan.SourceSuffix) {
		return plan.ReadFile(path)
	}
	dir, file := filepath.Dir(path), filepath.Base(path)
	compile := e.compile(os.DirFS(dir), dir, tasks)
	if compile == nil {
		return nil, fmt.Errorf("%s: %w", excerpt.Name(path), plan.ErrNoCompiler)
	}
	return compile(file)
}

// loadRegistry reads the tables, moves endpoints to the servers that the options give, and reads the
// passwords.
func (e *Engine) loadRegistry() (reg *registry.Registry, err error) {
	o := &e.options
	if o.Registry == nil {
		reg, err = registry.Default(o.Env)
	} else {
		reg, err = registry.Load(o.Registry, o.Env)
		if err != nil { // one problem a line, each with its file
			return nil, registry.InFolder(o.RegistryName, err)
		}
		reg = reg.Named(o.RegistryName)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case o.Redis != "":
		server, err := registry.ParseServer(o.Redis)
		if err != nil {
			return nil, err
		}
		o.Redis = "" // The engine keeps no second copy of the password.
		reg = reg.WithRedis(server)
	case o.EmbeddedRedis != nil && reg.HasEmbedded():
		addr, stop, err := o.EmbeddedRedis()
		if err != nil {
			return nil, fmt.Errorf("embedded redis: %w", err)
		}
		e.stopEmbedded = stop
		server, err := registry.ParseServer(addr)
		if err != nil {
			return nil, fmt.Errorf("embedded redis: %w", err)
		}
		reg = reg.WithEmbedded(server)
	}
	if o.Cache != registry.CacheOff {
		reg = reg.WithCache(o.Cache)
	}
	if o.NoSecrets {
		return reg, nil
	}
	return reg.ReadSecrets()
}

func (e *Engine) openScheduler() (scheduler.Engine, error) {
	o := &e.options
	cfg := scheduler.Config{
		Registry: e.registry, CPUThreads: o.CPUThreads, IOThreads: o.IOThreads, RedisConnections: o.RedisConnections,
		ClientName: o.ClientName, NodeTimeout: o.NodeTimeout, MaxRows: o.MaxRows, Clock: e.clock,
		MaxInflight: o.MaxInflight, MaxQueue: o.MaxQueue,
		MaxReplyBytes: o.MaxReplyBytes, NoCoalesceReads: o.NoCoalesceReads, BusyPoll: o.BusyPoll,
		Placement:   o.Scheduling,
		OnStuck:     func(s scheduler.Stuck) { s.Log(o.Logger) },
		OnUntracked: func(u scheduler.Untracked) { u.Log(o.Logger) },
		OnPanic: func(recovered any, stack []byte) {
			o.Logger.Error("panic on the loop", "panic", recovered, "stack", string(stack))
		},
	}
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
	if err := e.start(ctx, r, w.deliver); err != nil {
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
	if err := e.start(ctx, r, done); err != nil {
		go e.deliver(done, nil, err)
	}
}

// start is Intake.Start.
func (e *Engine) start(ctx context.Context, r Request, done func(*Answer, error)) error {
	if done == nil {
		panic("rankd: the callback of a request is nil")
	}
	if ctx.Err() != nil {
		return cancelled(r.ID, ctx)
	}
	c := e.calls.Get().(*call)
	c.id, c.done, c.run.Context, c.run.Arrived = r.ID, done, ctx, e.clock.Now()
	if end, ok := ctx.Deadline(); ok {
		left := max(time.Until(end), 1)
		if own := e.options.Timeout; (own == 0 || left < own) && (r.Timeout == 0 || left < r.Timeout) {
			r.Timeout, c.shortened = left, true
		}
	}
	if graph, err, ok := e.loaded(r.Plan); ok {
		return c.start(&r, graph, err)
	}
	if !e.loads.begin() {
		c.free()
		return runError(r.ID, scheduler.ErrShuttingDown, nil)
	}
	later := r // so that only this branch moves the request to the heap
	go func() {
		defer e.loads.end()
		graph, err := e.library.Get(later.Plan)
		if err := c.start(&later, graph, err); err != nil {
			e.deliver(done, nil, err)
		}
	}()
	return nil
}

// start starts a request for the plan graph. A nil plan means the synthetic answer. planErr says why there
// is not a plan. The error is an *Error, and done is then never called.
func (c *call) start(r *Request, graph *plan.Graph, planErr error) error {
	if err := c.prepare(r, graph, planErr); err != nil {
		c.free()
		return err
	}
	if graph == nil {
		c.answerWithoutPlan()
		return nil
	}
	if err := c.engine.scheduler.Submit(&c.run, c.deliverFn); err != nil {
		c.free()
		return runError(r.ID, err, graph)
	}
	return nil
}

// call is one request on its way through the scheduler. It is used again, so that a request
// allocates its answer and nothing else. It belongs to submit, then to the scheduler, then to
// deliver.
type call struct {
	engine    *Engine
	run       scheduler.Execution
	id        string
	explain   Explain
	traced    bool // the request asked for its trace
	sampled   bool // the engine's sink gets a recording
	shortened bool // the caller's context has set the deadline
	done      func(*Answer, error)
	deliverFn func(*scheduler.Result) // the method deliver, bound once
}

// prepare checks the request, and is the one place that fills in run.
func (c *call) prepare(r *Request, graph *plan.Graph, planErr error) error {
	e, arrived := c.engine, c.run.Arrived
	if refused := e.check(r); refused != nil {
		return refused
	}
	c.run.Mode = r.Scheduling
	if r.Explain.Asked() {
		c.explain, c.run.KeepRows = r.Explain, true
	}
	params, refused := request.Values(r, e.registry)
	if refused != nil {
		return e.Intake().Refused(refused)
	}
	params.SetNow(float64(e.date(arrived).UnixMicro()) / 1e6)
	if planErr == errNoPlan {
		return invalid(r.ID, request.CodeInvalid, planErr)
	}
	if planErr != nil {
		return planError(r.ID, planErr)
	}
	if len(r.Require) > 0 {
		indices, err := required(graph, r.Require)
		if err != nil {
			return invalid(r.ID, request.CodeInvalid, err)
		}
		c.run.Required = indices
	}
	c.run.Flow = r.Flow
	c.run.Graph, c.run.UserID, c.run.RequestID, c.run.Params, c.run.Deltas = graph, r.UserID, r.ID, params, r.SchemaDeltas
	c.traced, c.sampled = r.Trace, e.sample(c.run.Context)
	if c.traced || c.sampled {
		c.run.Record = e.options.TraceDetail
	}
	for _, limit := range [...]time.Duration{e.options.Timeout, r.Timeout} {
		if limit > 0 {
			c.run.Deadline = c.run.Deadline.Earlier(arrived.Add(limit))
		}
	}
	return nil
}

var errNoPlan = errors.New("plan is missing, and the engine has none of its own")

// choose returns the plan for a request that asks for name, "" if it asks for none. A nil plan
// without error means the synthetic answer.
func (e *Engine) choose(name string) (*plan.Graph, error) {
	if graph, err, ok := e.loaded(name); ok {
		return graph, err
	}
	return e.library.Get(name)
}

// loaded is choose without a wait. It reports false if the library has not loaded the plan yet.
func (e *Engine) loaded(name string) (graph *plan.Graph, err error, ok bool) {
	switch {
	case name == "" && e.plan == nil && !e.options.Synthetic:
		return nil, errNoPlan, true
	case name == "" || e.plan != nil && name == e.plan.Name:
		return e.plan, nil, true
	}
	return e.library.Loaded(name)
}

// answerWithoutPlan delivers the synthetic answer: on the loop if there is one that runs.
func (c *call) answerWithoutPlan() {
	answer := func() { c.deliverFn(&scheduler.Result{Outputs: synthetic()}) }
	if async, ok := c.engine.scheduler.(*scheduler.Async); !ok || !async.Post(answer) {
		go answer()
	}
}

// synthetic returns the answer to a request without a plan: five candidates without fields.
func synthetic() []rowset.RowSet {
	return []rowset.RowSet{rowset.Dense(&rowset.Batch{IDs: []int64{1, 2, 3, 4, 5}})}
}

// deliver receives the scheduler's result.
func (c *call) deliver(result *scheduler.Result) {
	e, id, done := c.engine, c.id, c.done
	recording, elapsed := c.recording(result), e.ended(result).Sub(c.run.Arrived)
	if result.Err != nil {
		failed := c.failed(result.Err)
		failed.Elapsed, failed.QueueDelay, failed.recording = elapsed, result.QueueDelay, recording
		c.free()
		e.deliver(done, nil, failed)
		return
	}
	if c.run.Graph != nil {
		e.logMalformed(c.run.Graph.Name, result)
	}
	a := &Answer{
		RequestID: id, Elapsed: elapsed, engine: e, result: result, showDeltas: c.run.Deltas, recording: recording,
	}
	if c.run.Graph != nil {
		a.Plan = c.run.Graph.Name
		if c.run.KeepRows {
			a.explained = newExplained(&c.run, result, c.explain)
		}
	}
	c.free()
	e.deliver(done, a, nil)
}

// failed returns the *Error for the error of a run.
func (c *call) failed(err error) *Error {
	if err == scheduler.ErrAbandoned {
		return cancelled(c.id, c.run.Context)
	}
	e := runError(c.id, err, c.run.Graph)
	if late := (*scheduler.TimeoutError)(nil); c.shortened && errors.As(err, &late) && late.OfRequest() {
		e.causes = append(e.causes, context.DeadlineExceeded, context.Cause(c.run.Context))
	}
	return e
}

// deliver calls the callback of a request, on the loop or on any other goroutine. It logs a panic
// of done. inCallback looks for this function by its name.
func (e *Engine) deliver(done func(*Answer, error), a *Answer, err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			e.options.Logger.Error("panic in a callback", "panic", recovered, "stack", string(debug.Stack()))
		}
	}()
	done(a, err)
}

func (c *call) free() {
	c.run, c.id, c.done = scheduler.Execution{}, "", nil
	c.explain, c.traced, c.sampled, c.shortened = Explain{}, false, false, false
	c.engine.calls.Put(c)
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
// is listed with its error. The error is about reading the folder.
func (e *Engine) Plans() ([]Plan, error) {
	listing, err := e.library.List()
	if err != nil {
		return nil, err
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
	graph, err := e.choose(name)
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
	graph, err := e.choose(name)
	switch {
	case err != nil:
	case graph == nil:
		err = errNoPlan
	case graph == e.plan && e.options.PlanText != nil:
		return e.options.PlanText, nil
	default:
		var text []byte
		if text, err = e.library.Artifact(graph.Name); err == nil {
			return text, nil
		}
	}
	return nil, planError("", err)
}

// Registry returns the keys, params and endpoints that the engine works with.
func (e *Engine) Registry() *registry.Registry { return e.registry }

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
