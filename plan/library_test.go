package plan_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/examples/demo"
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

// Stat prevents fs.Stat from opening the file.
func (f *countingFS) Stat(name string) (fs.FileInfo, error) { return f.MapFS.Stat(name) }

func testFolder() *countingFS {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	named := func(name, text string) *fstest.MapFile {
		return file(strings.Replace(text, `"plan_name": "p"`, `"plan_name": "`+name+`"`, 1))
	}
	return &countingFS{MapFS: fstest.MapFS{
		"good.plan.json":         named("good", nodesPlan(source, `"s"`)),
		"also_good.plan.json":    named("also_good", nodesPlan(source, ``)),
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
	library := plan.NewLibrary(folder, "folder here", testOps(), testRegistry(t), nil)
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
	library := plan.NewLibrary(folder, "folder here", testOps(), testRegistry(t), nil)
	_, err := library.Get("bad")
	assert.EqualError(t, err, "bad.plan.json: schema_version: must be 1")
	_, again := library.Get("bad")
	assert.Same(t, err, again)
	assert.Equal(t, int64(1), folder.opened.Load())
}

func TestLibraryRefusesNames(t *testing.T) {
	folder := testFolder()
	library := plan.NewLibrary(folder, "folder here", testOps(), testRegistry(t), nil)
	for _, name := range []string{
		"", ".", "..", "../escaped", "sub/hidden", "/etc/passwd", `a\b`, "odd-name", "good ", "good\n", "good.plan.json", "é",
		"good\x00", strings.Repeat("x/", 5000),
	} {
		_, err := library.Get(name)
		assert.ErrorIs(t, err, plan.ErrBadName, name)
		assert.NotContains(t, err.Error(), "\n")
		assert.Less(t, len(err.Error()), 300)
	}
	for _, name := range []string{"missing", "hidden", "Good", strings.Repeat("x", 200), strings.Repeat("x", 1<<20)} {
		_, err := library.Get(name)
		assert.ErrorIs(t, err, plan.ErrUnknown)
		assert.Less(t, len(err.Error()), 300)
	}
	assert.Zero(t, folder.opened.Load())

	onDisk := plan.NewLibrary(os.DirFS(t.TempDir()), "folder here", testOps(), testRegistry(t), nil)
	_, err := onDisk.Get(strings.Repeat("x", 201))
	assert.ErrorIs(t, err, plan.ErrUnknown, "not an error of the file system")
}

func TestLibraryRefusesAPlanWithAnotherName(t *testing.T) {
	folder := testFolder()
	folder.MapFS["x.plan.json"] = &fstest.MapFile{Data: []byte(nodesPlan(source, ``))}
	library := plan.NewLibrary(folder, "folder here", testOps(), testRegistry(t), nil)
	g, err := library.Get("x")
	assert.EqualError(t, err, `x.plan.json: plan_name: is "p", must be "x" as the name of the file says`)
	assert.Nil(t, g)
	folder.MapFS["y.plan.json"] = &fstest.MapFile{
		Data: []byte(strings.Replace(nodesPlan(source, ``), `"p"`, `"`+strings.Repeat("z", 1<<20)+`"`, 1))}
	_, err = library.Get("y")
	assert.ErrorContains(t, err, `z…" (1048576 bytes), must be "y"`)
	assert.Less(t, len(err.Error()), 400)
}

func TestLibraryTakesRegularFilesOnly(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p.plan.json"), []byte(nodesPlan(source, ``)), 0o600))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe.plan.json"), 0o600))
	require.NoError(t, os.Symlink("/dev/zero", filepath.Join(dir, "device.plan.json")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a\x1b[31m\n.plan.json"), nil, 0o600))
	library := plan.NewLibrary(os.DirFS(dir), "folder here", testOps(), testRegistry(t), nil)
	list, err := library.List() // would wait forever if it opened the pipe
	require.NoError(t, err)
	said := make(map[string]string)
	for _, entry := range list {
		if entry.Err != nil {
			said[entry.Name] = entry.Err.Error()
		}
	}
	assert.Equal(t, map[string]string{
		"pipe":        "pipe.plan.json: is a named pipe, must be a regular file",
		"device":      "device.plan.json: is a device, must be a regular file",
		"a\x1b[31m\n": `"a\x1b[31m\n.plan.json": a plan name consists of letters, digits and _, not "a\x1b[31m\n"`,
	}, said)
}

func TestLibraryNamesTheNearestPlan(t *testing.T) {
	folder := testFolder()
	library := plan.NewLibrary(folder, "folder /plans", testOps(), testRegistry(t), nil)
	for name, near := range map[string]string{
		"goood": "good", "Good": "good", "doog": "good", "alsogood": "also_good", "bade": "bad", "b": "bad", "larger": "large",
		strings.Repeat("x", 200): "also_good",
	} {
		_, err := library.Get(name)
		require.ErrorIs(t, err, plan.ErrUnknown)
		assert.EqualError(t, err, `unknown plan "`+name+`" in folder /plans; the nearest is "`+near+`"`)
	}
	assert.EqualError(t, library.Unknown("good"), `unknown plan "good": its file in folder /plans is not loaded yet`)
	_, err := library.Get(strings.Repeat("x", 201))
	assert.EqualError(t, err, `unknown plan "`+strings.Repeat("x", 200)+`…" (201 bytes) in folder /plans`)
	_, err = plan.NewLibrary(fstest.MapFS{}, "folder /plans", testOps(), testRegistry(t), nil).Get("x")
	assert.EqualError(t, err, `unknown plan "x": there are no plans in folder /plans`)
}

func TestLibraryBoundsFiles(t *testing.T) {
	_, err := plan.NewLibrary(testFolder(), "folder here", testOps(), testRegistry(t), nil).Get("large")
	assert.EqualError(t, err, "large.plan.json: larger than 67108864 bytes")
}

func TestLibraryListsGoodAndBad(t *testing.T) {
	folder := testFolder()
	delete(folder.MapFS, "large.plan.json")
	list, err := plan.NewLibrary(folder, "folder here", testOps(), testRegistry(t), nil).List()
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
		case "folder":
			assert.EqualError(t, entry.Err, "folder.plan.json: is a folder, must be a regular file")
		default:
			assert.NoError(t, entry.Err)
			assert.NotNil(t, entry.Graph)
		}
	}
	assert.Equal(t, []string{"also_good", "bad", "folder", "good", "odd-name"}, names)

	_, err = plan.NewLibrary(os.DirFS(filepath.Join(t.TempDir(), "none")), "folder here", testOps(), testRegistry(t), nil).List()
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

// loadFile loads the plan in the file at path.
func loadFile(t *testing.T, path string) (*plan.Graph, error) {
	artifact, err := plan.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return plan.Load(path, artifact, testOps(), testRegistry(t))
}

func TestReadFile(t *testing.T) {
	// A file that is named by its path may contain a plan of any name.
	path := filepath.Join(t.TempDir(), "any name.json")
	artifact := strings.Replace(nodesPlan(source, ``), `"plan_name": "p"`, `"plan_name": "a/b c"`, 1)
	require.NoError(t, os.WriteFile(path, []byte(artifact), 0o600))
	g, err := loadFile(t, path)
	require.NoError(t, err)
	assert.Equal(t, "a/b c", g.Name)

	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	_, err = loadFile(t, path)
	assert.EqualError(t, err, path+": invalid JSON: document ends too early at byte 1, line 1")

	_, err = loadFile(t, "/dev/zero")
	assert.EqualError(t, err, "/dev/zero: larger than 67108864 bytes")
	_, err = loadFile(t, path+".none\x1b")
	assert.EqualError(t, err, strconv.Quote(path+".none\x1b")+": no such file or directory")
	_, err = loadFile(t, path+".none")
	assert.ErrorIs(t, err, fs.ErrNotExist)
	_, err = loadFile(t, t.TempDir())
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

// BenchmarkLibraryGet finds a loaded plan, as each request does that names one.
func BenchmarkLibraryGet(b *testing.B) {
	l := plan.NewLibrary(demo.Plans(), "the built-in examples", testOps(), testRegistry(b), nil)
	_, err := l.Get("complex_dag")
	require.NoError(b, err)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := l.Get("complex_dag"); err != nil {
				b.Error(err)
			}
		}
	})
}

// A repaired plan loads without a restart. Nobody can make the library read a refused plan more
// than once per change, or look at its file more than once a second.
func TestLibraryLoadsARepairedPlan(t *testing.T) {
	folder := testFolder()
	library := plan.NewLibrary(folder, "folder here", testOps(), testRegistry(t), nil)
	now := time.Unix(0, 0)
	library.SetNow(func() time.Time { return now })
	_, err := library.Get("bad")
	require.Error(t, err)
	now = now.Add(time.Second)
	_, _, ok := library.Loaded("bad")
	assert.False(t, ok, "it is time to look again")
	_, again := library.Get("bad")
	assert.Same(t, err, again)
	assert.EqualValues(t, 1, folder.opened.Load(), "the file is the same")

	folder.MapFS["bad.plan.json"] = &fstest.MapFile{Data: []byte(strings.Replace(nodesPlan(source, ``), `"p"`, `"bad"`, 1))}
	now = now.Add(time.Second - 1)
	_, again = library.Get("bad")
	assert.Same(t, err, again, "too early to look")
	now = now.Add(1)
	g, err := library.Get("bad")
	require.NoError(t, err)
	same, err, ok := library.Loaded("bad")
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Same(t, g, same)
	assert.EqualValues(t, 2, folder.opened.Load())
}
