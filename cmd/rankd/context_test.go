package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/engineflags"
	"github.com/rankd/rankd/registry"
)

// A plan that reads the context, and a registry that has it.
func contextFolder(t *testing.T) (tables, plan string) {
	t.Helper()
	tables = t.TempDir()
	require.NoError(t, os.CopyFS(tables, registry.DefaultTables()))
	params, err := fs.ReadFile(registry.DefaultTables(), "params.toml")
	require.NoError(t, err)
	params = append(params, "\n[[param]]\nid = 9\nname = \"hour\"\ntype = \"int\"\ncontext = true\n[[param]]\nid = 10\nname = \"seen\"\ntype = \"int_list\"\ncontext = true\n"...)
	require.NoError(t, os.WriteFile(filepath.Join(tables, "params.toml"), params, 0o600))
	plan = filepath.Join(t.TempDir(), "hours.plan.json")
	require.NoError(t, os.WriteFile(plan, []byte(`{"schema_version": 1, "plan_name": "hours", "outputs": ["score"],
		"nodes": [{"node_id": "rows", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 2}},
			{"node_id": "score", "op": "core::vm", "inputs": ["rows"], "params": {"out_key": 2002, "expr_id": "e"}}],
		"expr_table": {"e": {"op": "mul", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "param_ref", "param_id": 9}}}}`), 0o600))
	return tables, plan
}

func TestContextOfARequest(t *testing.T) {
	tables, plan := contextFolder(t)
	requests := strings.Join([]string{
		`{"user_id": 1, "request_id": "good", "context": {"hour": 18, "seen": [1, 2]}}`,
		`{"user_id": 1, "request_id": "type", "context": {"hour": "6 pm"}}`,
		`{"user_id": 1, "request_id": "unknown", "context": {"hours": 18}}`,
		`{"user_id": 1, "request_id": "override", "param_overrides": {"hour": 18}}`,
		`{"user_id": 1, "request_id": "none"}`,
		`{"user_id": 1, "request_id": "weight", "context": {"weight": 1}}`,
	}, "\n")
	for _, engine := range []string{engineflags.Reactor, engineflags.Pool, engineflags.Sequential} {
		t.Run(engine, func(t *testing.T) {
			o := run(t, strings.NewReader(requests), "--registry_dir", tables, "--plan", plan, "--engine", engine)
			assert.Equal(t, exitFailed, o.status)
			lines := strings.Split(strings.TrimSuffix(o.stdout, "\n"), "\n")
			require.Len(t, lines, 6)
			assert.Contains(t, lines[0], `"candidates":[{"id":1,"score":18.0},{"id":2,"score":36.0}]`)
			for i, want := range map[int][2]string{
				1: {"Invalid request", `context member "hour" must be an integer of 64 bits, got "6 pm"`},
				2: {"Invalid request", `unknown context member "hours"`},
				3: {"Invalid param_overrides", `parameter "hour" cannot be overridden: the context sets it`},
				4: {"Invalid node", "the expression is null for some row, and score is not nullable"},
				5: {"Invalid request", `context member "weight" is not for the context: param_overrides sets it`},
			} {
				a := decode(t, lines[i])
				assert.Equal(t, want[0], a.Error)
				assert.Equal(t, want[1], a.Detail)
			}
		})
	}
	o := run(t, nil, "--print-registry", "--registry_dir", tables)
	assert.Equal(t, exitOK, o.status)
	assert.Regexp(t, `(?m)^9 +hour +int +no +yes +no$`, o.stdout)
}

// A trace of a request with a context.
func TestTraceWithContext(t *testing.T) {
	tables, plan := contextFolder(t)
	o := run(t, nil, "trace", "--registry_dir", tables, "--plan", plan, "--request", `{"user_id": 1, "context": {"hour": 18}}`)
	assert.Equal(t, exitOK, o.status, o.stderr)
	o = run(t, nil, "trace", "--registry_dir", tables, "--plan", plan, "--request", `{"user_id": 1, "context": {"hour": null}}`)
	assert.Equal(t, exitUsage, o.status)
	assert.True(t, strings.HasSuffix(o.stderr, "\nrankd: --request: Invalid request: context member \"hour\" must not be null\n"), o.stderr)
}
