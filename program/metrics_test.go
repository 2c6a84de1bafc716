package program

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lastLine returns the last line of a text.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndex(text, "\n")+1:]
}

// TestMetricsAreTheLastLineOnStderr: this is true of every job that runs plans, even if a
// request failed.
func TestMetricsAreTheLastLineOnStderr(t *testing.T) {
	for _, c := range []struct {
		name, args, in string
		requests       float64
		status         int
	}{
		{"serve", "--metrics", `{"user_id": 1}` + "\n" + `{"user_id": 2}`, 2, exitOK},
		{"a request failed", "--metrics --scheduling offload_all", `{"user_id": 1}` + "\n" + `{"user_id": 0}`, 1, exitFailed},
		{"bench", "--metrics --bench 7", "", 7, exitOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := run(t, strings.NewReader(c.in), append(strings.Fields(c.args), "--plan_name=diamond")...)
			require.Equal(t, c.status, o.status, o.stderr)
			var m struct {
				Scheduling string
				Requests   float64
				Nodes      map[string]any
				Plans      map[string]map[string]any
			}
			require.NoError(t, json.Unmarshal([]byte(lastLine(o.stderr)), &m), o.stderr)
			assert.Equal(t, c.requests, m.Requests)
			want := "adaptive"
			if strings.Contains(c.args, "offload_all") {
				want = "offload_all"
			}
			assert.Equal(t, want, m.Scheduling)
			for _, field := range []string{"inline", "offloaded", "fused", "inline_rate", "offload_rate", "fused_rate", "queue_delay", "offload_round_trip",
				"late_completions", "cancelled", "loop_callback"} {
				assert.Contains(t, m.Nodes, field)
				assert.Contains(t, m.Plans["diamond"], field)
			}
		})
	}
}

// TestMetricsHaveAbandonedWork: a node that times out leaves work behind. That work counts
// although it ends after the answer.
func TestMetricsHaveAbandonedWork(t *testing.T) {
	plan := filepath.Join(t.TempDir(), "busy.plan.json")
	require.NoError(t, os.WriteFile(plan, []byte(`{"schema_version": 1, "plan_name": "busy", "outputs": ["x"], "nodes": [
		{"node_id": "src", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 1}},
		{"node_id": "x", "op": "test::busy_cpu", "inputs": ["src"], "params": {"busy_wait_ms": 600000}, "timeout_ms": 5}]}`), 0o600))
	o := run(t, strings.NewReader(`{"user_id": 1}`), "--metrics", "--plan", plan)
	assert.Equal(t, exitFailed, o.status)
	var m struct {
		Nodes struct{ Cancelled, Offloaded float64 }
		Plans map[string]struct{ Cancelled float64 }
		CPU   *struct{ Count float64 } `json:"loop_callback_cpu"`
	}
	require.NoError(t, json.Unmarshal([]byte(lastLine(o.stderr)), &m), o.stderr)
	assert.EqualValues(t, 1, m.Nodes.Cancelled)
	assert.EqualValues(t, 1, m.Plans["busy"].Cancelled)
	assert.Equal(t, runtime.GOOS == "linux", m.CPU != nil)
}
