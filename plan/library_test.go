package plan_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
)

// countingFS counts how often files are opened.
type countingFS struct {
	fstest.MapFS
	opened atomic.Int64
}

func (f *countingFS) Open(name string) (fs.File, error) {
	f.opened.Add(1)
	return f.MapFS.Open(name)
}

// Stat keeps fs.Stat from opening the file.
func (f *countingFS) Stat(name string) (fs.FileInfo, error) { return f.MapFS.Stat(name) }

func testFolder() *countingFS {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	return &countingFS{MapFS: fstest.MapFS{
		"good.plan.json":         file(nodesPlan(source, `"s"`)),
		"also_good.plan.json":    file(nodesPlan(source, ``)),
		"bad.plan.json":          file(`{"schema_version": 2, "plan_name": "bad", "nodes": [], "outputs": []}`),
		"odd-name.plan.json":     file(nodesPlan(source, ``)),
		"folder.plan.json/x":     file(""),
		"sub/hidden.plan.json":   file(nodesPlan(source, ``)),
		"notes.txt":              file("no plan"),
		"good.plan.json.bak":     file("no plan"),
		"../escaped.plan.json":   file(nodesPlan(source, ``)),
		"large.plan.json":        file(strings.Repeat(" ", plan.MaxArtifactBytes+10)),
		"looks_like_nothing.txt": file(""),
	}}
}

func TestLibraryLoadsOnceOnDemand(t *testing.T) {
	folder := testFolder()
	library := plan.NewLibrary(folder, testOps(), testRegistry(t))
	assert.Zero(t, folder.opened.Load())

	var wg sync.WaitGroup
	graphs := make([]*plan.Graph, 8)
	for i := range graphs {
		wg.Go(func() {
			g, err := library.Get("good")
			assert.NoError(t, err)
			graphs[i] = g
		})
	}
	wg.Wait()
	for _, g := range graphs {
		assert.Same(t, graphs[0], g)
	}
	assert.Equal(t, int64(1), folder.opened.Load())
}

func TestLibraryKeepsErrors(t *testing.T) {
	folder := testFolder()
	library := plan.NewLibrary(folder, testOps(), testRegistry(t))
	_, err := library.Get("bad")
	assert.EqualError(t, err, "bad.plan.json: schema_version: must be 1")
	_, again := library.Get("bad")
	assert.Same(t, err, again)
	assert.Equal(t, int64(1), folder.opened.Load())
}

func TestLibraryRefusesNames(t *testing.T) {
	folder := testFolder()
	library := plan.NewLibrary(folder, testOps(), testRegistry(t))
	for _, name := range []string{
		"", ".", "..", "../escaped", "sub/hidden", "/etc/passwd", `a\b`, "odd-name", "good ", "good\n", "good.plan.json", "é",
		"good\x00", strings.Repeat("x/", 5000),
	} {
		_, err := library.Get(name)
		assert.ErrorIs(t, err, plan.ErrBadName, name)
		assert.NotContains(t, err.Error(), "\n")
		assert.Less(t, len(err.Error()), 200)
	}
	for _, name := range []string{"missing", "hidden", "Good", strings.Repeat("x", 200), strings.Repeat("x", 1<<20)} {
		_, err := library.Get(name)
		assert.ErrorIs(t, err, plan.ErrUnknown)
		assert.Less(t, len(err.Error()), 300)
	}
	assert.Zero(t, folder.opened.Load())

	onDisk := plan.NewLibrary(os.DirFS(t.TempDir()), testOps(), testRegistry(t))
	_, err := onDisk.Get(strings.Repeat("x", 201))
	assert.ErrorIs(t, err, plan.ErrUnknown, "not an error of the file system")
}

func TestLibraryBoundsFiles(t *testing.T) {
	_, err := plan.NewLibrary(testFolder(), testOps(), testRegistry(t)).Get("large")
	assert.EqualError(t, err, "large.plan.json: larger than 67108864 bytes")
}

func TestLibraryListsGoodAndBad(t *testing.T) {
	folder := testFolder()
	delete(folder.MapFS, "large.plan.json")
	list, err := plan.NewLibrary(folder, testOps(), testRegistry(t)).List()
	require.NoError(t, err)

	var names []string
	for _, entry := range list {
		names = append(names, entry.Name)
		switch entry.Name {
		case "bad":
			var bad *plan.Error
			assert.ErrorAs(t, entry.Err, &bad)
			assert.Nil(t, entry.Graph)
		case "odd-name":
			assert.ErrorIs(t, entry.Err, plan.ErrBadName)
			assert.ErrorContains(t, entry.Err, "odd-name.plan.json: ")
		default:
			assert.NoError(t, entry.Err)
			assert.NotNil(t, entry.Graph)
		}
	}
	assert.Equal(t, []string{"also_good", "bad", "good", "odd-name"}, names)

	_, err = plan.NewLibrary(os.DirFS(filepath.Join(t.TempDir(), "none")), testOps(), testRegistry(t)).List()
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

func TestLoadFile(t *testing.T) {
	// A file that is named by its path may call itself anything.
	path := filepath.Join(t.TempDir(), "any name.json")
	artifact := strings.Replace(nodesPlan(source, ``), `"plan_name": "p"`, `"plan_name": "a/b c"`, 1)
	require.NoError(t, os.WriteFile(path, []byte(artifact), 0o600))
	g, err := plan.LoadFile(path, testOps(), testRegistry(t))
	require.NoError(t, err)
	assert.Equal(t, "a/b c", g.Name)

	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	_, err = plan.LoadFile(path, testOps(), testRegistry(t))
	assert.EqualError(t, err, path+": invalid JSON: document ends too early at byte 1")

	_, err = plan.LoadFile(path+".none", testOps(), testRegistry(t))
	assert.ErrorIs(t, err, fs.ErrNotExist)
	_, err = plan.LoadFile(t.TempDir(), testOps(), testRegistry(t))
	assert.Error(t, err)
	assert.False(t, errors.As(err, new(*plan.Error)), "a folder is not an artifact")
}

func TestInfo(t *testing.T) {
	g := load(t, nodesPlan(source+`,
		{"node_id": "a", "op": "take", "inputs": ["s"], "params": {"count": 2, "trace": "A"}, "timeout_ms": 5},
		{"node_id": "z", "op": "sleep", "inputs": ["s"], "params": {"duration_ms": 1},
			"scheduling": {"inline": true, "cost_estimate_us": 7}},
		{"node_id": "c", "op": "concat", "inputs": ["a"], "params": {"rhs": "z"}}`, `"c", "a"`))
	got, err := json.Marshal(g.Info())
	require.NoError(t, err)
	assert.JSONEq(t, `{"plan_name": "p", "digest": "`+g.Digest+`", "sources": ["s"], "outputs": ["c", "a"], "nodes": [
		{"node_id": "s", "op": "test::fixed_source", "inputs": [], "deps": 0, "used_by": ["a", "z"], "output": false,
			"params": {"row_count": 1}},
		{"node_id": "a", "op": "core::take", "inputs": ["s"], "deps": 1, "used_by": ["c"], "output": true,
			"params": {"count": 2, "trace": "A"}, "timeout_ms": 5},
		{"node_id": "z", "op": "test::sleep", "inputs": ["s"], "deps": 1, "used_by": ["c"], "output": false,
			"params": {"duration_ms": 1, "fail_after_sleep": false}, "inline": true, "cost_estimate_us": 7},
		{"node_id": "c", "op": "core::concat", "inputs": ["a"], "refs": ["z"], "deps": 2, "used_by": [], "output": true,
			"params": {"rhs": "z"}}]}`, string(got))
}
