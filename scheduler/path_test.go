package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// A job is due at its request's deadline minus the time from its node to the end of the plan.
// The longest path counts, including the waits on it.
func TestJobsAreDueBeforeTheRestOfTheirPath(t *testing.T) {
	const wait = 5 * time.Millisecond
	for _, tt := range []struct {
		name     string
		mode     plan.Mode
		deadline time.Duration
		second   time.Duration // from the arrival of the second request to its first job's Due
		third    time.Duration // and to that of the job after it
	}{
		{name: "by deadline", deadline: 100 * time.Millisecond, second: 100*time.Millisecond - ms(4) - wait - ms(4), third: 100*time.Millisecond - ms(4)},
		{name: "no deadline", second: patience - ms(4) - wait - ms(4), third: patience - ms(4)},
		{name: "a distant deadline", deadline: time.Minute, second: patience - ms(4) - wait - ms(4), third: patience - ms(4)},
		{name: "first come, first served", mode: plan.OffloadAll, deadline: 100 * time.Millisecond, second: patience, third: patience + ms(4) + wait},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newPlacedWorld(t, 0, Placement{Mode: tt.mode})
			long, short := ms(4), ms(1)
			var taken *cpupool.Job
			dueOf := map[string]clock.Time{} // by node
			expensive := func(s *task.Spec) {
				s.Expensive, s.Inline = true, false
				run := s.Run
				s.Run = func(c *task.Ctx) (rowset.RowSet, error) {
					dueOf[c.Node.ID] = taken.Due
					return run(c)
				}
			}
			g := graph(t, builtins(t, timedTask(w, "test::long", &long, expensive), timedTask(w, "test::short", &short, expensive)), "out",
				source(1), node("a", "long", "src", "", ""), sleepNode("nap", "a", wait), node("b", "long", "nap", "", ""), concatNode("out", "b", "s"),
				node("s", "short", "src", "", ""))
			rank := func() {
				p := w.start(w.within(g, tt.deadline))
				for w.Settle(); p.Result == nil; w.Settle() {
					for ; len(w.cpu.queued) > 0; w.Settle() {
						taken = w.cpu.take()
						w.cpu.finish(taken)
					}
					w.Advance(wait)
				}
				require.NoError(t, p.Err)
			}
			rank() // the engine learns
			arrived := w.Harness.Clock.Now()
			rank()
			assert.Equal(t, tt.second, dueOf["a"].Sub(arrived))
			assert.Equal(t, tt.third, dueOf["b"].Sub(arrived))
			if tt.mode == plan.Adaptive {
				assert.Greater(t, dueOf["s"], dueOf["a"], "it has time")
			}
		})
	}
}

// Two cheap nodes of a chain run inline, though together they take longer than the threshold.
// They are cheap by measurement, or because the plan says so.
func TestNodesOfAChainAreCheapByThemselves(t *testing.T) {
	for _, hint := range []string{"", `"scheduling": {"cost_estimate_us": 6}`} {
		w := newPlacedWorld(t, 0, Placement{})
		took := 6 * time.Microsecond
		g := graph(t, builtins(t, timedTask(w, "test::timed", &took, nil)), "b",
			source(1), node("a", "timed", "src", "", hint), node("b", "timed", "a", "", hint))
		for i := range 3 {
			before, _ := w.placementMetrics()
			p := w.start(w.within(g, 0))
			w.finishAll()
			require.NoError(t, p.Err)
			after, _ := w.placementMetrics()
			if i > 0 || hint != "" {
				assert.EqualValues(t, 3, after.Inline-before.Inline, "run %d", i)
			}
		}
	}
}
