package program

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Answers and messages quote 200 bytes of the input, whatever is wrong in megabytes of it.
func TestAnswersAndMessagesQuoteLittle(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	quote := func(s string) string { text, _ := json.Marshal(s); return string(text) }
	requests := strings.Join([]string{
		`{"user_id": 1, "plan": ` + quote(long) + `}`,
		`{"user_id": 1, "plan": ` + quote(long+"-") + `}`,
		`{"user_id": 1, "param_overrides": {` + quote(long) + `: 1}}`,
		`{"user_id": ` + quote(long) + `}`,
		`{"user_id": 1, "param_overrides": {"blocklist_regex": ` + quote("("+long) + `}}`,
		`{"user_id": 1, "param_overrides": {"blocklist_regex": ` + quote("("+long[:4000]) + `}}`,
		`{"user_id": 1, "param_overrides": {"blocklist_regex": ` + quote(`\p{`+long[:4000]+"}") + `}}`,
	}, "\n")
	path := writePlan(t, t.TempDir(), "p", `{"schema_version": 1, "plan_name": "p", "outputs": ["f"], "nodes": [
		{"node_id": "v", "op": "core::viewer", "inputs": [], "params": {"endpoint": "ep_0001"}},
		{"node_id": "f", "op": "core::filter", "inputs": ["v"], "params": {"pred_id": "p"}}],
		"expr_table": {}, "pred_table": {"p": {"op": "regex", "key_id": 3001, "pattern": {"kind": "param", "param_id": 2}}}}`)
	o := run(t, strings.NewReader(requests), "--plan", path)
	require.Len(t, o.lines(), 7)
	for _, line := range o.lines() {
		assert.NotEmpty(t, decode(t, line).Error)
		assert.Less(t, len(line), 600, "%.600s", line)
	}

	path = writePlan(t, t.TempDir(), "p", `{"schema_version": 1, "plan_name": "p", "outputs": [`+quote(long)+`], "nodes": [
		{"node_id": "s", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 1}},
		{"node_id": `+quote(long)+`, "op": "core::sort", "inputs": ["s"], "params": {"by": 1, "order": `+quote(long)+`}}],
		"expr_table": {}, "pred_table": {}}`)
	o = run(t, strings.NewReader(`{"user_id": 1}`), "--plan", path)
	assert.Equal(t, exitFailed, o.status)
	assert.Less(t, len(o.stdout), 800, "%.800s", o.stdout)
	assert.Contains(t, o.stdout, `xxx… (1048576 bytes)","op":"core::sort"`)

	o = run(t, strings.NewReader(""), "--plan_dir", "no\x1b[31m\nfolder")
	assert.Equal(t, "rankd: --plan_dir: stat no\\x1b[31m\\nfolder: no such file or directory\n", o.stderr)
	o = run(t, strings.NewReader(""), "my\nrequests")
	assert.Equal(t, `rankd: unknown command "my\nrequests"; a file of requests comes on stdin: rankd [flags] < file`+"\n", o.stderr)
	o = run(t, strings.NewReader(""), "traec")
	assert.Equal(t, `rankd: unknown command "traec"; did you mean rankd trace?`+"\n", o.stderr)
	long = long[:8<<10]
	for _, args := range [][]string{
		{"--engine", long}, {"--response", long}, {"--env", long}, {"--redis", long}, {"--plan", long}, {"--plan_name", long},
		{"--plan_dir", long}, {"--registry_dir", long}, {"--cpu_threads", long}, {"--" + long}, {long},
		{"--bench_eventloop", "--bench_eventloop_mode", long}, {"--cpu_threads=" + long}, {"--engine", "a\"\n" + long},
	} {
		o := run(t, strings.NewReader(""), args...)
		assert.Equal(t, exitUsage, o.status)
		assert.Less(t, len(o.stderr), 900, "%s: %.900s", args[0][:min(20, len(args[0]))], o.stderr)
	}
}
