package scheduler

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
)

// bounds say how long a request and its nodes may take. Immutable while the request runs; any goroutine.
type bounds struct {
	arrived     clock.Time
	deadline    clock.Time    // of the request, or the end of the share that its plan has of that time: see Execution.Fallback; zero: none
	answerBy    clock.Time    // when the plan gives up the nodes that have an AnswerBy; zero: never
	nodeTimeout time.Duration // the engine's, of each node; zero: none
	required    []int         // Execution.Required
	endless     bool          // no node has a deadline: the run is played
}

// timeLimited reports whether a node has a deadline.
func (b *bounds) timeLimited(node *plan.Node) bool {
	return b.deadline != 0 || b.nodeTimeout != 0 || node.Timeout != 0
}

// nodeDeadline returns the effective deadline of a node. It is the earliest of four: the request's deadline, the
// instant by which the plan gives a lenient node up, and, from the start of the node, the engine's timeout and the
// plan's timeout for this node. Zero means that there is none.
func (b *bounds) nodeDeadline(node *plan.Node, start clock.Time) clock.Time {
	if b.endless {
		return 0
	}
	deadline := b.deadline
	if b.nodeTimeout > 0 {
		deadline = deadline.Earlier(start.Add(b.nodeTimeout))
	}
	required := b.requires(node.Index)
	if node.AnswerBy > 0 && !required {
		deadline = deadline.Earlier(b.answerBy)
	}
	switch {
	case node.Granted && required:
	case node.Share > 0 && b.deadline != 0:
		deadline = deadline.Earlier(start.Add(node.Share.Of(b.deadline.Sub(start))))
	case node.Timeout > 0:
		deadline = deadline.Earlier(start.Add(node.Timeout))
	}
	return deadline
}

// requires reports whether the request requires a node. Such a node counts as neither lenient nor optional.
func (b *bounds) requires(node int) bool {
	return len(b.required) > 0 && slices.Contains(b.required, node)
}

// nodeLate returns the error of a node whose effective deadline has passed, with the time since start. If it is the
// request's deadline, the error says so, and has the time since the request's arrival.
func (b *bounds) nodeLate(kind error, node *plan.Node, start, deadline, now clock.Time) error {
	if deadline != b.deadline {
		return late(kind, start, deadline, now)
	}
	err := late(kind, b.arrived, deadline, now)
	err.Node, err.Op = node.ID, node.Op
	return err
}

// over returns why a request starts nothing more, or nil if it goes on. Its context may have ended, with the error gone,
// or its deadline has passed. The end of the context is an ErrAbandoned, or an ErrRequestDeadline if the context's own
// deadline has passed. The engine may see that before its own clock reaches the deadline.
func (b *bounds) over(gone error, now clock.Time) error {
	switch {
	case gone != nil && !errors.Is(gone, context.DeadlineExceeded):
		return ErrAbandoned
	case gone != nil || b.deadline.Passed(now):
		return late(ErrRequestDeadline, b.arrived, cmp.Or(b.deadline, now), now)
	}
	return nil
}

// late returns the error of a deadline that has passed, with the time since some instant. All such errors come from
// here.
func late(kind error, from, deadline, now clock.Time) *TimeoutError {
	return &TimeoutError{Kind: kind, Elapsed: now.Sub(from), Limit: deadline.Sub(from)}
}
