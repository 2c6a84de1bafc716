package placement

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/compare"
)

// A library that gnet uses starts two goroutines from init.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// TestPlansOfScenarios: each plan loads, each is asked for, and no mode changes its answer.
func TestPlansOfScenarios(t *testing.T) {
	for _, s := range Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			assert.ElementsMatch(t, slices.Collect(maps.Keys(s.Plans)), slices.Compact(slices.Sorted(slices.Values(s.Order))))
			var first map[string]string
			for _, v := range Variants() {
				e, err := rankd.Open(rankd.Options{Env: "test", Plans: s.Folder(), Scheduling: v.Scheduling})
				require.NoError(t, err)
				answers := map[string]string{}
				for name := range s.Plans {
					a, err := e.Rank(t.Context(), rankd.Request{Plan: name, UserID: 1})
					require.NoError(t, err)
					assert.NotZero(t, a.Output(0).Len())
					answers[name] = ids(a)
				}
				require.NoError(t, e.Close())
				if first == nil {
					first = answers
				}
				assert.Equal(t, first, answers, v.Name)
			}
		})
	}
}

func ids(a *rankd.Answer) string {
	var b []byte
	for i := range a.Output(0).Len() {
		b = append(strconv.AppendInt(b, a.Output(0).ID(i), 10), ' ')
	}
	return string(b)
}

func TestRandomPlansHaveTheirSize(t *testing.T) {
	for _, n := range []int{50, 500} {
		s := dags(n)
		assert.Len(t, s.Plans, 8)
		assert.Equal(t, s.Plans, dags(n).Plans, "the same in every run")
		e, err := rankd.Open(rankd.Options{Env: "test", Plans: s.Folder()})
		require.NoError(t, err)
		for _, name := range s.Order {
			info, err := e.PlanInfo(name)
			require.NoError(t, err)
			assert.Len(t, info.Nodes, n)
		}
		require.NoError(t, e.Close())
	}
}

func TestMeasure(t *testing.T) {
	var mix Scenario
	for _, s := range Scenarios() {
		if s.Name == "mix" {
			mix = s
		}
	}
	rounds := 0
	results, err := Measure(t.Context(), &mix, Variants(), Settings{Rounds: 2, Duration: 60 * time.Millisecond, Warmup: time.Millisecond, CPUThreads: 2},
		func(int, Variant) { rounds++ })
	require.NoError(t, err)
	assert.Equal(t, 2*len(Variants()), rounds)
	require.Len(t, results, len(Variants()))
	assert.Equal(t, 1.0, results[0].Better.Median, "the first variant against itself")
	for i, r := range results {
		assert.Equal(t, Variants()[i].Name, r.Variant)
		assert.Positive(t, r.PerSecond.Median)
		assert.Positive(t, r.CheapP99.Median)
		assert.Positive(t, r.Callback.Median)
	}

	broken := Scenario{Name: "broken", Plans: map[string]string{"broken": rank(10, -1)}, Order: []string{"nope"}, Concurrency: 1}
	_, err = Measure(t.Context(), &broken, Variants(), Settings{Rounds: 1, Duration: time.Millisecond, Warmup: time.Millisecond}, func(int, Variant) {})
	assert.ErrorIs(t, err, rankd.ErrUnknownPlan)
}

func TestAnswerAndTable(t *testing.T) {
	around := func(v float64) compare.Estimate {
		low, high := v*0.9, v*1.1
		return compare.Estimate{Median: v, Low: &low, High: &high}
	}
	scenarios := []Scenario{
		{Name: "fast", Key: P50, MinRatio: 6, Max: 10}, {Name: "slow", Key: P50, MinRatio: 6}, {Name: "late", Key: PerSecond, MaxCallback: time.Millisecond},
	}
	var results [][]Result
	for i, better := range []float64{6.2, 5, 1} {
		results = append(results, []Result{
			{Scenario: scenarios[i].Name, Variant: "offload_all", Better: around(1)},
			{Scenario: scenarios[i].Name, Variant: "adaptive", Better: around(better), P50: around(9), Callback: around(1001)},
		})
	}
	var out bytes.Buffer
	require.NoError(t, WriteText(&out, "head", scenarios, results))
	const answer = "Against offload_all, adaptive is better by: fast 6.20× (5.58–6.82) at p50; slow 5.00× (4.50–5.50) at p50, which misses 6×; " +
		"late 1.00× (0.900–1.10) at requests/s, which misses callbacks of 1ms.\n\nhead\n"
	assert.Contains(t, out.String(), answer)
	assert.Contains(t, out.String(), "6× and 10 µs")
	assert.Contains(t, out.String(), "6×; misses 6×")
	assert.Equal(t, "Nothing was measured.", Answer(nil, nil))
}
