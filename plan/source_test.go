package plan_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
)

// compileByName stands for a compiler. The artifact has one node, which names the source. A
// source that begins with "bad" is refused.
func compileByName(file string) ([]byte, error) {
	source, err := fs.ReadFile(sources(), file)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(string(source), "bad") {
		return nil, errors.New(file + ":1:1: refused")
	}
	return fmt.Appendf(nil, `{"schema_version": 1, "plan_name": %q, "outputs": [],
		"nodes": [{"node_id": "s", "op": "test::fixed_source", "inputs": [], "source_span": "%s:1:1"}]}`, source, file), nil
}

func sources() fstest.MapFS {
	return fstest.MapFS{
		"a.plan.ts":        {Data: []byte("a")},
		"b.plan.json":      {Data: []byte(strings.Replace(nodesPlan(source, ``), `"p"`, `"b"`, 1))},
		"broken.plan.ts":   {Data: []byte("bad")},
		"misnamed.plan.ts": {Data: []byte("other")},
		"twice.plan.ts":    {Data: []byte("twice")},
		"twice.plan.json":  {Data: []byte(`{}`)},
		"helper.ts":        {Data: []byte("no plan")},
	}
}

func TestLibraryCompilesSources(t *testing.T) {
	var compiled atomic.Int64
	library := plan.NewLibrary(sources(), "folder here", testOps(), testRegistry(t), func(file string) ([]byte, error) {
		compiled.Add(1)
		return compileByName(file)
	})
	_, _, ok := library.Loaded("a")
	assert.False(t, ok, "nobody asked for it yet")
	g, err := library.Get("a")
	require.NoError(t, err)
	assert.Equal(t, "a.plan.ts:1:1", g.Nodes[0].SourceSpan)
	loaded, err, ok := library.Loaded("a")
	assert.True(t, ok)
	assert.NoError(t, err)
	assert.Same(t, g, loaded)
	assert.EqualValues(t, 1, compiled.Load(), "each source is compiled once")
	artifact, err := library.Artifact("a")
	require.NoError(t, err)
	assert.Contains(t, string(artifact), `"a.plan.ts:1:1"`)
}

func TestLibraryListsSourcesAndArtifacts(t *testing.T) {
	for _, c := range []struct {
		name    string
		compile plan.Compile
		a       string
	}{
		{"with a compiler", compileByName, ""},
		{"without", nil, "a.plan.ts: the plan is TypeScript, and this engine has no compiler; compile it to an artifact"},
	} {
		t.Run(c.name, func(t *testing.T) {
			list, err := plan.NewLibrary(sources(), "folder here", testOps(), testRegistry(t), c.compile).List()
			require.NoError(t, err)
			got := make(map[string]string)
			for _, entry := range list {
				got[entry.Name] = ""
				if entry.Err != nil {
					got[entry.Name] = entry.Err.Error()
				}
			}
			want := map[string]string{
				"a": c.a, "b": "",
				"broken":   "broken.plan.ts:1:1: refused",
				"misnamed": `misnamed.plan.ts: plan_name: is "other", must be "misnamed" as the name of the file says`,
				"twice":    "plan twice: folder here holds twice.plan.json and twice.plan.ts; remove one of them",
			}
			if c.compile == nil {
				for _, name := range []string{"broken", "misnamed"} {
					want[name] = strings.Replace(c.a, "a.plan.ts", name+".plan.ts", 1)
				}
			}
			assert.Equal(t, want, got)
		})
	}
}
