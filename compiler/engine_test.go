package compiler_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task/builtin"
)

// firstNode returns what an artifact says of its first node.
func firstNode(t *testing.T, artifact []byte) (rows int, span string) {
	t.Helper()
	var a struct {
		Nodes []struct {
			Params struct {
				RowCount int `json:"row_count"`
			} `json:"params"`
			SourceSpan string `json:"source_span"`
		} `json:"nodes"`
	}
	require.NoError(t, json.Unmarshal(artifact, &a))
	return a.Nodes[0].Params.RowCount, a.Nodes[0].SourceSpan
}

// An engine's folder need not be in the file system. Spans name it if it is.
func TestForEngine(t *testing.T) {
	folder := fstest.MapFS{
		"typed.plan.ts": {Data: []byte(`import { definePlan } from "@ranking-dsl/runtime";
import { rows } from "./shared/rows";
export default definePlan({ name: "typed", build: (ctx) => ctx.fixedSource({ rowCount: rows }) });
`)},
		"shared/rows.ts": {Data: []byte("export const rows = 4;")},
		"broken.plan.ts": {Data: []byte("export default 5;")},
	}
	onDisk := filepath.Join(t.TempDir(), "ranking")
	require.NoError(t, os.CopyFS(onDisk, folder))
	reg, err := registry.Default("dev")
	require.NoError(t, err)
	tasks := builtin.Catalog()
	t.Setenv("TMPDIR", t.TempDir())

	for dir, place := range map[string]struct{ label, path string }{"": {"plans", "plans"}, onDisk: {"ranking", onDisk}} {
		reported := make(map[string]bool)
		plans := &compiler.ForEngine{Report: func(r compiler.Result) { reported[r.File] = len(r.Errors) == 0 }}
		artifact, err := plans.Compile(folder, dir, "typed.plan.ts", tasks, reg)
		require.NoError(t, err)
		rows, span := firstNode(t, artifact)
		assert.Equal(t, 4, rows)
		assert.Equal(t, place.label+"/typed.plan.ts:3:64", span)

		_, err = plans.Compile(folder, dir, "broken.plan.ts", tasks, reg)
		var refused *compiler.Failure
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, filepath.Join(place.path, "broken.plan.ts"), refused.Diagnostics[0].File)
		assert.Equal(t, 1, refused.Diagnostics[0].Line)
		assert.NotContains(t, refused.Error(), "\n", "answers have one line")
		assert.Contains(t, refused.Error(), refused.Diagnostics[0].Message)
		assert.Contains(t, refused.Text(), refused.Diagnostics[0].String()+"\n")
		assert.Equal(t, map[string]bool{"typed.plan.ts": true, "broken.plan.ts": false}, reported)
		assert.NoError(t, plans.Close())
		_, err = plans.Compile(folder, dir, "typed.plan.ts", tasks, reg)
		require.ErrorIs(t, err, compiler.ErrClosed)
	}

	// Another generation of the engine has its own tables.
	plans := new(compiler.ForEngine)
	source := fstest.MapFS{"new.plan.ts": {Data: []byte(`import { definePlan } from "@ranking-dsl/runtime";
export default definePlan({ name: "new", build: (ctx) => ctx.fixedSource().vm({ outKey: Key.fresh, expr: 1 }) });`)}}
	_, err = plans.Compile(source, "", "new.plan.ts", tasks, reg)
	require.ErrorContains(t, err, `Key has no "fresh"`)
	tables := registrytest.Tables{Keys: registrytest.ID + registrytest.Key(9, "fresh", "float", registrytest.Writable)}
	_, err = plans.Compile(source, "", "new.plan.ts", tasks, tables.Load())
	require.NoError(t, err)
	require.NoError(t, plans.Close())

	left, err := os.ReadDir(os.TempDir())
	assert.NoError(t, err)
	assert.Empty(t, left, "Close removes what Compile wrote")
}
