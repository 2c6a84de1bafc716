package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/internal/worker"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/examples/demo"
	"github.com/rankd/rankd/plan"
)

// A plan may come from a pipe, which can be read once. compare does not wait or read without
// bound, whatever the file is.
func TestArtifact(t *testing.T) {
	text, err := fs.ReadFile(demo.Plans(), "simple_viewer.plan.json")
	require.NoError(t, err)
	dir := t.TempDir()
	pipe, huge := filepath.Join(dir, "pipe.plan.json"), filepath.Join(dir, "huge.plan.json")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.WriteFile(huge, bytes.Repeat([]byte(" "), plan.MaxArtifactBytes+1), 0o600))

	_, _, err = (&compareOptions{planDir: dir, planName: "pipe"}).artifact(rankd.Options{})
	assert.ErrorContains(t, err, "pipe.plan.json: is a named pipe, must be a regular file")
	for _, o := range []*compareOptions{{plan: huge}, {planDir: dir, planName: "huge"}} {
		_, _, err = o.artifact(rankd.Options{})
		assert.ErrorContains(t, err, fmt.Sprintf("larger than %d bytes", plan.MaxArtifactBytes))
	}

	ended := make(chan struct{})
	go func() { // A writer never ends: compare stops reading at the limit.
		defer close(ended)
		if f, err := os.OpenFile(pipe, os.O_WRONLY, 0); assert.NoError(t, err) {
			_, err = io.Copy(f, endless{})
			assert.ErrorIs(t, err, syscall.EPIPE)
			assert.NoError(t, f.Close())
		}
	}()
	_, _, err = (&compareOptions{plan: pipe}).artifact(rankd.Options{})
	assert.ErrorContains(t, err, fmt.Sprintf("larger than %d bytes", plan.MaxArtifactBytes))
	<-ended

	written := make(chan error, 1)
	go func() { written <- os.WriteFile(pipe, text, 0) }()
	name, got, err := (&compareOptions{plan: pipe}).artifact(rankd.Options{})
	require.NoError(t, err)
	require.NoError(t, <-written)
	assert.Equal(t, "simple_viewer", name)
	assert.Equal(t, text, got)
}

// Users ask with the requests of a file, in each form that a batch takes, of a plan that reads the rows of others from memory. A worker knows those plans,
// and answers each request as it is.
func TestRequestsOfAFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	artifact := func(name, node string) string {
		return write(name+plan.ArtifactSuffix, fmt.Sprintf(`{"schema_version": 1, "plan_name": %q, "outputs": ["n"], "nodes": [%s], "expr_table": {"e": {"op": "param_ref", "param_id": 4}}}`, name, node))
	}
	artifact("items", `{"node_id": "n", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 3}}`)
	page := artifact("page", `{"node_id": "r", "op": "core::resident", "inputs": [], "params": {"plan": "items"}},
		{"node_id": "n", "op": "core::vm", "inputs": ["r"], "params": {"expr_id": "e", "out_key": 2001}}`)

	stands := write("stands.plan.json", `{"schema_version": 1, "plan_name": "stands", "outputs": ["n"], "min_rows": [3], "below": "page", "lenient": {"answer_by": "50%"},
		"capabilities_required": ["cap.rankd.lenient.v1", "cap.rankd.min_rows.v1"], "nodes": [{"node_id": "n", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 1}}]}`)
	standing := &compareOptions{plan: stands, users: "1", chosen: load.Users{Spec: "1"}}
	_, _, err := standing.artifact(rankd.Options{})
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"page", "items"}, slices.Collect(maps.Keys(standing.kept)), "the plan that answers instead, and what it reads")

	for name, text := range map[string]string{
		"users.jsonl": `{"user_id": 1, "param_overrides": {"weight": 1}}` + "\n" + `{"user_id": 2}`,
		"users.txt":   "1\n2\n", "users.csv": "user_id\n1\n2\n",
	} {
		o := &compareOptions{plan: page, users: "@" + write(name, text)}
		o.now = "1790000000"
		o.chosen = load.Users{Spec: o.users}
		_, artifact, err := o.artifact(rankd.Options{})
		require.NoError(t, err, name)
		assert.ElementsMatch(t, []string{"items"}, slices.Collect(maps.Keys(o.kept)))
		assert.Equal(t, []int64{1, 2}, o.chosen.IDs)
		m := comparing{compareOptions: o}
		r := &rig{Program: &Program{Stderr: io.Discard}, ctx: t.Context()}
		defer r.end()
		require.NoError(t, m.writeRequests(r))
		round := worker.Round{
			Setup: worker.Setup{Redis: "127.0.0.1:1", Plan: "page", Artifact: string(artifact), RequestFile: m.requests},
			Load:  load.Load{Users: o.chosen.IDs, Concurrency: 1, Requests: 10},
		}
		var in, out bytes.Buffer
		require.NoError(t, json.NewEncoder(&in).Encode(round))
		require.NoError(t, worker.Serve(&in, &out, opener(rankd.Options{Plans: os.DirFS(m.keptDir), PlansName: "the folder"})))
		var report worker.Report
		require.NoError(t, json.NewDecoder(&out).Decode(&report))
		assert.Empty(t, report.Failure)
		assert.EqualValues(t, 10, report.Answered)
		if name == "users.jsonl" {
			assert.EqualValues(t, 5, report.Errors, "the second user gives no weight")
			assert.Contains(t, report.FirstError, "weight = null")
		} else {
			assert.EqualValues(t, 10, report.Errors)
		}
	}
	for text, want := range map[string]string{
		"":                                "has no requests",
		`{"user_id": 0}`:                  "line 1: Invalid request",
		"1\nx":                            "line 2: Invalid request",
		`{"user_id": 1, "plan": "items"}`: `line 1: the request is for the plan "items", and page is measured`,
	} {
		o := &compareOptions{plan: page, users: "@" + write("bad", text)}
		_, _, err := o.artifact(rankd.Options{})
		assert.ErrorContains(t, err, want)
	}
}

// endless is a document that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
