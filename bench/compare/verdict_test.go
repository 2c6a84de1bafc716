package compare

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/bench/worker"
)

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name  string
		bound Bound
		e     Estimate
		want  Outcome
	}{
		{"wholly above", AtLeast(6), between(6.1, 7, 8), Met},
		{"from the bound on", AtLeast(6), between(6, 7, 8), Met},
		{"around the bound", AtLeast(6), between(5.9, 7, 8), Undecided},
		{"up to the bound", AtLeast(6), between(4, 5, 6), Undecided},
		{"wholly below", AtLeast(6), between(4, 5, 5.9), NotMet},
		{"wholly below what it may be at most", AtMost(30), between(20, 25, 29), Met},
		{"up to what it may be at most", AtMost(30), between(20, 25, 30), Met},
		{"around what it may be at most", AtMost(30), between(20, 29, 31), Undecided},
		{"wholly above what it may be at most", AtMost(30), between(31, 35, 40), NotMet},
		{"too few rounds", AtLeast(6), Estimate{Median: 100}, Undecided},
		{"not measured", AtMost(6), Estimate{}, Undecided},
	} {
		assert.Equal(t, c.want, c.bound.Judge(c.e), c.name)
	}
}

func TestVerdictText(t *testing.T) {
	v := Verdict{Aim: "p50 of adaptive", Unit: " µs", Estimate: between(28, 31.26, 33), Bound: AtMost(30)}
	assert.Equal(t, "not decided  p50 of adaptive: 31.3 µs (28.0–33.0), wanted <= 30 µs", v.String())
}

func TestParseWant(t *testing.T) {
	for text, want := range map[string]Want{
		"requests reactor >= 1.3 reactor:scheduling=offload_all at 64": {"requests", "reactor", AtLeast(1.3), "reactor:scheduling=offload_all", []float64{64}},
		"p99  reactor <= 1 peer:rueidis":                               {"p99", "reactor", AtMost(1), "peer:rueidis", nil},
		"p50 a <= 0.5 b at 1,16,2000.5":                                {"p50", "a", AtMost(0.5), "b", []float64{1, 16, 2000.5}},
		"commands reactor >= .9 redis-benchmark":                       {"commands", "reactor", AtLeast(0.9), Yardstick, nil},
	} {
		got, err := ParseWant(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for text, want := range map[string]string{
		"":                                "is written FIGURE ENGINE",
		"p99 a <= 1":                      "is written FIGURE ENGINE",
		"p99 a <= 1 b at":                 "is written FIGURE ENGINE",
		"p99 a <= 1 b on 3":               "is written FIGURE ENGINE",
		"p75 a <= 1 b":                    `not "p75"`,
		"p99 a < 1 b":                     `not "<"`,
		"p99 a <= x b":                    `the factor is a positive number, not "x"`,
		"p99 a <= 0 b":                    `not "0"`,
		"p99 a <= NaN b":                  `not "NaN"`,
		"p99 a <= 1 b at 1,,2":            `the load is a positive number, not ""`,
		"requests a >= 1 redis-benchmark": "redis-benchmark tells commands only",
	} {
		_, err := ParseWant(text)
		assert.ErrorContains(t, err, want, text)
	}
}

func FuzzParseWant(f *testing.F) {
	f.Add("p99 reactor <= 1 peer:rueidis at 1,64")
	f.Add("commands a >= 0.9 redis-benchmark")
	f.Fuzz(func(t *testing.T, text string) {
		w, err := ParseWant(text)
		if err != nil {
			return
		}
		assert.Positive(t, w.Bound.Value)
		c := Comparison{Cells: []Cell{{Engine: w.Engine, Point: Point{Concurrency: 1}}}}
		c.Judge([]Want{w})
		for _, v := range c.Verdicts {
			assert.Equal(t, Undecided, v.Outcome(), "nothing was measured")
		}
	})
}

// The yardstick runs once a round, after the engines, and each engine's commands are compared with
// those of the same round.
func TestCeiling(t *testing.T) {
	var order []string
	round := 0.0
	cells, ceilings, err := Measure(t.Context(), Grid{
		Engines: []string{"a"}, Points: []Point{{Concurrency: 1}}, Rounds: 6,
		Run: func(context.Context, int, Point) (*worker.Report, error) {
			order = append(order, "a")
			round++
			r := reportOf(t, time.Millisecond)
			r.Traffic.Commands = uint64(900 * round)
			return r, nil
		},
		Ceiling: func(context.Context, Point) (float64, error) {
			order = append(order, "ceiling")
			return 1000 * round, nil
		},
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "ceiling", "a", "ceiling"}, order[:4])
	c := Comparison{Cells: cells, Ceilings: ceilings}
	c.Judge([]Want{{Figure: "commands", Engine: "a", Bound: AtLeast(0.9), To: Yardstick}})
	require.Len(t, c.Verdicts, 1)
	assert.Equal(t, "0.900× (0.900–0.900)", c.Verdicts[0].Estimate.Factor(), "round by round")
	assert.Equal(t, Met, c.Verdicts[0].Outcome())
	assert.Equal(t, 3500.0, ceilings[0].Commands.Median)
}
