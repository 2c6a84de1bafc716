package rankd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/internal/excerpt"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/remote"
	"github.com/rankd/rankd/request"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// Classes of errors, for errors.Is. An error may belong to several.
var (
	// ErrInvalidRequest: the request itself is wrong: its JSON, user or parameters.
	ErrInvalidRequest = errors.New("invalid request")
	// ErrUnknownPlan: the request names a plan that does not exist, or none where it must.
	ErrUnknownPlan = plan.ErrUnknown
	// ErrInvalidPlan: the plan exists and was refused.
	ErrInvalidPlan = errors.New("invalid plan")
	// ErrTimeout: one of the following three.
	ErrTimeout = errors.New("timed out")
	// ErrRequestDeadline: the request's deadline passed before all nodes had started.
	ErrRequestDeadline = scheduler.ErrRequestDeadline
	// ErrNotLetIn: the request's deadline passed while it waited to be let in, so it never ran; also an ErrRequestDeadline.
	ErrNotLetIn = scheduler.ErrNotLetIn
	// ErrNodeTimeout: a node was running when its deadline came.
	ErrNodeTimeout = scheduler.ErrNodeTimeout
	// ErrDeadlineBeforeStart: a node's deadline had passed when it was about to start.
	ErrDeadlineBeforeStart = scheduler.ErrDeadlineBeforeStart
	// ErrClosed: the engine is closing or closed.
	ErrClosed = scheduler.ErrShuttingDown
	// ErrOverloaded: Options.MaxInflight requests run and Options.MaxQueue wait, so this one was refused: at once, or later, in
	// favor of a caller with fewer requests that wait.
	ErrOverloaded = scheduler.ErrOverloaded
	// ErrAbandoned: the context of the request was cancelled before the request had ended.
	ErrAbandoned = scheduler.ErrAbandoned
	// ErrCallback: the caller is a callback of an engine or the body of a task, which must not
	// wait for an engine.
	ErrCallback = errors.New("called from a callback or a body")
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

// The texts of errors about requests that were sound but failed. Those about time are the
// original engine's. Texts about unsound requests are in package request.
const (
	textRequestDeadline     = "Request deadline exceeded"
	textNodeTimeout         = "Node execution timeout"
	textDeadlineBeforeStart = "Deadline exceeded before node start"

	textUnknownPlan  = "Unknown plan"
	textInvalidPlan  = "Invalid plan"
	textShuttingDown = "Shutting down"
	textGivenUp      = "Given up" // of an optional node, in an answer
	textCancelled    = "Request cancelled"
	textOverloaded   = "Overloaded"

	textRedisConnect  = "Redis connection failed"        // no connection could be made
	textRedisLost     = "Redis connection lost"          // a connection was lost
	textRedisTimeout  = "Redis timeout"                  // no answer in time
	textRedisBusy     = "Redis in-flight limit exceeded" // too much in flight
	textRedisProtocol = "Redis protocol error"           // malformed replies
	textRedis         = "Redis error"                    // an error reply

	// Error replies that concern the server and not the command: see resp.ServerError.Meaning.
	textRedisLoading    = "Redis is loading its data"
	textRedisReadOnly   = "Redis is a read-only replica"
	textRedisMasterDown = "Redis replica has lost its primary"
	textRedisTryAgain   = "Redis Cluster is moving keys"
	textRedisDown       = "Redis Cluster is down"
	textRedisMoved      = "Redis Cluster redirects"
	textRedisNoAuth     = "Redis wants a password"
	textRedisNoPerm     = "Redis denies permission"

	// The same for a service behind an endpoint of kind http.
	textRemoteConnect  = "Service connection failed"
	textRemoteLost     = "Service connection lost"
	textRemoteTimeout  = "Service timeout"
	textRemoteBusy     = "Service in-flight limit exceeded"
	textRemoteProtocol = "Service protocol error"
	textRemoteTooLarge = "Service answer too large"
	textRemote         = "Service error" // an answer with a status that is not 2xx

	textRows      = "Too many rows"
	textPoolBusy  = "CPU queue full"
	textPanic     = "Task panicked"
	textContract  = "Task contract violation"
	textParameter = "Invalid node"
	textNode      = "Node execution failed" // any other error of a task
	textRun       = "Request failed"
)

// Error says why a request failed. Immutable; any goroutine.
type Error struct {
	RequestID string // Request.ID
	Text      string // one of a few known sentences: "Node execution timeout"
	Detail    string // the exact cause, one line: line ends of a cause are shown as spaces
	Node, Op  string // the node that failed; empty if it was none
	// SourceSpan is the place in the source of the plan that the node or its expression came
	// from, "plans/x.plan.ts:14:9". Empty if the plan's artifact has none.
	SourceSpan string
	// Elapsed is the time from the arrival of a request that ran or waited to its failure. Zero: it did neither.
	Elapsed time.Duration
	// QueueDelay is the part of Elapsed in which the request waited to be let in.
	QueueDelay time.Duration

	causes    []error
	recording *trace.Recording // nil unless the request asked for it, and ran
}

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

// Refused returns the *Error for an error of package request, or of reading requests.
func Refused(err error) *Error {
	var refused *request.Error
	if errors.As(err, &refused) {
		return &Error{
			RequestID: refused.RequestID, Text: refused.Code, Detail: refused.Detail,
			causes: []error{ErrInvalidRequest, err},
		}
	}
	return &Error{
		RequestID: request.NewID(), Text: request.CodeInvalidJSON, Detail: oneLine("reading failed: " + err.Error()),
		causes: []error{ErrInvalidRequest, err},
	}
}

// notPermitted returns the *Error for a request that asks for what the engine does not let requests choose.
func notPermitted(id string, err error) *Error {
	return Refused(&request.Error{RequestID: id, Code: request.CodeInvalid, Detail: oneLine(err.Error()), Offset: -1})
}

// planError returns the *Error for an error of the plan library.
func planError(id string, err error) *Error {
	if err == errNoPlan || errors.Is(err, plan.ErrUnknown) || errors.Is(err, plan.ErrBadName) {
		return &Error{RequestID: id, Text: textUnknownPlan, Detail: oneLine(err.Error()), causes: []error{ErrUnknownPlan, err}}
	}
	return &Error{RequestID: id, Text: textInvalidPlan, Detail: oneLine(err.Error()), causes: []error{ErrInvalidPlan, err}}
}

// UnknownPlan returns the *Error of a request for a plan that the engine does not have. It takes the caller's word for that and reads
// no folder, but for the first time: a server that knows its plans refuses other names with it. Any goroutine.
func (e *Engine) UnknownPlan(requestID, plan string) *Error {
	return planError(requestID, e.library.Unknown(plan))
}

// cancelled returns the *Error for a request whose context has ended.
func cancelled(id string, ctx context.Context) *Error {
	cause := context.Cause(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &Error{RequestID: id, Text: textRequestDeadline, Detail: oneLine(cause.Error()), causes: []error{cause, ctx.Err(), ErrTimeout, ErrRequestDeadline}}
	}
	return &Error{RequestID: id, Text: textCancelled, Detail: oneLine(cause.Error()), causes: []error{cause, ctx.Err(), ErrAbandoned}}
}

// runError returns the *Error for an error of the scheduler: the text tells the kind of
// failure, the detail this one. graph is the plan that ran, nil if there was none.
func runError(id string, err error, graph *plan.Graph) *Error {
	e := &Error{RequestID: id, Text: textRun, causes: []error{err}}
	var node *scheduler.NodeError
	if errors.As(err, &node) {
		e.Text, e.Node, e.Op = textNode, excerpt.Cut(node.Node), node.Op
		err = node.Err
		if graph != nil {
			e.SourceSpan = excerpt.Cut(graph.SourceSpan(node.Node, err))
		}
	}
	e.Detail = oneLine(err.Error())
	if param := (*expr.ParamError)(nil); graph != nil && errors.As(err, &param) {
		e.Detail = paramDetail(graph.Registry, param)
		e.causes = append(e.causes, ErrInvalidRequest)
	}
	var class error
	if e.Text, class = textOf(err, e.Text); class != nil {
		e.causes = append(e.causes, class)
	}
	return e
}

// paramDetail says which value of the request is at fault, and why.
func paramDetail(reg *registry.Registry, e *expr.ParamError) string {
	p, _ := reg.Param(e.Param) // a plan reads none that it lacks
	place := "param"
	if p.Context {
		place = "context member"
	}
	if errors.Is(e.Err, expr.ErrNullPattern) {
		return fmt.Sprintf("the pattern in %s %s is missing: it is null, unset or not a string", place, excerpt.Quote(p.Name))
	}
	cause := strings.TrimPrefix(oneLine(e.Err.Error()), expr.ErrBadPattern.Error()+": ")
	return fmt.Sprintf("%v in %s %s: %s", expr.ErrBadPattern, place, excerpt.Quote(p.Name), cause)
}

// textOf returns the text for an error of the scheduler or of a node, and its class, which may be nil. other is the text
// for errors of no known kind.
func textOf(err error, other string) (text string, class error) {
	for _, known := range [...]struct {
		kind, class error
		text        string
	}{
		{scheduler.ErrOverloaded, nil, textOverloaded}, // first, so that a refusal costs little
		{scheduler.ErrNoPlan, ErrInvalidPlan, textInvalidPlan},
		{scheduler.ErrForeignPlan, ErrInvalidPlan, textInvalidPlan},
		{scheduler.ErrRequestDeadline, ErrTimeout, textRequestDeadline},
		{scheduler.ErrNodeTimeout, ErrTimeout, textNodeTimeout},
		{scheduler.ErrDeadlineBeforeStart, ErrTimeout, textDeadlineBeforeStart},
		{scheduler.ErrShuttingDown, nil, textShuttingDown},
		{scheduler.ErrAbandoned, nil, textCancelled},
		{scheduler.ErrGivenUp, nil, textGivenUp},
		// An error of Redis matches task.ErrRedis too, and may have another of these as its cause.
		{resp.ErrConnectionLost, nil, textRedisLost},
		{resp.ErrTimeout, nil, textRedisTimeout},
		{resp.ErrConnect, nil, textRedisConnect},
		{resp.ErrQueueFull, ErrBusy, textRedisBusy},
		{resp.ErrProtocol, nil, textRedisProtocol},
		{task.ErrRedis, nil, textRedis},
		{remote.ErrConnectionLost, nil, textRemoteLost},
		{remote.ErrTimeout, nil, textRemoteTimeout},
		{remote.ErrConnect, nil, textRemoteConnect},
		{remote.ErrQueueFull, ErrBusy, textRemoteBusy},
		{remote.ErrProtocol, nil, textRemoteProtocol},
		{remote.ErrTooLarge, nil, textRemoteTooLarge},
		{task.ErrRemote, nil, textRemote},
		{cpupool.ErrQueueFull, ErrBusy, textPoolBusy},
		{task.ErrPanic, nil, textPanic},
		{task.ErrContract, nil, textContract},
		{task.ErrTooManyRows, nil, textRows},
		{task.ErrInvalid, nil, textParameter},
	} {
		switch {
		case !errors.Is(err, known.kind):
		case known.kind == task.ErrRedis:
			return replyText(err), known.class
		default:
			return known.text, known.class
		}
	}
	return other, nil
}

// replyText returns the text for an error reply of Redis.
func replyText(err error) string {
	var reply *resp.ServerError
	if !errors.As(err, &reply) {
		return textRedis
	}
	switch reply.Code() {
	case "LOADING":
		return textRedisLoading
	case "READONLY":
		return textRedisReadOnly
	case "MASTERDOWN":
		return textRedisMasterDown
	case "TRYAGAIN":
		return textRedisTryAgain
	case "CLUSTERDOWN":
		return textRedisDown
	case "MOVED", "ASK":
		return textRedisMoved
	case "NOAUTH":
		return textRedisNoAuth
	case "NOPERM":
		return textRedisNoPerm
	default:
		return textRedis
	}
}

// oneLine returns text with its line ends as spaces.
func oneLine(text string) string {
	if !strings.ContainsAny(text, "\r\n") {
		return text
	}
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\r' || r == '\n' }), " ")
}
