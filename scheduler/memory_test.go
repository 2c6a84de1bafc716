package scheduler

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// keeper returns a task that does not declare Forgets, and keeps a reference to its input in
// kept.
func keeper(kept *[]rowset.RowSet) task.Spec {
	return task.Spec{
		Op: "test::keeper", Inputs: 1, Output: task.PassThrough, Place: task.OnLoop,
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			*kept = append(*kept, c.Inputs[0])
			return c.Inputs[0], nil
		},
	}
}

// The next request uses the same memory unless something may still refer to it. That may be a
// task that does not declare Forgets, or an answer that is too large to be copied.
func TestWhenMemoryIsUsedAgain(t *testing.T) {
	var kept []rowset.RowSet
	first := node("t", "take", "f", `"count": 5`, "")
	for _, c := range []struct {
		name  string
		nodes []string // the last one is the output
		again bool
	}{
		{"a small answer", []string{source(2000), vmNode("v", "src"), node("f", "filter", "v", `"pred_id": "big"`, ""), first}, true},
		{"a large answer", []string{source(3000), vmNode("t", "src")}, false},
		{"a task that keeps its input", []string{source(2000), vmNode("v", "src"), node("f", "keeper", "v", "", ""), first}, false},
	} {
		for _, mode := range []plan.Mode{plan.Adaptive, plan.OffloadAll, plan.InlineAll} {
			t.Run(c.name+" "+string(mode), func(t *testing.T) {
				kept = nil
				pool := poisonedPool()
				w := openWorld(t, Config{Memory: pool, Placement: Placement{Mode: mode}})
				g := graph(t, builtins(t, keeper(&kept)), "t", c.nodes...)
				var results []*Result
				for user := range int64(4) {
					r := w.run(weighted(&Execution{Graph: g}, user+1))
					require.NoError(t, r.Err)
					results = append(results, r)
				}
				assert.Equal(t, c.again, pool.Bytes() > 0)
				for i, r := range results {
					out := r.Outputs[0]
					require.NoError(t, checkScores(out, int64(i)+1, out.Len()))
				}
				for i, rows := range kept {
					require.NoError(t, checkScores(rows, int64(i)+1, 2000))
				}
			})
		}
	}
}

// A request that fails gives its memory back. A request that leaves an orphan does not, since
// the orphan still reads it. Two engines share the pool, since the orphan outlives the requests
// of its own engine.
func TestMemoryOfFailures(t *testing.T) {
	pool := poisonedPool()
	closing, other := openWorld(t, Config{Memory: pool}), openWorld(t, Config{Memory: pool})
	started, release, seen := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	slow := task.Spec{
		Op: "test::slow", Inputs: 1, Output: task.PassThrough, Forgets: true,
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			close(started)
			<-release
			seen <- checkScores(c.Inputs[0], 7, 2000)
			return c.Inputs[0], nil
		},
	}
	load := func(last string) *plan.Graph {
		return graph(t, builtins(t, slow), "t", source(2000), vmNode("v", "src"), last)
	}
	orphaned := closing.start(weighted(&Execution{Graph: load(node("t", "slow", "v", "", ""))}, 7))
	<-started
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		closing.Close(0)
	}()
	require.ErrorIs(t, (<-orphaned).Err, ErrShuttingDown)
	assert.Zero(t, pool.Bytes(), "the orphan has it")

	r := other.run(&Execution{Graph: load(node("t", "take", "v", `"count": 0`, "")), UserID: 1})
	require.ErrorIs(t, r.Err, task.ErrInvalid)
	assert.Positive(t, pool.Bytes())
	take := load(node("t", "take", "v", `"count": 1`, ""))
	for range 20 {
		require.NoError(t, other.run(weighted(&Execution{Graph: take}, 3)).Err)
	}
	close(release)
	assert.NoError(t, <-seen)
	<-closed
}
