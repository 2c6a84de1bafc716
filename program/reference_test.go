package program

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/reference"
	"github.com/rankd/rankd/task/builtin"
)

func TestTasksAreListedAndDescribed(t *testing.T) {
	tasks := reference.Tasks(builtin.Catalog())
	o := run(t, nil, "tasks")
	require.Equal(t, exitOK, o.status, o.stderr)
	require.Len(t, o.lines(), len(tasks)+1)
	var all []reference.Task
	o = run(t, nil, "tasks", "--json")
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &all))
	require.Len(t, all, len(tasks))
	for i := range tasks {
		for _, name := range []string{tasks[i].Op, tasks[i].Name()} {
			o := run(t, nil, "tasks", name)
			require.Equal(t, exitOK, o.status, o.stderr)
			assert.Contains(t, strings.Join(strings.Fields(o.stdout), " "), tasks[i].Doc)
			assert.Contains(t, o.stdout, "Example, in TypeScript")
		}
		assert.Equal(t, tasks[i].Failures, all[i].Failures)
	}
	var one reference.Task
	o = run(t, nil, "tasks", "sort", "--json")
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &one))
	assert.Equal(t, "core::sort", one.Op)
	require.Len(t, one.Params, 2)
	assert.Equal(t, []string{"asc", "desc"}, one.Params[1].Enum)
	require.NotNil(t, one.Example)
	assert.NotEmpty(t, one.Example.Answer)
}
