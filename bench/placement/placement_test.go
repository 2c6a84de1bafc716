package placement

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
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
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/bench/worker"
	"github.com/rankd/rankd/task"
)

// A library that gnet uses starts two goroutines from init.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// TestPlansOfScenarios: each plan loads, each is asked for, and no mode changes its answer.
func TestPlansOfScenarios(t *testing.T) {
	for _, s := range Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			assert.ElementsMatch(t, slices.Collect(maps.Keys(s.Plans)), slices.Compact(slices.Sorted(slices.Values(s.Order))))
			var first map[string]string
			for _, v := range Variants("") {
				e, err := rankd.Open(v.Engine.Options(rankd.Options{Env: "test", Plans: s.Folder(), Tasks: []task.Spec{burnTask(burn)}}))
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
		e, err := rankd.Open(rankd.Options{Env: "test", Plans: s.Folder(), Tasks: []task.Spec{burnTask(burn)}})
		require.NoError(t, err)
		for _, name := range s.Order {
			info, err := e.PlanInfo(name)
			require.NoError(t, err)
			assert.Len(t, info.Nodes, n)
		}
		require.NoError(t, e.Close())
	}
}

// serving has each variant run in this process as a worker does. The function that it returns is
// the run of Measure.
func serving(t *testing.T, variants []Variant) func(int, *worker.Round) (*worker.Report, error) {
	type pipes struct {
		rounds  *json.Encoder
		reports *json.Decoder
	}
	var workers []pipes
	for _, v := range variants {
		in, rounds := io.Pipe()
		reports, out := io.Pipe()
		served := make(chan error, 1)
		go func() {
			served <- worker.Serve(in, out, func(s worker.Setup) (load.Target, error) {
				return Open(v.Engine.Options(rankd.Options{Env: "test", CPUThreads: 2}), s.Scenario)
			})
		}()
		t.Cleanup(func() {
			assert.NoError(t, rounds.Close())
			assert.NoError(t, <-served)
		})
		workers = append(workers, pipes{json.NewEncoder(rounds), json.NewDecoder(reports)})
	}
	return func(i int, r *worker.Round) (*worker.Report, error) {
		if err := workers[i].rounds.Encode(r); err != nil {
			return nil, err
		}
		var report worker.Report
		err := workers[i].reports.Decode(&report)
		return &report, err
	}
}

func scenarioOf(t *testing.T, name string) *Scenario {
	for _, s := range Scenarios() {
		if s.Name == name {
			return &s
		}
	}
	t.Fatal(name)
	return nil
}

func TestMeasure(t *testing.T) {
	variants := Variants("")
	rounds := 0
	results, err := Measure(t.Context(), scenarioOf(t, "mix"), variants, Settings{Rounds: 2, Duration: 60 * time.Millisecond, Warmup: time.Millisecond},
		serving(t, variants), func(int, Variant) { rounds++ })
	require.NoError(t, err)
	assert.Equal(t, 2*len(variants), rounds)
	require.Len(t, results, len(variants))
	assert.Equal(t, 1.0, results[0].Better.Median, "the first variant against itself")
	for i, r := range results {
		assert.Equal(t, variants[i].Name, r.Variant)
		assert.Positive(t, r.PerSecond.Median)
		assert.Positive(t, r.CheapP99.Median)
		assert.Positive(t, r.CallbackP999.Median)
		assert.LessOrEqual(t, r.CallbackCPU.Median, r.CallbackMax.Median)
		assert.InDelta(t, 1, r.InlineRate.Median+r.OffloadRate.Median, 1e-9)
	}
	assert.Zero(t, results[offloadAll].InlineRate.Median)
	assert.Positive(t, results[adaptive].InlineRate.Median)

	broken := Scenario{Name: "nope", Plans: map[string]string{"broken": rank(10, -1)}, Order: []string{"broken"}, Concurrency: 1}
	_, err = Measure(t.Context(), &broken, variants, Settings{Rounds: 1, Duration: time.Millisecond, Warmup: time.Millisecond},
		serving(t, variants), func(int, Variant) {})
	assert.ErrorContains(t, err, `no scenario "nope"`)
}

// Better is more requests a second, or less time.
func TestBetter(t *testing.T) {
	first := []sample{{perSecond: 300, p50: 4, figures: figures{CheapP99: 10}}}
	than := []sample{{perSecond: 100, p50: 20, figures: figures{CheapP99: 20}}}
	for key, want := range map[Figure]float64{PerSecond: 3, P50: 5, CheapP99: 2} {
		assert.Equal(t, want, (&Scenario{Key: key}).better(first, than).Median, key)
	}
}

// Another build takes part where a scenario has one plan, which it reads as text. Its engine tells no
// figures of its own.
func TestMeasureAnotherBuild(t *testing.T) {
	variants := Variants("/old/rankd")
	latency := load.NewHistogram()
	require.NoError(t, latency.RecordValue(int64(30*time.Microsecond)))
	encoded, err := latency.EncodeV2()
	require.NoError(t, err)
	for name, takesPart := range map[string]bool{"five_nodes": true, "mix": false} {
		asked := map[int]int{}
		results, err := Measure(t.Context(), scenarioOf(t, name), variants, Settings{Rounds: 6, Duration: time.Second, Warmup: time.Second},
			func(i int, r *worker.Round) (*worker.Report, error) {
				asked[i]++
				assert.Equal(t, i == base || takesPart, r.Artifact != "")
				if r.Artifact != "" {
					assert.Contains(t, r.Artifact, `"plan_name": "`+r.Plan+`"`)
				}
				return &worker.Report{Elapsed: time.Second, Answered: 1, Latency: string(encoded)}, nil
			}, func(int, Variant) {})
		require.NoError(t, err)
		if takesPart {
			assert.Equal(t, map[int]int{0: 6, 1: 6, 2: 6, 3: 6, 4: 6}, asked)
			assert.Equal(t, "1.00× (1.00–1.00)", results[adaptive].BetterThanBase.Factor())
		} else {
			assert.Equal(t, map[int]int{0: 6, 1: 6, 2: 6, 3: 6}, asked)
		}
	}
}

// The requests on many rows ask for a mode of their own where the scenario says so, and the others do not.
func TestRequestsAskForAMode(t *testing.T) {
	inline := map[string]float64{}
	for _, name := range []string{"mix_large", "mix_asking"} {
		target, err := Open(rankd.Options{Env: "test", CPUThreads: 2, Scheduling: rankd.Scheduling{Mode: rankd.OffloadAll}}, name)
		require.NoError(t, err)
		answered := make(chan error)
		client := target.NewClient(func(err error) { answered <- err })
		for i, plan := range scenarioOf(t, name).Order[:60] {
			client.Send(int64(i + 1))
			require.NoError(t, <-answered, plan)
		}
		inline[name] = target.(load.Reporting).Figures().(figures).InlineRate
		target.Close()
	}
	assert.Zero(t, inline["mix_large"])
	assert.Positive(t, inline["mix_asking"])
	assert.Less(t, inline["mix_asking"], 0.1, "one request of sixty")
}

func TestMeasureErrors(t *testing.T) {
	s, settings := scenarioOf(t, "five_nodes"), Settings{Rounds: 1, Duration: time.Second, Warmup: time.Second}
	for want, report := range map[string]*worker.Report{
		"no such plan": {Failure: "no such plan"}, "decode latencies": {Latency: "?"},
	} {
		_, err := Measure(t.Context(), s, Variants(""), settings, func(int, *worker.Round) (*worker.Report, error) { return report, nil }, func(int, Variant) {})
		assert.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, "five_nodes, offload_all")
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Measure(ctx, s, Variants(""), settings, func(int, *worker.Round) (*worker.Report, error) {
		cancel()
		return nil, errors.New("killed")
	}, func(int, Variant) {})
	assert.ErrorIs(t, err, context.Canceled)
}

func TestAnswerTableAndVerdicts(t *testing.T) {
	around := func(v float64) compare.Estimate {
		low, high := v*0.9, v*1.1
		return compare.Estimate{Median: v, Low: &low, High: &high}
	}
	scenarios := []Scenario{
		{Name: "fast", Key: P50, Aims: []Aim{ratioOf(6), medianOf(10)}}, {Name: "slow", Key: P50, Aims: []Aim{ratioOf(6)}},
		{Name: "late", Key: PerSecond, Aims: []Aim{{Callback, compare.AtMost(1000)}}}, {Name: "free", Key: PerSecond},
	}
	var results [][]Result
	for i, better := range []float64{6.2, 5, 1, 2} {
		results = append(results, []Result{
			{Scenario: scenarios[i].Name, Variant: "offload_all", Better: around(1)},
			{Scenario: scenarios[i].Name, Variant: "adaptive", Better: around(better), P50: around(9), CallbackCPU: around(1200)},
		})
	}
	results[0][adaptive].BetterThanBase = around(7)
	var out bytes.Buffer
	require.NoError(t, WriteText(&out, "head", scenarios, results))
	const answer = "Against offload_all, adaptive is better by: fast 6.20× (5.58–6.82) at p50; slow 5.00× (4.50–5.50) at p50; " +
		"late 1.00× (0.900–1.10) at requests/s; free 2.00× (1.80–2.20) at requests/s. Against the other build: fast 7.00× (6.30–7.70).\n\nhead\n"
	assert.Contains(t, out.String(), answer)
	assert.Contains(t, out.String(), `
aims:
  not decided  fast: adaptive better than offload_all at p50: 6.20× (5.58–6.82), wanted >= 6×
  met          fast: p50 of adaptive: 9.00 µs (8.10–9.90), wanted <= 10 µs
  not met      slow: adaptive better than offload_all at p50: 5.00× (4.50–5.50), wanted >= 6×
  not met      late: p99.9 of a loop callback's processor time: 1200.0 µs (1080.0–1320.0), wanted <= 1000 µs
`)
	assert.Equal(t, "Nothing was measured.", Answer(nil, nil))
}
