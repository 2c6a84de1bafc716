package caption

import (
	"slices"
	"time"

	"github.com/rankd/rankd/trace"
)

// Sleeps gives each flow that is a sleep a lane, 0, 1, ..., in which no other sleeps at the same time. Other flows have the
// lane -1. It returns the lanes by flow, and how many there are.
func Sleeps(t *trace.Trace) (lanes []int, count int) {
	var free []time.Duration // of each lane, from when on
	lanes = make([]int, len(t.Flows))
	for k, f := range t.Flows {
		lanes[k] = -1
		if f.Kind != trace.TimerFlow {
			continue
		}
		lane := slices.IndexFunc(free, func(at time.Duration) bool { return at < f.Points[0].At })
		if lane < 0 {
			lane, free = len(free), append(free, 0)
		}
		free[lane] = f.Points[len(f.Points)-1].At
		lanes[k] = lane
	}
	return lanes, len(free)
}
