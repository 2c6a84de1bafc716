package program

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/bench/harness"
)

func TestBenchServe(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs the processor clocks of Linux")
	}
	o := measure(t, "serve", "--plan_name", "simple_viewer", "--rounds", "2", "--duration", "50ms", "--warmup", "0s", "--json")
	require.Equal(t, exitOK, o.status, o.stderr)
	found := reportOf(t, o)
	results, verdicts := found.Results, found.Verdicts
	require.Len(t, results, 4, "no client of others is installed where nothing is")
	for i, name := range []string{"in process", "in process, JSON", "resp", "http"} {
		r := results[i]
		assert.Equal(t, name, r.Caller)
		assert.Len(t, r.Rounds, 2)
		assert.Positive(t, r.PerSecond.Median)
		assert.Positive(t, r.CPU.Median)
		assert.Positive(t, r.P50AtOne.Median)
	}
	require.Len(t, verdicts, 4)
	assert.Equal(t, "simple_viewer, resp: CPU a request over in process, 64 in flight", verdicts[0].Aim)
	assert.Equal(t, harness.AtMost(2.5), verdicts[0].Bound)
	assert.Equal(t, harness.Undecided, verdicts[0].Outcome(), "two rounds decide nothing")
	assert.Contains(t, o.stderr, "round 2 of 2, http: 64 in flight")

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
	var found report
	for range 5 { // A busy machine may answer nothing in time, or too slowly for requests to pile up.
		o = measure(t, "overload", "--rounds", "1", "--duration", "150ms", "--warmup", "20ms", "--times", "4", "--json")
		require.Equal(t, exitOK, o.status, o.stderr)
		found = reportOf(t, o)
		require.Len(t, found.Results, 4)
		enough := true
		for _, r := range found.Results {
			enough = enough && r.Answered > 0 && (r.Scenario != "busy" || r.Refused > 0)
		}
		if enough {
			break
		}
	}
	for i, r := range found.Results {
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
	assert.Len(t, found.Verdicts, 8)
	assert.Contains(t, o.stderr, "concat_plan, round 1 of 1, http: answers")
}
