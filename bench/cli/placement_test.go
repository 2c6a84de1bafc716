package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/harness"
	"github.com/rankd/rankd/bench/internal/eventloop"
	"github.com/rankd/rankd/bench/internal/placement"
	"github.com/rankd/rankd/bench/internal/worker"
	"github.com/rankd/rankd/bench/load"
)

func TestTablesOfTheLoopOpenWithTheAnswer(t *testing.T) {
	late := func(us float64) eventloop.Latency { return eventloop.Latency{P99: us} }
	for want, results := range map[string][]any{
		"The loop runs 2.50 M posts/s from 1 producer(s).": {
			&eventloop.PostsResult{Producers: 1, PerSecond: 2.5e6}},
		"The loop runs 2.50 M posts/s from 2 producer(s) at best, and 1.00 M posts/s from 4 producer(s) at worst.": {
			&eventloop.PostsResult{Producers: 1, PerSecond: 2e6}, &eventloop.PostsResult{Producers: 2, PerSecond: 2.5e6},
			&eventloop.PostsResult{Producers: 4, PerSecond: 1e6}},
		"The loop fires 2.00 M timers/s, 99 % of them at most 1.5ms late.": {
			&eventloop.TimersResult{PerSecond: 2e6, Latency: late(1500)}},
		"The loop ends 1000 sleeping tasks 24.5× as fast as 4 blocked workers.": {
			&eventloop.SleepResult{Tasks: 1000, Workers: 4, Speedup: 24.5}},
	} {
		t.Run(want, func(t *testing.T) {
			said := 0
			for _, m := range loopModes() {
				if strings.HasPrefix(want, answerOf(m, results)) {
					var out bytes.Buffer
					require.NoError(t, writeLoopText(&out, m, results))
					first, _, _ := strings.Cut(out.String(), "\n")
					assert.Equal(t, m.name+": "+want, first)
					said++
				}
			}
			assert.Equal(t, 1, said)
		})
	}
}

// answerOf returns the answer of a mode. It returns a text with which no output begins, if the
// results have another mode.
func answerOf(m loopMode, results []any) (answer string) {
	defer func() {
		if recover() != nil {
			answer = "?"
		}
	}()
	return m.answer(results)
}

// serving has each variant run in this process as a worker does. It returns the run function of
// placing.
func serving(t *testing.T, variants []placement.Variant) func(int, *worker.Round) (*worker.Report, error) {
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
				return placement.Open(v.Engine.Options(rankd.Options{Env: "test", CPUThreads: 2}), s.Scenario)
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

func placingOf(t *testing.T, name string, rounds int, variants []placement.Variant) *placing {
	for _, s := range placement.Scenarios() {
		if s.Name == name {
			return &placing{Rounds: rounds, Duration: 60 * time.Millisecond, Warmup: time.Millisecond, scenarios: []placement.Scenario{s}, variants: variants}
		}
	}
	t.Fatal(name)
	return nil
}

func TestPlacement(t *testing.T) {
	variants := placement.Variants("")
	o := placingOf(t, "mix", 2, variants)
	o.run = serving(t, variants)
	results, err := o.experiment().Measure(t.Context())
	require.NoError(t, err)
	require.Len(t, results[0], len(variants))
	assert.Equal(t, 1.0, results[0][0].Value("better"), "the first variant against itself")
	for i, r := range results[0] {
		assert.Equal(t, variants[i].Name, r.Labels[1].Value)
		for _, key := range []string{"requests_per_second", "cheap_p99_us", "loop_callback_p999_us"} {
			assert.Positive(t, r.Value(key), key)
		}
		assert.LessOrEqual(t, r.Value("loop_callback_cpu_p999_us"), r.Value("loop_callback_max_us"))
		assert.InDelta(t, 1, r.Value("inline_rate")+r.Value("offload_rate"), 1e-9)
	}
	assert.Zero(t, results[0][placement.OffloadAll].Value("inline_rate"))
	assert.Positive(t, results[0][placement.Adaptive].Value("inline_rate"))

	o.scenarios = []placement.Scenario{{Name: "nope", Plans: func() map[string]string { return map[string]string{"broken": "{}"} }, Order: []string{"broken"}, Concurrency: 1}}
	_, err = o.experiment().Measure(t.Context())
	assert.ErrorContains(t, err, `nope, offload_all: no scenario "nope"`)
}

// Better means more requests a second, or less time.
func TestBetter(t *testing.T) {
	figures := []string{`{"cheap_p99_us": 20}`, `{"cheap_p99_us": 10}`}
	for key, want := range map[placement.Figure]float64{placement.PerSecond: 3, placement.P50: 5, placement.CheapP99: 2} {
		s := placement.Scenario{Key: key, Order: []string{"cheap", "heavy"}}
		o := &placing{run: func(variant int, _ *worker.Round) (*worker.Report, error) {
			report := reportOf(time.Second, int64(1+2*variant), latencies(time.Duration(20-16*variant)*time.Microsecond))
			report.Figures = json.RawMessage(figures[variant])
			return report, nil
		}}
		than, err := o.round(&s, 0, 0)
		require.NoError(t, err)
		better, err := o.round(&s, 1, 0)
		require.NoError(t, err)
		assert.InEpsilon(t, want, better.Figures["merit"]/than.Figures["merit"], 0.01, key)
	}
}

// Another build takes part if the scenario has one plan. That build reads the plan as text, and
// reports no figures.
func TestPlacementOfAnotherBuild(t *testing.T) {
	for name, takesPart := range map[string]bool{"five_nodes": true, "mix": false} {
		asked := map[int]int{}
		o := placingOf(t, name, 6, placement.Variants("/old/rankd"))
		o.run = func(i int, r *worker.Round) (*worker.Report, error) {
			asked[i]++
			assert.Equal(t, i == placement.Base || takesPart, r.Artifact != "")
			if r.Artifact != "" {
				assert.Contains(t, r.Artifact, `"plan_name": "`+r.Plan+`"`)
			}
			return reportOf(time.Second, 1, latencies(30*time.Microsecond)), nil
		}
		results, err := o.experiment().Measure(t.Context())
		require.NoError(t, err)
		want := map[int]int{0: 6, 1: 6, 2: 6, 3: 6}
		if takesPart {
			want[placement.Base] = 6
			assert.Equal(t, "1.00× (1.00–1.00)", results[0][placement.Adaptive].Figures["better_than_base"].Factor())
		}
		assert.Equal(t, want, asked)
	}
}

func TestPlacementErrors(t *testing.T) {
	for want, report := range map[string]*worker.Report{
		"no such plan": {Failure: "no such plan"}, "no request was answered": {},
	} {
		o := placingOf(t, "five_nodes", 1, placement.Variants(""))
		o.run = func(int, *worker.Round) (*worker.Report, error) { return report, nil }
		_, err := o.experiment().Measure(t.Context())
		assert.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, "five_nodes, offload_all")
	}
}

func TestPlacementReport(t *testing.T) {
	around := func(v float64) harness.Estimate { return estimate(v*0.9, v, v*1.1) }
	aim := func(of placement.Of, bound harness.Bound) placement.Aim { return placement.Aim{Of: of, Bound: bound} }
	scenarios := []placement.Scenario{
		{Name: "fast", Key: placement.P50, Aims: []placement.Aim{aim(placement.Ratio, harness.AtLeast(6)), aim(placement.Median, harness.AtMost(10))}},
		{Name: "slow", Key: placement.P50, Aims: []placement.Aim{aim(placement.Ratio, harness.AtLeast(6))}},
		{Name: "late", Key: placement.PerSecond, Aims: []placement.Aim{aim(placement.Callback, harness.AtMost(1000))}}, {Name: "free", Key: placement.PerSecond},
	}
	var results [][]*harness.Result
	for _, better := range []float64{6.2, 5, 1, 2} {
		results = append(results, []*harness.Result{
			{Figures: figures{"better": around(1)}},
			{Figures: figures{"better": around(better), p50: around(9), "loop_callback_cpu_p999_us": around(1200)}},
		})
	}
	results[0][placement.Adaptive].Figures["better_than_base"] = around(7)
	r := (&placing{scenarios: scenarios}).report(results)
	assert.Equal(t, "Against offload_all, adaptive is better by: fast 6.20× (5.58–6.82) at p50; slow 5.00× (4.50–5.50) at p50; "+
		"late 1.00× (0.900–1.10) at requests/s; free 2.00× (1.80–2.20) at requests/s. Against the other build: fast 7.00× (6.30–7.70).", r.Answer)
	var lines []string
	for _, v := range r.Verdicts {
		lines = append(lines, v.String())
	}
	assert.Equal(t, []string{
		"not decided  fast: adaptive better than offload_all at p50: 6.20× (5.58–6.82), wanted >= 6×",
		"met          fast: p50 of adaptive: 9.00 µs (8.10–9.90), wanted <= 10 µs",
		"not met      slow: adaptive better than offload_all at p50: 5.00× (4.50–5.50), wanted >= 6×",
		"not met      late: p99.9 of a loop callback's processor time: 1200.0 µs (1080.0–1320.0), wanted <= 1000 µs",
	}, lines)
}
