package scheduler

import (
	"errors"
	"fmt"
	"time"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/plan"
)

// Conditions that end a request, for errors.Is. The errors of tasks, of Redis and of the CPU pool
// are in packages task, resp and cpupool.
var (
	// ErrNoPlan: the request has no plan.
	ErrNoPlan = errors.New("request without a plan")
	// ErrForeignPlan: the request's plan was compiled for another registry than the engine's, so its endpoints and
	// keys may differ.
	ErrForeignPlan = errors.New("plan was compiled for another registry")
	// ErrRequestDeadline: the request's deadline passed while nodes were still
	// to be started.
	ErrRequestDeadline = errors.New("request deadline exceeded")
	// ErrNotAdmitted: the request's deadline passed while it waited for admission; also an ErrRequestDeadline.
	ErrNotAdmitted = errors.New("request was not admitted before its deadline")
	// ErrNodeTimeout: a node was running when its effective deadline came, which is the
	// earliest of the request's deadline and the node's timeouts.
	ErrNodeTimeout = errors.New("node execution timeout")
	// ErrDeadlineBeforeStart: a node's effective deadline had passed when it was about to start.
	ErrDeadlineBeforeStart = errors.New("deadline exceeded before node start")
	// ErrGivenUp: the node is optional, and no required node ran any more.
	ErrGivenUp = errors.New("given up: only optional nodes were left running")
	// ErrBelowMinimum: an output has fewer rows than the plan wants, and the plan says that this is an error.
	ErrBelowMinimum = errors.New("below minimum")
	// ErrAbandoned: the caller no longer wants the result.
	ErrAbandoned = errors.New("request abandoned")
	// ErrOverloaded: as many requests run as Config.MaxInflight allows, and as many wait as Config.MaxQueue does.
	ErrOverloaded = errors.New("too many requests: the run limit and the queue are full")
	// ErrShuttingDown: the request came after Close, or Close gave it up.
	ErrShuttingDown = errors.New("shutting down")
	// ErrFault: the engine itself has panicked while it worked for the request. Config.OnPanic has the panic.
	ErrFault = errors.New("a fault of rankd itself: the log has the panic and its stack")
)

// NodeError is the failure of one node. Immutable.
type NodeError struct {
	Node string // id
	Op   string // with namespace
	Err  error
}

// Error implements error.
func (e *NodeError) Error() string {
	return fmt.Sprintf("node %s (%s): %v", errtext.Text(e.Node), e.Op, e.Err)
}

// Unwrap returns the cause.
func (e *NodeError) Unwrap() error { return e.Err }

// BelowMinimumError says which output of a plan has too few rows. Immutable.
type BelowMinimumError struct{ plan.Short }

// Error implements error.
func (e *BelowMinimumError) Error() string {
	return fmt.Sprintf("output %s has %s, and the plan wants %d at least", errtext.Text(e.Output), errtext.Count(e.Rows, "row"), e.MinRows)
}

// Unwrap returns ErrBelowMinimum.
func (e *BelowMinimumError) Unwrap() error { return ErrBelowMinimum }

// TimeoutError says how long a late request or node had taken when that was noticed, and how long it was allowed to
// take. Immutable.
type TimeoutError struct {
	Kind    error         // ErrRequestDeadline, ErrNodeTimeout or ErrDeadlineBeforeStart
	Elapsed time.Duration // since the request's arrival; if a timeout of the node passed while it ran, since the node's start
	Limit   time.Duration // allowed, measured from the same instant
	Waiting bool          // the request waited for admission, and never ran
	// Node and Op name the node that ran, or was about to start, when the request's deadline passed. They are empty
	// if there was none, or if a timeout of the node passed.
	Node, Op string
}

// Error implements error.
func (e *TimeoutError) Error() string {
	if e.Node != "" {
		how := "while %v (%v) ran"
		if e.Kind == ErrDeadlineBeforeStart {
			how = "before %v (%v) started"
		}
		return fmt.Sprintf("the request's deadline of %v passed "+how, e.Limit.Round(time.Microsecond), errtext.Text(e.Node), e.Op)
	}
	text := fmt.Sprintf("%v: %v elapsed, limit %v", e.Kind, e.Elapsed.Round(time.Microsecond), e.Limit.Round(time.Microsecond))
	if e.Waiting {
		text += ", waiting for admission"
	}
	return text
}

// OfRequest reports whether the request's deadline has passed, rather than a timeout of the node.
func (e *TimeoutError) OfRequest() bool { return e.Node != "" || e.Kind == ErrRequestDeadline }

// Is reports whether the error is an ErrNotAdmitted, too.
func (e *TimeoutError) Is(target error) bool { return e.Waiting && target == ErrNotAdmitted }

// Unwrap returns Kind.
func (e *TimeoutError) Unwrap() error { return e.Kind }
