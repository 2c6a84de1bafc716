package scheduler

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
)

// NodeDeadline returns the effective deadline of a node that was spawned at start. timeout is the
// engine's.
func (s *State) NodeDeadline(node *plan.Node, start clock.Time, timeout time.Duration) clock.Time {
	return effectiveDeadline(start, s.deadline, timeout, node)
}

// effectiveDeadline returns the earliest of the request's deadline and, counted from the start of the
// node, of timeout (the engine's; zero: none) and the plan's own for this node. Zero means that there
// is none of them.
func effectiveDeadline(start, deadline clock.Time, timeout time.Duration, node *plan.Node) clock.Time {
	for _, timeout := range [...]time.Duration{timeout, node.Timeout} {
		if timeout > 0 {
			deadline = deadline.Earlier(start.Add(timeout))
		}
	}
	return deadline
}

// CheckNodeStart returns ErrDeadlineBeforeStart, in a *TimeoutError, if a node's effective deadline
// has passed when its body is about to start.
func (s *State) CheckNodeStart(node *plan.Node, deadline, now clock.Time) error {
	if deadline.Passed(now) {
		return s.NodeLate(ErrDeadlineBeforeStart, node, s.arrived, deadline, now)
	}
	return nil
}

// NodeLate returns the error of a node whose effective deadline has passed, measured from start. If that is the request's deadline, the
// error says so, and measures from the request's arrival.
func (s *State) NodeLate(kind error, node *plan.Node, start, deadline, now clock.Time) *TimeoutError {
	if deadline == s.deadline {
		return &TimeoutError{Kind: kind, Elapsed: now.Sub(s.arrived), Limit: deadline.Sub(s.arrived), Node: node.ID, Op: node.Op}
	}
	return &TimeoutError{Kind: kind, Elapsed: now.Sub(start), Limit: deadline.Sub(start)}
}

// abandoned returns why nobody waits for the result of a request any more, or nil: ErrAbandoned, or an ErrRequestDeadline if it is the
// context's own deadline that has passed, which an engine may see before its own clock says so.
func abandoned(ctx context.Context, arrived, deadline, now clock.Time) error {
	if ctx == nil {
		return nil
	}
	switch err := ctx.Err(); {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return &TimeoutError{Kind: ErrRequestDeadline, Elapsed: now.Sub(arrived), Limit: cmp.Or(deadline, now).Sub(arrived)}
	default:
		return ErrAbandoned
	}
}
