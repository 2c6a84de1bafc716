package program

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/internal/version"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// TestMainWithThingsOfItsOwn: commands know the tasks, tables and plans that a program brings. A flag takes the place of
// its folders.
func TestMainWithThingsOfItsOwn(t *testing.T) {
	first := task.Spec{Op: "own::first", Doc: "Keeps the first row.", Inputs: 1, Output: task.Subset, Run: func(c *task.Ctx) (rowset.RowSet, error) {
		in := c.Inputs[0]
		return rowset.RowSet{Batch: in.Batch, Rows: []int32{in.Row(0)}, N: 1}, nil
	}}
	tables := registrytest.Tables{Keys: registrytest.ID + registrytest.Key(10, "own_key", "float"), Endpoints: registrytest.Redis}.FS()
	const plan = `{"schema_version": 1, "plan_name": "own", "outputs": ["one"], "nodes": [
		{"node_id": "rows", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 3}}, {"node_id": "one", "op": "own::first", "inputs": ["rows"]}]}`
	own := func(plans fstest.MapFS, args ...string) outcome {
		var stdout, stderr bytes.Buffer
		status := Main(Config{
			Name: "shop", Tasks: []task.Spec{first}, Registry: tables, Plans: plans, Args: args, Stdin: strings.NewReader(`{"user_id": 1, "plan": "own"}`),
			Stdout: &stdout, Stderr: &stderr, Context: t.Context(),
		})
		return outcome{status: status, stdout: stdout.String(), stderr: stderr.String()}
	}
	plans := fstest.MapFS{"own.plan.json": {Data: []byte(plan)}}
	for name, c := range map[string]struct {
		plans  fstest.MapFS
		args   []string
		status int
		shows  string // on stdout, or on stderr if the status is not 0
	}{
		"an answer":        {plans, []string{"--env", "test"}, exitOK, `"candidates":[{"id":1`},
		"its plans":        {plans, []string{"--list-plans"}, exitOK, "own "},
		"its tables":       {plans, []string{"--print-registry"}, exitOK, "own_key"},
		"its tasks":        {plans, []string{"tasks", "first"}, exitOK, "Keeps the first row."},
		"version":          {plans, []string{"--version"}, exitOK, "shop " + version.Read().String()},
		"usage":            {plans, []string{"batch", "--help"}, exitOK, "shop batch"},
		"a broken plan":    {fstest.MapFS{"own.plan.json": {Data: []byte(plan)}, "bad.plan.json": {Data: []byte("{")}}, nil, exitUsage, "bad.plan.json"},
		"tables of a flag": {plans, []string{"--print-registry", "--registry_dir", "../registry/tables"}, exitOK, "final_score"},
	} {
		t.Run(name, func(t *testing.T) {
			o := own(c.plans, c.args...)
			require.Equal(t, c.status, o.status, o.stderr)
			shown := o.stdout
			if c.status != exitOK {
				assert.Empty(t, o.stdout)
				shown = o.stderr
			}
			assert.Contains(t, shown, c.shows)
		})
	}
}
