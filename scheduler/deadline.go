package scheduler

import (
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
)

// NodeDeadline returns the effective deadline of a node that was spawned at start: the earliest of
// the request's deadline and, counted from start, of timeout (the engine's; zero: none) and the
// plan's own for this node. Zero means that there is none of them.
func (s *State) NodeDeadline(node *plan.Node, start clock.Time, timeout time.Duration) clock.Time {
	return effectiveDeadline(start, s.deadline, timeout, node)
}

// CheckNodeStart returns ErrDeadlineBeforeStart, in a *TimeoutError, if a node's effective deadline
// has passed when its body is about to start.
func (s *State) CheckNodeStart(deadline, now clock.Time) error {
	if deadline.Passed(now) {
		return s.late(ErrDeadlineBeforeStart, now, deadline)
	}
	return nil
}

// effectiveDeadline is the earliest of the request's deadline and, counted
// from the node's start, the engine's node timeout and the plan's own for this
// node. Zero if there is none of them.
func effectiveDeadline(start, request clock.Time, nodeTimeout time.Duration, node *plan.Node) clock.Time {
	deadline := request
	for _, timeout := range [...]time.Duration{nodeTimeout, node.Timeout} {
		if timeout > 0 {
			deadline = deadline.Earlier(start.Add(timeout))
		}
	}
	return deadline
}
