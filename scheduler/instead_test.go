package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/schedulertest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task/builtin"
)

// pace is how a plan of three rows at least behaves. Immutable.
type pace struct {
	rows  int
	takes time.Duration
	fails bool
}

// graph returns the plan, in whose place below answers.
func (p pace) graph(t *testing.T, name, share, below string) *plan.Graph {
	artifact := schedulertest.PlanJSON("out", node("src", "fixed_source", "", fmt.Sprintf(`"row_count": %d`, p.rows), ""),
		node("wait", "sleep", "src", fmt.Sprintf(`"duration_ms": %d, "fail_after_sleep": %v`, p.takes.Milliseconds(), p.fails), ""),
		node("out", "sort", "wait", `"by": 1`, ""))
	artifact = strings.Replace(artifact, `"schema_version"`, fmt.Sprintf(
		`"capabilities_required": ["cap.rankd.lenient.v1", "cap.rankd.min_rows.v1"], "lenient": {"answer_by": %q}, "min_rows": [3], "below": %q, "schema_version"`, share, below), 1)
	g, err := plan.Load(name, []byte(artifact), builtin.Catalog(), testRegistry(t))
	require.NoError(t, err)
	return g
}

// TestAFallbackAnswersInTheRestOfTheTime: random plans with random times. The answer is that of the plan if it has its rows by its
// share of the time, and otherwise that of the fallback, which begins at once, once, and ends by the deadline. If it fails, the
// answer is what rows there were. It is one request.
func TestAFallbackAnswersInTheRestOfTheTime(t *testing.T) {
	const late = 5 * time.Millisecond // The loop looks at its timers each millisecond.
	inBubbles(t, bubbleEngines, scheduler.Config{}, func(t *testing.T, b *bubble) {
		rng := rand.New(rand.NewPCG(1, 2))
		fell, kept, requests := uint64(0), 0, uint64(0)
		for requests < 200 {
			first, second := pace{rng.IntN(6), time.Duration(rng.IntN(200)) * time.Millisecond, rng.IntN(8) == 0}, pace{rng.IntN(6), time.Duration(rng.IntN(200)) * time.Millisecond, rng.IntN(8) == 0}
			share, deadline := 1+rng.IntN(99), time.Duration(rng.IntN(3))*100*time.Millisecond
			began, end := first.takes, first.takes // of the fallback; and of the answer
			until := deadline * time.Duration(share) / 100
			if deadline > 0 {
				began = min(began, until)
			}
			alone := !first.fails && first.rows >= 3 && (deadline == 0 || first.takes < until)
			if !alone {
				end = began + second.takes
			}
			near := func(a, b time.Duration) bool { return (a - b).Abs() <= late }
			if deadline > 0 && (near(first.takes, until) || near(end, deadline)) {
				continue // Either may come first.
			}
			requests++
			x := &scheduler.Execution{Graph: first.graph(t, "first", fmt.Sprint(share, "%"), "second"), Fallback: second.graph(t, "second", "99%", "third"), UserID: 1}
			asked, stands := x.Graph, x.Fallback
			begun := b.clock.Now()
			if deadline > 0 {
				x.Deadline = begun.Add(deadline)
			}
			r := runOn(b.Engine, x)
			took := b.clock.Now().Sub(begun)
			say := fmt.Sprintf("%+v, then %+v, in %v, of it %d %%", first, second, deadline, share)
			ended := !first.fails && (deadline == 0 || first.takes < until)
			over := deadline > 0 && end > deadline
			if over {
				end = deadline
			}
			switch {
			case alone:
				require.NoError(t, r.Err, say)
				require.Nil(t, r.Instead(), say)
				require.Same(t, asked, x.Graph)
				require.Equal(t, first.rows, r.Outputs[0].N, say)
				require.Nil(t, r.FailedFallback(), say)
			case ended && (over || second.fails):
				fell++
				kept++
				require.NoError(t, r.Err, say)
				require.Nil(t, r.Instead(), say)
				require.Same(t, asked, x.Graph)
				require.Same(t, stands, r.FailedFallback().Of)
				require.Equal(t, first.rows, r.Outputs[0].N, say)
				require.Equal(t, first.rows, r.Short()[0].Rows, say)
			default:
				fell++
				require.Nil(t, r.FailedFallback(), say)
				require.NotNil(t, r.Instead(), say)
				require.Same(t, asked, r.Instead().Of)
				require.Same(t, stands, x.Graph)
				switch {
				case over:
					require.ErrorIs(t, r.Err, scheduler.ErrNodeTimeout, say)
				case second.fails:
					require.ErrorIs(t, r.Err, builtin.ErrInjected, say)
				default:
					require.NoError(t, r.Err, say)
					require.Equal(t, second.rows, r.Outputs[0].N, say)
					require.Equal(t, second.rows < 3, r.Short() != nil, say)
				}
			}
			require.InDelta(t, end, took, float64(late), say)
		}
		require.Greater(t, fell, requests/4)
		require.Greater(t, kept, 10)
		assert.Equal(t, fell, b.Metrics().Fallbacks)
		if b.async != nil {
			assert.Equal(t, requests, b.Metrics().Requests)
		}
		assert.Zero(t, b.Metrics().Live)
	})
}
