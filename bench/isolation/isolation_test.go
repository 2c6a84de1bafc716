package isolation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/bench/compare"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/bench/worker"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

func TestPlansAreSound(t *testing.T) {
	catalog, err := task.NewCatalog(builtin.Specs()...)
	require.NoError(t, err)
	reg, err := registry.Default("dev")
	require.NoError(t, err)
	for _, s := range Scenarios() {
		g, err := plan.Load(s.Name, []byte(s.Plan), catalog, reg)
		require.NoError(t, err)
		assert.Equal(t, s.Name, g.Name)
	}
}

func TestUsersOfARound(t *testing.T) {
	s := Scenarios()[0]
	users := s.users(5000, 5)
	require.Len(t, users, 5000)
	var at []int
	for i, u := range users {
		if u == s.Heavy {
			at = append(at, i)
		} else {
			require.True(t, u >= 1 && u <= SmallUsers)
		}
	}
	assert.Equal(t, []int{500, 1500, 2500, 3500, 4500}, at, "evenly spread, none at the beginning")
	assert.NotContains(t, s.users(1000, 0), s.Heavy)
	assert.Len(t, slices.DeleteFunc(s.users(10, 5), func(u int64) bool { return u != s.Heavy }), 5)
}

// encoded returns a histogram on the wire.
func encoded(t testing.TB, latencies ...time.Duration) string {
	h := load.NewHistogram()
	for _, l := range latencies {
		require.NoError(t, h.RecordValue(int64(l)))
	}
	text, err := h.EncodeV2()
	require.NoError(t, err)
	return string(text)
}

// TestMeasure runs three engines that answer as told: a sound one, an older build, and one that fails.
func TestMeasure(t *testing.T) {
	capacity := 1000 * 51 / 64. // the search ends less than 1/64 below 800
	s := Scenarios()[1]
	var order []string
	run := func(_ context.Context, engine int, r *worker.Round) (*worker.Report, error) {
		if engine == 2 {
			return &worker.Report{Failure: "no luck"}, nil
		}
		n := int64(1000)
		if r.Rate == 0 {
			return &worker.Report{Elapsed: time.Second, Answered: n, Latency: encoded(t, time.Millisecond)}, nil
		}
		if len(r.Heavy) == 0 { // the search for the capacity
			took := 4 * time.Millisecond
			if r.Rate > 800 {
				took = 6 * time.Millisecond
			}
			return &worker.Report{Elapsed: time.Second, Answered: r.Requests, Latency: encoded(t, took), Lag: encoded(t, 0)}, nil
		}
		assert.Equal(t, capacity/2, r.Rate, "half of the capacity")
		if !slices.Contains(r.Users, rowsUser) {
			assert.EqualValues(t, int(capacity)/2, r.Requests)
			return &worker.Report{Elapsed: time.Second, Answered: 500, Latency: encoded(t, 3*time.Microsecond), Lag: encoded(t, time.Microsecond)}, nil
		}
		order = append(order, string(rune('a'+engine)))
		assert.EqualValues(t, int(capacity), r.Requests)
		assert.Len(t, r.Users, int(capacity))
		assert.Equal(t, []int64{rowsUser}, r.Heavy)
		assert.Equal(t, "many_rows", r.Plan)
		report := &worker.Report{Elapsed: 2 * time.Second, Answered: n, Latency: encoded(t, time.Millisecond, 2*time.Millisecond), Lag: encoded(t, time.Microsecond)}
		if engine == 0 {
			report.Heavy = &worker.Tally{Answered: 5, Errors: 1, FirstError: "too large", Latency: encoded(t, time.Second)}
		} else {
			report.Errors, report.FirstError, report.Shed = 9, "lost", 2
		}
		return report, nil
	}
	var progress []string
	results, err := Measure(t.Context(), &s, []string{"a", "b", "c"}, worker.Setup{Redis: "h:1"},
		Settings{Rounds: 2, Duration: 2 * time.Second, Large: 5, Share: 0.5}, run, func(line string) { progress = append(progress, line) })
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b", "b", "a"}, order, "nobody is always the first")
	assert.Len(t, progress, 2+4)

	a, b, c := results[0], results[1], results[2]
	assert.Equal(t, capacity, a.Capacity)
	assert.EqualValues(t, 2000, a.Small.Answered)
	assert.Equal(t, &Figures{Answered: 10, Errors: 2, FirstError: "too large", P50: a.Large.P50, P99: a.Large.P99, Max: a.Large.Max}, a.Large)
	assert.InDelta(t, 2000, a.Small.P99, 2)
	assert.EqualValues(t, 1000, a.Alone.Answered)
	assert.InDelta(t, 3, a.Alone.P99, 0.1)
	assert.InDelta(t, 3, a.AloneP99.Median, 0.1)
	assert.False(t, a.SmallFail || a.Slow)
	assert.EqualValues(t, 18, b.Small.Errors)
	assert.Nil(t, b.Large)
	assert.True(t, b.SmallFail)
	assert.Equal(t, "no luck", c.Failure)

	var out bytes.Buffer
	require.NoError(t, WriteText(&out, "head", []Scenario{s}, [][]Result{results}))
	for _, want := range []string{
		"head\n", "KEPT many_rows, a: no small request fails, and their p99 is 2ms, below 5ms",
		"MISSED many_rows, b: 18 small requests failed and 4 were turned away (the large ones among them); none should",
		"NOT MEASURED many_rows, c: no luck", "a: the first large request that failed: too large",
		"b: the first small request that failed (the large ones among them): lost",
	} {
		assert.Contains(t, out.String(), want)
	}
}

// A given rate loads every engine alike. The benchmark then looks for no capacity.
func TestRateInPlaceOfAShare(t *testing.T) {
	s := Scenarios()[0]
	results, err := Measure(t.Context(), &s, []string{"a"}, worker.Setup{}, Settings{Rounds: 1, Duration: time.Second, Large: 1, Share: 0.5, Rate: 70},
		func(_ context.Context, _ int, r *worker.Round) (*worker.Report, error) {
			assert.Equal(t, 70.0, r.Rate)
			return &worker.Report{Answered: r.Requests, Latency: encoded(t, 0), Lag: encoded(t, 0), Heavy: &worker.Tally{Latency: encoded(t)}}, nil
		}, func(string) {})
	require.NoError(t, err)
	assert.Equal(t, 70.0, results[0].Rate)
	assert.Zero(t, results[0].Capacity)
	var out bytes.Buffer
	require.NoError(t, WriteText(&out, "head", []Scenario{s}, [][]Result{results}))
	assert.Contains(t, strings.Join(strings.Fields(out.String()), " "), " a – 70 ")
}

// An engine that bears no rate, or whose requests fail, still has a capacity, or a failure.
func TestCapacity(t *testing.T) {
	for name, c := range map[string]struct {
		latency time.Duration
		failure string
		sheds   float64 // above this rate of arrivals, and answers the rest at once; 0: never
		want    float64
	}{
		"bears all":     {time.Microsecond, "", 0, 64 * 63 / 64.},
		"bears none":    {time.Second, "", 0, 1},
		"fails at once": {0, "no luck", 0, 0},
		"sheds":         {time.Microsecond, "", 20, 20},
	} {
		t.Run(name, func(t *testing.T) {
			s := search{duration: time.Second, run: func(r *worker.Round) (*worker.Report, error) {
				report := &worker.Report{Elapsed: time.Second, Answered: 64, FirstError: c.failure, Latency: encoded(t, c.latency), Lag: encoded(t, 0)}
				if c.sheds > 0 && r.Rate > c.sheds {
					report.Shed = 1
				}
				return report, nil
			}}
			rate, err := s.capacity()
			require.NoError(t, err)
			assert.Equal(t, c.want, rate)
			if c.failure != "" {
				assert.EqualError(t, s.failure, c.failure)
			}
		})
	}
}

func TestVerdicts(t *testing.T) {
	s := Scenarios()[0]
	for want, r := range map[string]*Result{
		"KEPT large_replies, e: no small request fails, and their p99 is 19.99ms, below 20ms":      {Large: &Figures{}, P99: compare.Estimate{Median: 19_990}},
		"MISSED large_replies, e: the p99 of the small requests is 20ms, and should be below 20ms": {Slow: true, P99: compare.Estimate{Median: 20_000}},
		"MISSED large_replies, e: 1 small requests failed and 0 were turned away; none should":     {Large: &Figures{}, SmallFail: true, Small: Figures{Errors: 1}},
	} {
		r.Engine = "e"
		assert.Equal(t, want, s.Verdict(r))
	}
}

// An older build's failures count if they are more than the large requests, which may all have failed.
func TestFailuresOfAnOlderBuild(t *testing.T) {
	s := Scenarios()[0]
	for errors, fail := range map[int64]bool{0: false, 5: false, 6: true} {
		var sample sample
		sample.add(&load.Result{Latency: load.NewHistogram()}, &load.Result{Answered: 100, Errors: errors, Latency: load.NewHistogram(), Lag: load.NewHistogram()})
		var r Result
		sample.fill(&r, &s, 5)
		assert.Equal(t, fail, r.SmallFail, fmt.Sprint(errors))
	}
}

func TestAWorkerThatEndsIsAnError(t *testing.T) {
	s := Scenarios()[0]
	gone := errors.New("worker gone")
	_, err := Measure(t.Context(), &s, []string{"a"}, worker.Setup{}, Settings{Rounds: 1, Duration: time.Second, Large: 1, Share: 0.5},
		func(context.Context, int, *worker.Round) (*worker.Report, error) { return nil, gone }, func(string) {})
	assert.ErrorIs(t, err, gone)
}
