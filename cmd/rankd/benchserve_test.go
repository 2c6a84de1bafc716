package main

import (
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/bench/compare"
	"github.com/rankd/rankd/bench/fronts"
	"github.com/rankd/rankd/bench/overload"
)

// figuresAndVerdicts decodes lines of figures, and the lines of verdicts that follow them.
func figuresAndVerdicts[F any](t *testing.T, lines []string) (figures []F, verdicts []compare.Verdict) {
	t.Helper()
	for _, line := range lines {
		if strings.HasPrefix(line, `{"outcome":`) {
			var v compare.Verdict
			require.NoError(t, json.Unmarshal([]byte(line), &v))
			verdicts = append(verdicts, v)
			continue
		}
		var f F
		require.NoError(t, json.Unmarshal([]byte(line), &f))
		figures = append(figures, f)
	}
	return figures, verdicts
}

func TestBenchServe(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs the processor clocks of Linux")
	}
	o := measure(t, "serve", "--plan_name", "simple_viewer", "--rounds", "2", "--duration", "50ms", "--warmup", "0s", "--json")
	require.Equal(t, exitOK, o.status, o.stderr)
	results, verdicts := figuresAndVerdicts[fronts.Result](t, o.lines())
	require.Len(t, results, 4, "no client of others is installed where nothing is")
	for i, name := range []string{"in process", "in process, JSON", "resp", "http"} {
		r := results[i]
		assert.Equal(t, name, r.Caller)
		assert.Len(t, r.Many, 2)
		assert.Len(t, r.One, 2)
		assert.Positive(t, r.PerSecond.Median)
		assert.Positive(t, r.CPU.Median)
		assert.Positive(t, r.P50.Median)
	}
	require.Len(t, verdicts, 4)
	assert.Equal(t, "CPU a request of resp over in process, 64 in flight", verdicts[0].Aim)
	assert.Equal(t, compare.AtMost(2.5), verdicts[0].Bound)
	assert.Equal(t, compare.Undecided, verdicts[0].Outcome(), "two rounds decide nothing")
	assert.Contains(t, o.stderr, "round 2 of 2: http, 1 in flight")

	o = measure(t, "serve", "--plan_name", "simple_viewer", "--fronts", "resp", "--rounds", "1", "--duration", "20ms", "--warmup", "0s")
	require.Equal(t, exitOK, o.status, o.stderr)
	assert.Contains(t, o.stdout, "plan simple_viewer for user 1, equal reads not shared")
	assert.NotContains(t, o.stdout, "http")
}

func TestBenchOverload(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs the processor clocks of Linux")
	}
	var o outcome
	var results []overload.Result
	var verdicts []compare.Verdict
	for range 5 { // A machine that has much else to do may answer nothing in time, or too slowly for requests to pile up.
		o = measure(t, "overload", "--rounds", "1", "--duration", "150ms", "--warmup", "20ms", "--times", "4", "--json")
		require.Equal(t, exitOK, o.status, o.stderr)
		results, verdicts = figuresAndVerdicts[overload.Result](t, o.lines())
		require.Len(t, results, 4)
		if !slices.ContainsFunc(results, func(r overload.Result) bool { return r.Answered == 0 || r.Scenario == "busy" && r.Refused == 0 }) {
			break
		}
	}
	for i, r := range results {
		assert.Equal(t, []string{"busy", "busy", "concat_plan", "concat_plan"}[i], r.Scenario)
		assert.Equal(t, []string{"resp", "http"}[i%2], r.Front)
		assert.Positive(t, r.Capacity.Median)
		assert.Positive(t, r.Answered)
		assert.Positive(t, r.CPURefusal.Median)
		if r.Scenario == "busy" {
			assert.Positive(t, r.Refused, "four times the capacity")
			assert.Positive(t, r.RefusalP50.Median)
		}
	}
	assert.Len(t, verdicts, 4)
	assert.Contains(t, o.stderr, "concat_plan, round 1 of 1: http answers")
}
