package rankd

import "github.com/rankd/rankd/scheduler"

<<<<<<< HEAD
	"github.com/rankd/rankd/request"
	"github.com/rankd/rankd/scheduler"
)

// SchedulingMode says which computing nodes a Reactor engine runs on the loop, and which on the CPU pool.
type SchedulingMode = request.SchedulingMode
=======
// Scheduling says where computing nodes run.
type Scheduling = scheduler.Placement

// SchedulingMode says which computing nodes a Reactor engine runs on the loop, and which on the
// CPU pool.
type SchedulingMode = scheduler.Mode
>>>>>>> main

// The scheduling modes.
const (
	Adaptive   = scheduler.Adaptive   // on the loop if the predicted time is short
	OffloadAll = scheduler.OffloadAll // on the pool, one by one
	InlineAll  = scheduler.InlineAll  // on the loop whatever it costs, for experiments
)
<<<<<<< HEAD

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
=======
>>>>>>> main
