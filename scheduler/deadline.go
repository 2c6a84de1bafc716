package scheduler

import (
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
func (s *State) CheckNodeStart(deadline, now clock.Time) error {
	if deadline.Passed(now) {
		return s.late(ErrDeadlineBeforeStart, now, deadline)
	}
	return nil
}
