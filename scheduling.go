package rankd

import "github.com/rankd/rankd/scheduler"

// Scheduling says where computing nodes run.
type Scheduling = scheduler.Placement

// SchedulingMode says which computing nodes a Reactor engine runs on the loop, and which on the
// CPU pool.
type SchedulingMode = scheduler.Mode

// The scheduling modes.
const (
	Adaptive   = scheduler.Adaptive   // on the loop if the predicted time is short
	OffloadAll = scheduler.OffloadAll // on the pool, one by one
	InlineAll  = scheduler.InlineAll  // on the loop whatever it costs, for experiments
)
