package rankd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/generation"
	"github.com/rankd/rankd/internal/outcome"
	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// Classes of errors, for errors.Is. An error may belong to several.
var (
	// ErrInvalidRequest: the request itself is wrong: its JSON, user or parameters.
	ErrInvalidRequest = errors.New("invalid request")
	// ErrUnknownPlan: the request names a plan that does not exist, or must name one and does not.
	ErrUnknownPlan = plan.ErrUnknown
	// ErrInvalidPlan: the plan exists and was refused.
	ErrInvalidPlan = errors.New("invalid plan")
	// ErrTimeout: one of the following three.
	ErrTimeout = errors.New("timed out")
	// ErrRequestDeadline: the request's deadline passed before all nodes had started.
	ErrRequestDeadline = scheduler.ErrRequestDeadline
	// ErrNotAdmitted: the request's deadline passed while it waited for admission, so it never ran; also an ErrRequestDeadline.
	ErrNotAdmitted = scheduler.ErrNotAdmitted
	// ErrNodeTimeout: a node was running when its deadline came.
	ErrNodeTimeout = scheduler.ErrNodeTimeout
	// ErrDeadlineBeforeStart: a node's deadline had passed when it was about to start.
	ErrDeadlineBeforeStart = scheduler.ErrDeadlineBeforeStart
	// ErrClosed: the engine is closing or closed.
	ErrClosed = scheduler.ErrShuttingDown
	// ErrOverloaded: Options.MaxInflight requests run and Options.MaxQueue wait, so this one was refused: at once, or
	// later, in favor of a caller with fewer waiting requests.
	ErrOverloaded = scheduler.ErrOverloaded
	// ErrAbandoned: the context of the request was cancelled before the request had ended.
	ErrAbandoned = scheduler.ErrAbandoned
	// ErrCallback: the caller is a callback of an engine or the body of a task, which must not
	// wait for an engine.
	ErrCallback = errors.New("called from a callback or a body")
	// ErrBelowMinimum: an output has fewer rows than its plan wants (min_rows), and the plan says that this is an error.
	ErrBelowMinimum = scheduler.ErrBelowMinimum
	// ErrRedis: Redis answered with an error, or could not be asked.
	ErrRedis = task.ErrRedis
	// ErrRemote: the service behind an endpoint of kind http answered with an error, or could not be asked.
	ErrRemote = task.ErrRemote
	// ErrBusy: the CPU queue or an endpoint's in-flight limit is full.
	ErrBusy = errors.New("busy")
	// ErrTooManyRows: the nodes of the request made more rows than Options.MaxRows together.
	ErrTooManyRows = task.ErrTooManyRows
	// ErrInvalidNode: a node's parameter is out of range, or a column that it needs is missing.
	ErrInvalidNode = task.ErrInvalid
	// ErrContract: a task broke the contract of its Spec.
	ErrContract = task.ErrContract
	// ErrPanic: a task panicked.
	ErrPanic = task.ErrPanic
)

const (
	textInvalidPlan = "Invalid plan"
	textNode        = "Node execution failed" // an error of a task, of an unknown kind
)

// Error says why a request failed. Immutable; any goroutine.
type Error struct {
	Class     outcome.Class // its class for fronts and metrics; never outcome.OK
	RequestID string        // Request.ID
	Text      string        // one of a few known sentences: "Node execution timeout"
	Detail    string        // the exact cause, one line: line ends of a cause are shown as spaces
	Node, Op  string        // the node that failed; empty if no node did
	// SourceSpan is the place in the source of the plan that the node or its expression came
	// from, "plans/x.plan.ts:14:9". Empty if the plan's artifact has none.
	SourceSpan string
	// Elapsed is the time from the arrival of a request that ran or waited to its failure. Zero: it did neither.
	Elapsed time.Duration
	// QueueDelay is the part of Elapsed in which the request waited for admission.
	QueueDelay time.Duration
	// Cost is what the request has cost until it failed.
	Cost Cost

	causes    []error
	version   Version
	recording *trace.Recording // nil unless the request asked for it, and ran
}

// Version says which plan the request ran, or would have run. It is zero if the request was refused before that was
// known.
func (e *Error) Version() Version { return e.version }

// Trace returns what ran when before the request failed, if Request.Trace was set and the request ran; otherwise nil.
// Each call assembles it anew.
func (e *Error) Trace() *trace.Trace {
	if e.recording == nil {
		return nil
	}
	return e.recording.Trace()
}

// Error implements error.
func (e *Error) Error() string {
	s := e.Text
	if e.Op != "" {
		s += ": node " + e.Node + " (" + e.Op + ")"
	}
	if e.SourceSpan != "" {
		s += ": " + e.SourceSpan
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Unwrap returns the classes and causes of e.
func (e *Error) Unwrap() []error { return e.causes }

// AppendJSON appends e as one line of JSON, line end included, and returns the extended buffer.
func (e *Error) AppendJSON(dst []byte) []byte {
	return request.AppendFailure(dst, &request.Failure{
		RequestID: e.RequestID, Error: e.Text, Detail: e.Detail, Node: e.Node, Op: e.Op, SourceSpan: e.SourceSpan,
		Trace: traceJSON(e.Trace()),
	})
}

// Refused returns the *Error for an error of package request, or of reading requests. It returns an *Error as it is.
func (Intake) Refused(err error) *Error {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e
	}
	if refused := (*request.Error)(nil); errors.As(err, &refused) {
		e := invalid(refused.RequestID, refused.Code, err)
		e.Class, e.Detail = refused.Class(), oneLine(refused.Detail)
		return e
	}
	return invalid(request.NewID(), request.CodeInvalidJSON, fmt.Errorf("reading failed: %w", err))
}

// invalid returns the *Error for a request that is wrong, or asks for something that the engine does not allow.
func invalid(id, code string, why error) *Error {
	return &Error{Class: outcome.BadRequest, RequestID: id, Text: code, Detail: oneLine(why.Error()), causes: []error{ErrInvalidRequest, why}}
}

// waits returns the *Error for callers that must not wait for an engine.
func waits(id, detail string) *Error {
	return &Error{Class: outcome.Internal, RequestID: id, Text: outcome.Internal.Sentence(), Detail: detail, causes: []error{ErrCallback}}
}

// planError returns the *Error for an error of the plan library.
func planError(id string, err error) *Error {
	e := &Error{Class: outcome.Internal, RequestID: id, Text: textInvalidPlan, Detail: oneLine(err.Error()), causes: []error{ErrInvalidPlan, err}}
	if err == generation.ErrNoPlan || errors.Is(err, plan.ErrUnknown) || errors.Is(err, plan.ErrBadName) {
		e.Class, e.Text, e.causes[0] = outcome.UnknownPlan, outcome.UnknownPlan.Sentence(), ErrUnknownPlan
	}
	return e
}

// cancelled returns the *Error for a request whose context has ended.
func cancelled(id string, ctx context.Context) *Error {
	cause := context.Cause(ctx)
	e := &Error{Class: outcome.Abandoned, RequestID: id, Text: outcome.Abandoned.Sentence(), Detail: oneLine(cause.Error()), causes: []error{cause, ctx.Err(), ErrAbandoned}}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e.Class, e.Text, e.causes = outcome.Timeout, outcome.Timeout.Sentence(), []error{cause, ctx.Err(), ErrTimeout, ErrRequestDeadline}
	}
	return e
}

// faulty returns the *Error for a panic of rankd itself, which it logs.
func (e *Engine) faulty(id, while string, recovered any) *Error {
	e.logFault(while, id, recovered, debug.Stack())
	return runError(id, scheduler.ErrFault, nil)
}

// linesPerSecond bounds the lines that requests cause: of panics, since strangers may find a request that causes one, and of what cannot be read.
const linesPerSecond = 10

// logFault logs a panic of the engine, or of a program's functions. Nobody waits for the log. where completes the
// sentence; id is of the request, empty if it is not known. Any goroutine.
func (e *Engine) logFault(where, id string, recovered any, stack []byte) {
	e.lines.Put(slog.LevelError, "panic "+where, func() []slog.Attr {
		attrs := []slog.Attr{slog.Any("panic", recovered), slog.String("stack", string(stack))}
		if id != "" {
			attrs = append(attrs, slog.String("request_id", errtext.Cut(id)))
		}
		return attrs
	})
}

// flushLines waits for the lines so far, for a second at most.
func (e *Engine) flushLines() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = e.lines.Flush(ctx)
}

// runError returns the *Error for an error of the scheduler. The text names the kind of failure; the detail describes
// this one. graph is the plan that ran, nil if there was none.
func runError(id string, err error, graph *plan.Graph) *Error {
	e := &Error{RequestID: id, Text: outcome.Internal.Sentence(), causes: []error{err}}
	var node *scheduler.NodeError
	if errors.As(err, &node) {
		e.Text, e.Node, e.Op = textNode, errtext.Cut(node.Node), node.Op
		err = node.Err
		if graph != nil {
			e.SourceSpan = errtext.Cut(graph.SourceSpan(node.Node, err))
		}
	}
	e.Detail = oneLine(err.Error())
	if param := (*expr.ParamError)(nil); graph != nil && errors.As(err, &param) {
		if p, ok := graph.Registry.Param(param.Param); ok {
			e.Detail = paramDetail(p, param)
			e.Class, e.causes = outcome.BadRequest, append(e.causes, ErrInvalidRequest)
		} else {
			e.Detail = fmt.Sprintf("%s: the plan reads the param with the id %d, which params.toml lacks: bring it back, or compile the plan without it", e.Detail, param.Param)
		}
	}
	known := failureOf(err, e.Text)
	if e.Class == outcome.BadRequest && known.kind == task.ErrInvalid {
		known.text = outcome.BadRequest.Sentence() // the node is as it should be
	}
	if e.Text = known.text; e.Class == outcome.OK {
		e.Class = known.class
	}
	if known.family != nil {
		e.causes = append(e.causes, known.family)
	}
	return e
}

// paramDetail says which value of the request is at fault, and why.
func paramDetail(p *registry.Param, e *expr.ParamError) string {
	place := "param"
	if p.Context {
		place = "context member"
	}
	switch {
	case errors.Is(e.Err, expr.ErrNullPattern):
		return fmt.Sprintf("the pattern in %s %s is missing: it is null, unset or not a string", place, errtext.Quote(p.Name))
	case !errors.Is(e.Err, expr.ErrBadPattern):
		return fmt.Sprintf("%s %s: %s", place, errtext.Quote(p.Name), oneLine(e.Err.Error()))
	}
	cause := strings.TrimPrefix(oneLine(e.Err.Error()), expr.ErrBadPattern.Error()+": ")
	return fmt.Sprintf("%v in %s %s: %s", expr.ErrBadPattern, place, errtext.Quote(p.Name), cause)
}

// failure is a kind of error, and what clients get for it. Immutable.
type failure struct {
	kind   error
	class  outcome.Class
	text   string // Error.Text; empty: the text for unknown errors
	family error  // a further class of the kind; nil: none
}

// failures are the kinds of errors of the scheduler, of nodes and of what they ask. The first that matches counts.
var failures = [...]failure{
	{scheduler.ErrOverloaded, outcome.Overloaded, outcome.Overloaded.Sentence(), nil}, // first, so that a refusal costs little
	{scheduler.ErrNoPlan, outcome.Internal, textInvalidPlan, ErrInvalidPlan},
	{scheduler.ErrForeignPlan, outcome.Internal, textInvalidPlan, ErrInvalidPlan},
	{scheduler.ErrRequestDeadline, outcome.Timeout, outcome.Timeout.Sentence(), ErrTimeout},
	{scheduler.ErrNodeTimeout, outcome.Timeout, "Node execution timeout", ErrTimeout},
	{scheduler.ErrDeadlineBeforeStart, outcome.Timeout, "Deadline exceeded before node start", ErrTimeout},
	{scheduler.ErrShuttingDown, outcome.ShuttingDown, outcome.ShuttingDown.Sentence(), nil},
	{scheduler.ErrBelowMinimum, outcome.BelowMinimum, outcome.BelowMinimum.Sentence(), nil},
	{scheduler.ErrAbandoned, outcome.Abandoned, outcome.Abandoned.Sentence(), nil},
	{scheduler.ErrGivenUp, outcome.Internal, "Given up", nil}, // of an optional node, in an answer

	// An error of Redis matches task.ErrRedis too, and may have another of these as its cause.
	{resp.ErrProtocol, outcome.Unavailable, "Redis protocol error", nil}, // before the loss of the connection that follows
	{resp.ErrConnectionLost, outcome.Unavailable, "Redis connection lost", nil},
	{resp.ErrTimeout, outcome.Unavailable, "Redis timeout", nil},
	{resp.ErrConnect, outcome.Unavailable, "Redis connection failed", nil},
	{resp.ErrQueueFull, outcome.Overloaded, "Redis in-flight limit exceeded", ErrBusy},
	{task.ErrRedis, outcome.Unavailable, "Redis error", nil},

	// The same for a service behind an endpoint of kind http.
	{remote.ErrConnectionLost, outcome.Unavailable, "Service connection lost", nil},
	{remote.ErrTimeout, outcome.Unavailable, "Service timeout", nil},
	{remote.ErrConnect, outcome.Unavailable, "Service connection failed", nil},
	{remote.ErrQueueFull, outcome.Overloaded, "Service in-flight limit exceeded", ErrBusy},
	{remote.ErrPaused, outcome.Unavailable, "Service asks for a pause", nil},
	{remote.ErrProtocol, outcome.Unavailable, "Service protocol error", nil},
	{remote.ErrTooLarge, outcome.Unavailable, "Service answer too large", nil},
	{task.ErrRemote, outcome.Unavailable, "Service error", nil}, // an answer with a status that is not 2xx

	{cpupool.ErrQueueFull, outcome.Overloaded, "CPU queue full", ErrBusy},
	{task.ErrPanic, outcome.Internal, "Task panicked", nil},
	{task.ErrContract, outcome.Internal, "Task contract violation", nil},
	{task.ErrTooManyRows, outcome.Internal, "Too many rows", nil},
	{task.ErrInvalid, outcome.Internal, "Invalid node", nil},

	// A body may give its error one of these classes.
	{ErrTimeout, outcome.Timeout, "", nil},
	{ErrUnknownPlan, outcome.UnknownPlan, "", nil},
	{ErrInvalidRequest, outcome.BadRequest, "", nil},
	{ErrBusy, outcome.Overloaded, "", nil},
}

// failureOf returns the kind of an error of the scheduler or of a node. other is the text for errors of an unknown
// kind.
func failureOf(err error, other string) failure {
	for _, f := range failures {
		if errors.Is(err, f.kind) {
			switch f.kind {
			case task.ErrRedis:
				f.text = cmp.Or(replyText(err), f.text)
			case resp.ErrConnect:
				if reply := (*resp.ServerError)(nil); errors.As(err, &reply) && reply.Code() == noAuth && !reply.Sentinel {
					f.text = replies[noAuth]
				}
			}
			f.text = cmp.Or(f.text, other)
			return f
		}
	}
	return failure{class: outcome.Internal, text: other}
}

// replies are the texts for error replies of Redis that concern the server and not the command, by the code of the reply.
var replies = map[string]string{
	"LOADING":     "Redis is loading its data",
	"READONLY":    "Redis is a read-only replica",
	"MASTERDOWN":  "Redis replica has lost its primary",
	"TRYAGAIN":    "Redis Cluster is moving keys",
	"CLUSTERDOWN": "Redis Cluster is down",
	"MOVED":       "Redis Cluster redirects",
	"ASK":         "Redis Cluster redirects",
	noAuth:        "Redis wants a password",
	"NOPERM":      "Redis denies permission",
}

// noAuth is the code of the reply of a Redis that wants a password. Clients that say their name get it before a task does.
const noAuth = "NOAUTH"

// replyText returns the text for an error reply of Redis, "" if it has none of its own.
func replyText(err error) string {
	if reply := (*resp.ServerError)(nil); errors.As(err, &reply) {
		return replies[reply.Code()]
	}
	return ""
}

// oneLine returns text with its line ends as spaces.
func oneLine(text string) string {
	if !strings.ContainsAny(text, "\r\n") {
		return text
	}
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\r' || r == '\n' }), " ")
}
