package scheduler

import (
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
)

// effectiveDeadline returns the earliest of three deadlines: the request's, and, counted from the
// node's start, the engine's node timeout and the plan's own timeout of this node. It returns zero
// if there is none.
func effectiveDeadline(start, request clock.Time, nodeTimeout time.Duration, node *plan.Node) clock.Time {
	deadline := request
	for _, timeout := range [...]time.Duration{nodeTimeout, node.Timeout} {
		if timeout > 0 {
			deadline = deadline.Earlier(start.Add(timeout))
		}
	}
	return deadline
}
