package rankd

import (
	"time"

	"github.com/rankd/rankd/request"
	"github.com/rankd/rankd/scheduler"
)

// SchedulingMode says which computing nodes a Reactor engine runs on the loop, and which on the CPU pool.
type SchedulingMode = request.SchedulingMode

// The scheduling modes.
const (
	// Adaptive runs a node on the loop if its predicted time is short. It hands chains of the
	// others to the pool as one job.
	Adaptive SchedulingMode = "adaptive"
	// OffloadAll hands every computing node to the pool, one by one, and sorts in full even if
	// a take follows.
	OffloadAll SchedulingMode = "offload_all"
	// InlineAll runs every node on the loop that may run there, whatever it costs. It is for
	// experiments: one heavy node holds up all requests.
	InlineAll SchedulingMode = "inline_all"
)

// Scheduling says where computing nodes run. The zero value means the defaults. A node runs
// inline if it runs on the loop. The models Pool and Sequential take from it only whether a
// sort that a take follows selects the first rows: not in the mode OffloadAll. Immutable; any
// goroutine.
type Scheduling struct {
	// Mode holds for requests without a mode of their own. Empty means Adaptive.
	Mode SchedulingMode
	// NoInlineExecution keeps computing nodes off the loop, in every mode. The flag
	// --enable_inline_execution is the opposite.
	NoInlineExecution bool
	// NoContinuationChaining sends each node through the ready queue. Otherwise a node goes
	// straight on to its single successor, on the loop or as part of one job. The flag
	// --enable_continuation_chaining is the opposite.
	NoContinuationChaining bool
	// InlineThreshold is the predicted time from which on a node does not run inline. Zero
	// means 10 µs.
	InlineThreshold time.Duration
	// MaxInlineDepth is how many successors follow an inline node directly. The next one
	// passes through the ready queue. Zero means 3.
	MaxInlineDepth int
	// InlineBudget is how long nodes run inline within one iteration of the loop. Zero means
	// 200 µs.
	InlineBudget time.Duration
}

// placement returns s as the scheduler takes it. The mode has been checked.
func (s *Scheduling) placement() scheduler.Placement {
	mode, _ := scheduler.ParseMode(string(s.Mode))
	return scheduler.Placement{
		Mode: mode, NoInline: s.NoInlineExecution, NoChaining: s.NoContinuationChaining,
		InlineThreshold: s.InlineThreshold, InlineDepthMax: s.MaxInlineDepth, InlineBudget: s.InlineBudget,
	}
}
