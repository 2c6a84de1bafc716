package rankd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/rankd/rankd/internal/drift"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/generation"
	"github.com/rankd/rankd/internal/recorder"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/internal/served"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/reactor"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/trace"
)

// Request asks for one ranking.
type Request = request.Request

// Flow names a caller and one of its connections by two numbers of the program's choice: see Request.Flow.
type Flow = request.Flow

// Explain says what a request wants to have explained: all rows of the answer, or ids. The zero value is nothing.
type Explain = request.Explain

// ParseRequest checks a request in its JSON form, one document such as
// {"user_id": 1, "plan": "diamond"}. It generates an ID if the document has none. The error
// is an *Error of class ErrInvalidRequest. Any goroutine.
func (e *Engine) ParseRequest(doc []byte) (Request, error) {
	return e.Intake().Parse(doc, request.Given{})
}

// Intake is what only fronts need of an engine: they take requests as documents, from callbacks on the loop. Not
// stable yet, except Start. Any goroutine.
type Intake struct{ engine *Engine }

// Intake returns the intake of e.
func (e *Engine) Intake() Intake { return Intake{e} }

// Parse is Engine.ParseRequest for a document with further facts, such as the plan in a path. The document may be
// empty if the user is given.
func (in Intake) Parse(doc []byte, g request.Given) (Request, error) {
	present := in.engine.kept.Present()
	r, err := present.Requests.Parse(doc, g)
	if err != nil {
		return Request{}, in.Refused(err)
	}
	if refused := in.engine.check(&r, present); refused != nil {
		return Request{}, refused
	}
	return r, nil
}

// Start is Engine.Submit for a caller that can handle a refusal at once, so that no goroutine is needed. Either it
// returns an *Error and never calls done, or it returns nil, and done is called as by Submit. A request that has to
// wait may still be refused, by done, in favor of a caller with fewer: see Options.MaxQueue.
//
// A plan that no request has named before is first loaded on a goroutine of its own, because that takes long and a callback may call Start
// on the loop. So are the rows that the plan reads from memory.
func (in Intake) Start(ctx context.Context, r Request, done func(*Answer, error)) error {
	return in.start(ctx, r, done, false)
}

// StartSettled is Start for a caller that knows whether a client takes the answer: it calls Settle with each answer.
func (in Intake) StartSettled(ctx context.Context, r Request, done func(*Answer, error)) error {
	return in.start(ctx, r, done, true)
}

// Settle says whether a client has taken the answer to a request of StartSettled, for the log of what was served, and what its traffic is
// if the request does not say. It is called once. A nil answer has no line.
func (in Intake) Settle(a *Answer, delivered bool, traffic string) {
	if a != nil && a.served != nil {
		r := a.served
		a.served, r.Undelivered, r.Traffic = nil, !delivered, cmp.Or(r.Traffic, traffic)
		in.engine.served.Put(r)
	}
}

func (in Intake) start(ctx context.Context, r Request, done func(*Answer, error), settles bool) error {
	e := in.engine
	if done == nil {
		panic("rankd: the callback of a request is nil")
	}
	if ctx.Err() != nil {
		return cancelled(r.ID, ctx)
	}
	c := e.calls.Get().(*call)
	c.generation, c.RequestID, c.done, c.Context, c.Arrived = e.kept.Present(), r.ID, done, ctx, e.clock.Now()
	c.settles = settles
	if !c.generation.Requests.Understands(&r) {
		if c.generation = e.kept.Understanding(&r); c.generation == nil {
			c.free()
			return invalid(r.ID, request.CodeInvalid, errParsedBefore)
		}
	}
	if end, ok := ctx.Deadline(); ok {
		left := max(time.Until(end), 1)
		if own := e.options.Timeout; (own == 0 || left < own) && (r.Timeout == 0 || left < r.Timeout) {
			r.Timeout, c.shortened = left, true
		}
	}
	name := c.follow(&r)
	if graph, err, ok := c.generation.LookUp(name); ok && (graph == nil || c.generation.Settled(graph)) {
		return c.start(&r, graph, err)
	}
	if !e.kept.Begin() {
		c.free()
		return runError(r.ID, scheduler.ErrShuttingDown, nil)
	}
	later := r // so that only this branch moves the request to the heap
	go func() {
		defer e.kept.End()
		graph, err := c.generation.Choose(name)
		if graph != nil {
			e.kept.Await(ctx, c.generation, graph, e.options.Timeout, later.Timeout)
		}
		if err := c.start(&later, graph, err); err != nil {
			e.deliver(done, nil, err)
		}
	}()
	return nil
}

var errParsedBefore = errors.New("the request was parsed with tables that the engine has replaced since: parse it again")

// UnknownPlan returns the *Error of a request for a plan that the engine does not have. It does not check that the
// plan is missing, and reads the folder of plans only the first time. Servers that keep their own list of plans use
// it. The error says so if the last Reload was refused: the plan may be new.
func (in Intake) UnknownPlan(requestID, plan string) *Error {
	kept := in.engine.kept
	err := kept.Present().Library.Unknown(plan)
	if last := kept.Reloads().Err; last != nil && !errors.Is(last, ErrNoFormer) {
		err = fmt.Errorf("%w; the last reload was refused", err)
	}
	return planError(requestID, err)
}

// Own returns the name of the plan, or of the alias, for requests that do not name a plan; "": there is none.
func (in Intake) Own() string {
	return in.engine.kept.Present().Own()
}

// Reactor returns the loop of an engine with the Reactor model, and nil with another model. A front gives it the
// connections of its clients, and calls Start from their callbacks, so that no other goroutine comes between socket
// and scheduler. The owner of these connections closes them before the engine. A callback on the loop must not block.
func (in Intake) Reactor() *reactor.Reactor {
	if async, ok := in.engine.scheduler.(*scheduler.Async); ok {
		return async.Reactor()
	}
	return nil
}

// call is one request from Start to its answer: what the scheduler runs, and what its answer needs. It is reused, so
// that a request allocates only its answer. It belongs to Start, then to the scheduler, then to deliver.
type call struct {
	scheduler.Execution
	asked
	engine    *Engine
	deliverFn func(*scheduler.Result) // the method deliver, bound once
}

// asked is what one request wants of its answer, and who gets it.
type asked struct {
	generation *generation.Generation
	explain    Explain
	date       time.Time     // of its arrival
	alias      *plan.Alias   // the alias that the request asked for; nil: it named a plan
	side       string        // of alias
	versioned  bool          // the answer shows its version
	traced     bool          // the request asked for its trace
	sampled    bool          // the engine's sink gets a recording
	drift      *drift.Series // counts what the request computes with; nil: it does not
	shortened  bool          // the caller's context has set the deadline
	done       func(*Answer, error)
	served     *served.Record // of the log of what was served; nil: the answer has no line
	recorded   *recorder.Job  // what becomes its record; nil: it is not recorded
	settles    bool           // the caller says whether a client has taken the answer
}

// follow returns the name of the plan that a request asks for, "" for the engine's own choice. An alias chooses by the user.
func (c *call) follow(r *Request) string {
	if c.generation.Aliases == nil {
		return r.Plan
	}
	a := c.generation.Alias(r.Plan)
	if a == nil {
		return r.Plan
	}
	var room [rowset.IDBytesMax]byte
	name := ""
	c.alias = a
	c.side, name = a.Side(request.AppendUser(room[:0], r))
	return name
}

// aliasName returns the name of the alias that the request asked for, or "".
func (c *call) aliasName() string {
	if c.alias == nil {
		return ""
	}
	return c.alias.Name
}

// version says which plan the request runs, or has run in the end.
func (c *call) version(instead *scheduler.Instead) Version {
	return versionOf(c.generation, c.Graph, c.alias, c.side, instead)
}

// versionOf is Generation.Version of a plan that may have run in place of another.
func versionOf(g *generation.Generation, graph *plan.Graph, alias *plan.Alias, side string, instead *scheduler.Instead) Version {
	v := g.Version(graph, alias, side)
	if instead != nil {
		v.InsteadOf = instead.Of.Name
	}
	return v
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
	if r.Traffic == "" && !r.Trace { // It is a user's: tests, bots and who looks for a fault compute with what they please.
		c.drift = c.engine.drift.Due(graph.Name, c.aliasName(), c.side, c.Arrived)
		c.KeepRows = c.KeepRows || c.drift != nil
	}
	if err := c.engine.scheduler.Submit(&c.Execution, c.deliverFn); err != nil {
		failed := runError(r.ID, err, graph)
		failed.version = c.version(nil)
		c.free()
		return failed
	}
	return nil
}

// prepare checks the request. It is the only place that fills in what the scheduler runs.
func (c *call) prepare(r *Request, graph *plan.Graph, planErr error) error {
	e, arrived := c.engine, c.Arrived
	if refused := e.check(r, c.generation); refused != nil {
		return refused
	}
	c.Mode = r.Scheduling
	if r.Explain.Asked() {
		c.explain, c.KeepRows = r.Explain, true
	}
	params := &c.Params
	var refused *request.Error
	if *params, refused = request.Values(r, c.generation.Registry); refused != nil {
		return e.Intake().Refused(refused)
	}
	c.date = e.date(arrived)
	now := c.date
	if !r.Now.IsZero() {
		now = r.Now
	}
	params.SetNow(float64(now.UnixMicro()) / 1e6)
	if planErr == generation.ErrNoPlan {
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
		c.Required = indices
	}
	if bad := givenInts(r.ID, graph, params); bad != nil {
		return bad
	}
	resident, texts := graph != nil && len(graph.Resident) > 0, graph != nil && graph.TextIDs
	if fallback := c.generation.Fallback(graph); fallback != nil && len(r.Require) == 0 { // whose nodes are of this plan
		if bad := givenInts(r.ID, fallback, params); bad != nil {
			bad.Detail = "plan " + fallback.Name + ", which answers in place of plan " + graph.Name + " if that has too few rows: " + bad.Detail
			return bad
		}
		c.Fallback = fallback
		resident, texts = resident || len(fallback.Resident) > 0, texts || fallback.TextIDs
	}
	var kept *rowset.IDDict
	if resident {
		c.Residents, kept = c.generation.Snapshot()
	}
	if texts {
		params.SetIDs(kept.Extend())
	}
	c.serve(r, graph)
	c.record(r, graph)
	c.Flow = r.Flow
	c.Graph, c.UserID, c.Deltas = graph, r.UserID, r.SchemaDeltas
	c.versioned = r.PlanVersion || c.alias != nil
	c.traced, c.sampled = r.Trace, e.sample(c.Context)
	if c.traced || c.sampled {
		c.Record = e.options.TraceDetail
	}
	for _, limit := range [...]time.Duration{e.options.Timeout, r.Timeout} {
		if limit > 0 {
			c.Deadline = c.Deadline.Earlier(arrived.Add(limit))
		}
	}
	return nil
}

// givenInts returns the *Error of a request without an integer that the plan leaves to requests, or with one out of
// bounds.
func givenInts(id string, graph *plan.Graph, params *expr.Params) *Error {
	if graph == nil {
		return nil
	}
	for _, given := range graph.RequestRules {
		if err := given.Check(params); err != nil {
			code := request.CodeInvalidParams
			if given.Parameter().Context {
				code = request.CodeInvalid
			}
			return invalid(id, code, err)
		}
	}
	return nil
}

// check returns the *Error of a request that no engine with that generation can run, or that asks for something that
// this engine does not allow.
func (e *Engine) check(r *Request, g *generation.Generation) *Error {
	if refused := request.Check(r, g.Registry); refused != nil {
		return e.Intake().Refused(refused)
	}
	if g, ok := e.allowed.Lacking(r); ok {
		return invalid(r.ID, request.CodeInvalid, fmt.Errorf("this engine does not allow %q in requests", g.String()))
	}
	if r.Scheduling != "" {
		if err := r.Scheduling.Check(); err != nil {
			return invalid(r.ID, request.CodeInvalid, fmt.Errorf("scheduling %w", err))
		}
	}
	return nil
}

// required returns the indices of the nodes that a request requires, by their ids or labels.
func required(g *plan.Graph, names []string) ([]int, error) {
	if len(names) > request.RequireMax {
		return nil, fmt.Errorf("require must name at most %d nodes, got %d", request.RequireMax, len(names))
	}
	if g == nil {
		return nil, errors.New("require names nodes, and the request has no plan")
	}
	var indices []int
	for _, name := range names {
		found := false
		for _, n := range g.Nodes {
			if n.ID == name || n.Trace != "" && n.Trace == name {
				indices, found = append(indices, n.Index), true
			}
		}
		if !found {
			return nil, unknownNode(g, name)
		}
	}
	return indices, nil
}

func unknownNode(g *plan.Graph, name string) error {
	var known []string
	for _, n := range g.Nodes {
		known = append(known, n.ID)
		if n.Trace != "" {
			known = append(known, n.Trace)
		}
	}
	hint := ""
	if near, ok := errtext.Nearest(name, known); ok {
		hint = "; did you mean " + errtext.Quote(near) + "?"
	}
	return fmt.Errorf("require names the node %s, and plan %s has none of that id or label%s", errtext.Quote(name), errtext.Quote(g.Name), hint)
}

// sample reports whether the engine's sink gets the present request, whose caller gave ctx.
func (e *Engine) sample(ctx context.Context) bool {
	if e.chooser != nil && !e.chooser.Wants(ctx) {
		return false
	}
	switch every := uint64(e.options.TraceSample); every {
	case 0:
		return false
	case 1: // no counting, which would make all submitting goroutines share one counter
		return true
	default:
		return (e.asked.Add(1)-1)%every == 0
	}
}

// calendar is a reading of the calendar, and of the engine's clock at the same time. Immutable.
type calendar struct {
	date time.Time
	at   clock.Time
}

// calendarAge is how old a reading of the calendar may be when it dates another instant.
const calendarAge = time.Second

// date returns the date of the present instant. It reads the calendar, which costs two readings of the clock, only now and then.
func (e *Engine) date(now clock.Time) time.Time {
	if e.options.Now != nil {
		return e.options.Now()
	}
	c := e.calendar.Load()
	if c == nil || now.Sub(c.at) > calendarAge {
		c = &calendar{date: time.Now().Round(0).UTC(), at: e.clock.Now()}
		e.calendar.Store(c)
	}
	return c.date.Add(now.Sub(c.at))
}

// answerWithoutPlan delivers the synthetic answer: on the loop if one is running.
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
	e, done, ctx, settles := c.engine, c.done, c.Context, c.settles
	a, err := c.outcome(result)
	c.endRecord(a, err, result)
	var line *served.Record
	if c.served != nil {
		line, c.served = c.served, nil
		if a == nil {
			e.served.Drop(line)
			line = nil
		} else if settles {
			a.served = line
		}
	}
	c.free()
	e.deliver(done, a, err)
	if line != nil && !settles {
		line.Undelivered = ctx != nil && ctx.Err() != nil
		e.served.Put(line)
	}
}

// outcome returns the answer or the *Error of a run that has ended. A panic is an *Error, too: the caller waits for one of the two.
func (c *call) outcome(result *scheduler.Result) (a *Answer, err error) {
	e := c.engine
	defer func() {
		if recovered := recover(); recovered != nil {
			a, err = nil, e.faulty(c.RequestID, "while an answer was made", recovered)
		}
	}()
	recording, elapsed := c.recording(result), e.ended(result).Sub(c.Arrived)
	if result.Err != nil {
		failed := c.failed(result.Err, result.Instead())
		failed.Elapsed, failed.QueueDelay, failed.Cost, failed.recording = elapsed, result.QueueDelay, result.Cost, recording
		return nil, failed
	}
	if c.Graph != nil {
		e.logLacking(c.Graph, result)
	}
	a = &Answer{
		RequestID: c.RequestID, Elapsed: elapsed, generation: c.generation, result: result, showDeltas: c.Deltas, recording: recording,
	}
	c.fill(a, result)
	if c.Graph != nil {
		a.Plan, a.graph, a.alias, a.side, a.versioned = c.Graph.Name, c.Graph, c.alias, c.side, c.versioned
		if c.drift != nil && result.Instead() == nil { // It is of the plan that was asked for.
			c.drift.Count(c.Graph, result.Rows())
		}
		if c.explain.Asked() {
			a.explained = newExplained(&c.Execution, result, c.explain)
		}
	}
	return a, nil
}

// Contain calls fn, which makes a reply out of an answer, for a caller that owes a reply in any case. A panic is logged
// and becomes an *Error.
func (in Intake) Contain(requestID string, fn func()) (err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			err = in.engine.faulty(requestID, "while a reply was made", recovered)
		}
	}()
	fn()
	return nil
}

// failed returns the *Error for the error of a run.
func (c *call) failed(err error, instead *scheduler.Instead) *Error {
	if err == scheduler.ErrAbandoned {
		return cancelled(c.RequestID, c.Context)
	}
	e := runError(c.RequestID, err, c.Graph)
	if c.Graph != nil {
		e.version = c.version(instead)
	}
	if instead != nil {
		e.Detail = fmt.Sprintf("plan %s, in place of plan %s (%s): %s", c.Graph.Name, instead.Of.Name, oneLine(instead.Err.Error()), e.Detail)
	}
	if late := (*scheduler.TimeoutError)(nil); c.shortened && errors.As(err, &late) && late.OfRequest() {
		e.causes = append(e.causes, context.DeadlineExceeded, context.Cause(c.Context))
	}
	return e
}

// deliver calls the callback of a request, on the loop or on any other goroutine. It logs a panic
// of done. inCallback looks for this function by its name.
func (e *Engine) deliver(done func(*Answer, error), a *Answer, err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			e.logFault("in a callback", "", recovered, debug.Stack())
		}
	}()
	done(a, err)
}

func (c *call) free() {
	c.unserved()
	c.Renew()
	c.asked = asked{}
	c.engine.calls.Put(c)
}

// recording completes the recording of an ended request. It gives the recording to the engine's sink if that is due,
// and returns it if the request asked for it.
func (c *call) recording(result *scheduler.Result) *trace.Recording {
	r := result.Recording
	if r == nil {
		return nil
	}
	if r.PlanVersion = c.version(result.Instead()); result.FailedFallback() != nil { // which is what was recorded last
		r.PlanVersion = versionOf(c.generation, result.FailedFallback().Of, c.alias, c.side, &scheduler.Instead{Of: c.Graph})
	}
	r.PlanVersion.Services = result.Services()
	r.Context, r.RequestID, r.At = c.Context, c.RequestID, c.date.Truncate(time.Microsecond).UTC()
	if c.sampled {
		c.engine.emit(r)
	}
	if !c.traced {
		return nil
	}
	return r.Keep()
}

// ended returns when a request with a result ended: as its trace says, if it is recorded.
func (e *Engine) ended(result *scheduler.Result) clock.Time {
	if result.Recording != nil {
		return result.Recording.Ended
	}
	return e.clock.Now()
}

// emit gives a recording to the engine's sink. It logs a panic of the sink.
func (e *Engine) emit(r *trace.Recording) {
	defer func() {
		if recovered := recover(); recovered != nil {
			e.logFault("in the trace sink", "", recovered, debug.Stack())
		}
	}()
	e.options.TraceSink.Take(r)
}

// toldEvery is how often the log says the same of one plan, or of one of its nodes; and toldAgain when it tries again to say what
// was left out because there were too many lines.
const (
	toldEvery = time.Minute
	toldAgain = time.Second
)

// toldMax is the number of things at which a toldLog forgets what it has logged.
const toldMax = 1024

// toldLog says what the log need not mention yet. Any goroutine.
type toldLog struct {
	mu   sync.Mutex
	next map[told]clock.Time // when the log may mention it again; guarded by mu
}

// told is a message about a plan, or about the node of that id. Immutable.
type told struct{ plan, node, message string }

// due reports whether the log should say that now.
func (l *toldLog) due(t told, now clock.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if next, told := l.next[t]; told && now < next {
		return false
	}
	if l.next == nil || len(l.next) >= toldMax {
		l.next = make(map[told]clock.Time)
	}
	l.next[t] = now.Add(toldEvery)
	return true
}

// lost notes that the log has not said that.
func (l *toldLog) lost(t told, now clock.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next[t] = now.Add(toldAgain)
}

// say writes a line about a plan, or about one of its nodes, at most once in toldEvery. It calls attrs only then, and does not wait for
// the log.
func (e *Engine) say(level slog.Level, message, name string, n *plan.Node, attrs func() []slog.Attr) {
	t := told{plan: name, message: message}
	if n != nil {
		t.node = n.ID
	}
	now := e.clock.Now()
	if !e.told.due(t, now) {
		return
	}
	all := []slog.Attr{slog.String("plan", name)}
	if n != nil {
		all = append(all, slog.String("node", n.ID), slog.String("op", n.Op), slog.String("label", n.Trace))
	}
	all = append(all, attrs()...)
	if !e.lines.Put(level, message, func() []slog.Attr { return all }) {
		e.told.lost(t, now)
	}
}

// logLacking writes the lines of an answer that is not complete: what nodes could not read or lack, and what the answer has too few of. These come first: of many lines the
// log leaves out the last.
func (e *Engine) logLacking(g *plan.Graph, result *scheduler.Result) {
	if short := result.Short(); short != nil {
		e.say(slog.LevelWarn, "an answer is below minimum", g.Name, nil, func() []slog.Attr {
			return []slog.Attr{
				slog.String("output", short[0].Output), slog.Int("rows", short[0].Rows), slog.Int("min_rows", short[0].MinRows),
				slog.Bool("degraded", result.Degraded()),
			}
		})
	}
	if f := result.Instead(); f != nil {
		e.say(slog.LevelWarn, "an answer is of a fallback", f.Of.Name, nil, func() []slog.Attr {
			return []slog.Attr{slog.String("fallback", g.Name), slog.String("error", errtext.Cut(f.Err.Error()))}
		})
	}
	if f := result.FailedFallback(); f != nil {
		e.say(slog.LevelWarn, "a fallback has failed", g.Name, nil, func() []slog.Attr {
			return []slog.Attr{slog.String("fallback", f.Of.Name), slog.String("error", errtext.Cut(f.Err.Error()))}
		})
	}
	if !slices.ContainsFunc(result.Outputs, func(o rowset.RowSet) bool { return o.Len() > 0 }) {
		e.say(slog.LevelInfo, "an answer is empty", g.Name, nil, func() []slog.Attr { return []slog.Attr{slog.Bool("degraded", result.Degraded())} })
	}
	for _, n := range result.Completeness() {
		if m := n.Malformed; m != nil {
			what := "entries are not ids"
			if m.Values {
				what = "values are not of their type"
			}
			e.say(slog.LevelWarn, what, g.Name, n.Node, func() []slog.Attr {
				return []slog.Attr{slog.Int("malformed", m.Count), slog.Int("of", m.Of), slog.String("first", m.First), slog.String("key", m.Key)}
			})
		}
		if n.Status != NodeOK {
			e.say(slog.LevelWarn, "an answer is degraded", g.Name, n.Node, func() []slog.Attr {
				return []slog.Attr{slog.String("status", string(n.Status)), slog.Int("dropped", n.Dropped), slog.String("error", errtext.Cut(fmt.Sprint(n.Err)))}
			})
		}
	}
}
