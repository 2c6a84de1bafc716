package compile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/testing/looptest"
)

func TestMain(m *testing.M) {
	compiler.Main()
	looptest.Main(m)
}

// outcome is the result of a command.
type outcome struct {
	stdout, stderr string
	err            error
}

// run runs a command in the folder dir.
func run(t *testing.T, dir string, args ...string) outcome {
	t.Helper()
	t.Chdir(dir)
	var stdout, stderr bytes.Buffer
	err := execute(t.Context(), &stdout, &stderr, args)
	return outcome{stdout.String(), stderr.String(), err}
}

func execute(ctx context.Context, stdout, stderr io.Writer, args []string) error {
	root := &cobra.Command{Use: "rankd", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand((&Program{Stdout: stdout, Stderr: stderr}).Commands(ctx)...)
	root.SetArgs(args)
	return root.Execute()
}

// write writes files below dir, and makes their folders.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
}

// source returns a plan that makes that many rows.
func source(name string, rows int) string {
	return fmt.Sprintf(`import { definePlan } from "@ranking-dsl/runtime";
export default definePlan({ name: %q, build: (ctx) => ctx.fixedSource({ rowCount: %d }) });
`, name, rows)
}

// rowCount returns how many rows the plan in an artifact makes. Without an artifact it returns -1.
func rowCount(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return -1
	}
	require.NoError(t, err)
	var a struct {
		Nodes []struct {
			Params struct {
				RowCount int `json:"row_count"`
			} `json:"params"`
		} `json:"nodes"`
	}
	require.NoError(t, json.Unmarshal(text, &a), "an artifact is never half written")
	return a.Nodes[0].Params.RowCount
}

func TestCompile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"plans/a.plan.ts": source("a", 1), "plans/b.plan.ts": source("b", 2), "plans/note.ts": "no plan"})
	o := run(t, dir, "compile", "plans")
	require.NoError(t, o.err, o.stderr)
	assert.Equal(t, "rankd: compiled 2 plans to artifacts/plans\n", o.stderr)
	assert.Empty(t, o.stdout)
	assert.Equal(t, 1, rowCount(t, "artifacts/plans/a.plan.json"))
	assert.Equal(t, 2, rowCount(t, "artifacts/plans/b.plan.json"))

	o = run(t, dir, "compile", "plans", "plans/a.plan.ts", "./plans/a.plan.ts", "-o", "elsewhere", "--json")
	require.NoError(t, o.err)
	var r report
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &r), o.stdout)
	assert.Equal(t, []compiled{
		{Source: "plans/a.plan.ts", Plan: "a", Artifact: "elsewhere/a.plan.json"},
		{Source: "plans/b.plan.ts", Plan: "b", Artifact: "elsewhere/b.plan.json"},
	}, r.Plans, "each source once")
	assert.Equal(t, `[]`, string(o.stdout[strings.Index(o.stdout, `"diagnostics":`)+14:len(o.stdout)-2]))
}

// The same plans give the same bytes, wherever they are compiled.
// TestCompileCopiesAliases: the aliases of a folder come beside its artifacts, once the plans are there that they name.
func TestCompileCopiesAliases(t *testing.T) {
	dir := t.TempDir()
	const aliases = "# who gets what\nhome = { a = \"a\", b = \"b\", b_share = 5 }\n"
	write(t, dir, map[string]string{"plans/a.plan.ts": source("a", 1), "plans/aliases.toml": aliases, "more/b.plan.ts": source("b", 2)})
	copied := func() string {
		text, _ := os.ReadFile("artifacts/plans/aliases.toml")
		return string(text)
	}
	o := run(t, dir, "compile", "plans")
	assert.ErrorIs(t, o.err, cmdline.ErrReported)
	assert.Equal(t, "plans/aliases.toml:1:1: error: home: there is no plan b [bad-alias]\nrankd: compiled 1 plan to artifacts/plans; 1 file with errors\n", o.stderr)
	assert.Empty(t, copied())

	require.NoError(t, run(t, dir, "compile", "plans", "more", "plans/a.plan.ts").err)
	assert.Equal(t, aliases, copied())

	write(t, dir, map[string]string{"more/aliases.toml": "start = \"b\"\n"})
	o = run(t, dir, "compile", "plans", "more")
	assert.EqualError(t, o.err, "plans/aliases.toml and more/aliases.toml differ, and the artifacts have one aliases.toml: put all aliases into one of them")
	write(t, dir, map[string]string{"more/aliases.toml": aliases})
	require.NoError(t, run(t, dir, "compile", "plans", "more").err)

	write(t, dir, map[string]string{"more/aliases.toml": "", "plans/aliases.toml": ""})
	require.NoError(t, run(t, dir, "compile", "plans").err)
	assert.Empty(t, copied(), "an empty file is one, too")
}

func TestArtifactsDoNotDependOnTheWorkingFolder(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"plans/a.plan.ts": source("a", 1)})
	var first []byte
	for _, c := range []struct{ from, what, artifacts string }{
		{".", "plans", "one"}, {"plans", ".", "two"}, {"plans", "a.plan.ts", "three"}, {".", filepath.Join(dir, "plans"), "four"},
	} {
		o := run(t, filepath.Join(dir, c.from), "compile", c.what, "-o", filepath.Join(dir, c.artifacts))
		require.NoError(t, o.err, o.stderr)
		text, err := os.ReadFile(filepath.Join(dir, c.artifacts, "a.plan.json"))
		require.NoError(t, err)
		if first == nil {
			first = text
		}
		assert.Equal(t, string(first), string(text), c.artifacts)
		assert.Contains(t, string(text), `"plans/a.plan.ts:2:`)
	}
}

var manyPlans = flag.Int("plans", 100, "how many plans TestCompileManyWithThreeBroken compiles")

// Broken plans cost the others nothing. The old artifacts of broken plans stay.
func TestCompileManyWithThreeBroken(t *testing.T) {
	const broken = 3
	plans := *manyPlans
	dir := t.TempDir()
	files := make(map[string]string)
	for i := range plans {
		files[fmt.Sprintf("plans/p%d.plan.ts", i)] = source(fmt.Sprintf("p%d", i), i)
	}
	files["plans/p7.plan.ts"] = "import {\n"
	files["plans/p77.plan.ts"] = strings.Replace(files["plans/p77.plan.ts"], "fixedSource", "fixdSource", 1)
	files["plans/p70.plan.ts"] = strings.Replace(files["plans/p70.plan.ts"], "ctx.fixed", "ctx.viewer({ endpoint: EP.redis.redis_defualt }).fixed", 1)
	files["artifacts/plans/p77.plan.json"] = `{"nodes": [{"params": {"row_count": 5}}]}`
	write(t, dir, files)
	o := run(t, dir, "compile", "plans")
	assert.ErrorIs(t, o.err, cmdline.ErrReported)
	assert.Contains(t, o.stderr, fmt.Sprintf("rankd: compiled %d plans to artifacts/plans; %d files with errors\n", plans-broken, broken))
	for _, place := range []string{"plans/p7.plan.ts:", "plans/p77.plan.ts:2:", "plans/p70.plan.ts:2:"} {
		assert.Contains(t, o.stderr, place)
	}
	written, err := filepath.Glob("artifacts/plans/*")
	require.NoError(t, err)
	assert.Len(t, written, plans-broken+1)
	assert.Equal(t, plans-1, rowCount(t, fmt.Sprintf("artifacts/plans/p%d.plan.json", plans-1)))
	assert.Equal(t, 5, rowCount(t, "artifacts/plans/p77.plan.json"))
}

func TestCompileRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"twins/a.plan.ts": source("same", 1), "twins/b.plan.ts": source("same", 2), "twins/c.plan.ts": source("other", 3),
		"path/a.plan.ts": source("../a", 1), "empty/note.txt": "", "file": "", "good/good.plan.ts": source("good", 1),
	})
	for _, c := range []struct {
		args []string
		want string // in the error, or on stderr
		is   error
	}{
		{[]string{"twins"}, "twins/a.plan.ts:2:", cmdline.ErrReported},
		{[]string{"path"}, "path/a.plan.ts:2:", cmdline.ErrReported},
		{[]string{"empty"}, "empty holds no plan, which is a file <name>.plan.ts", nil},
		{[]string{"none"}, "none: no such file or directory", nil},
		{[]string{"good/none.plan.ts"}, "good/none.plan.ts: no such file or directory", nil},
		{[]string{"file"}, "file is not a plan in TypeScript", nil},
		{nil, "name the plans to compile", nil},
		{[]string{"good", "-o", ""}, "--output needs a value", nil},
		{[]string{"good", "-o", "file"}, "file", nil},
		{[]string{"good", "--registry_dir", "none"}, "--registry_dir", nil},
		{[]string{"good", "--env", "nowhere"}, "nowhere", nil},
	} {
		o := run(t, dir, append([]string{"compile"}, c.args...)...)
		require.Error(t, o.err, "%v", c.args)
		assert.Contains(t, o.stderr+o.err.Error(), c.want)
		if c.is != nil {
			assert.ErrorIs(t, o.err, c.is)
		}
	}
	written, err := filepath.Glob(filepath.Join(dir, "artifacts/plans/*"))
	require.NoError(t, err)
	assert.Equal(t, []string{filepath.Join(dir, "artifacts/plans/other.plan.json")}, written, "neither of two plans with one name is written")
}

func TestCompileAsDiagnostics(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"p/a.plan.ts": strings.Replace(source("a", 1), "rowCount", "rowsCount", 1)})
	o := run(t, dir, "compile", "p", "--json")
	assert.ErrorIs(t, o.err, cmdline.ErrReported)
	assert.Empty(t, o.stderr)
	var r report
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &r))
	require.Len(t, r.Diagnostics, 1)
	d := r.Diagnostics[0]
	assert.Equal(t, "p/a.plan.ts", d.File)
	assert.Equal(t, 2, d.Line)
	assert.Equal(t, compiler.Error, d.Severity)
	assert.Contains(t, d.Message, "rowsCount")
	assert.NotEmpty(t, d.Hint)
	assert.Contains(t, d.Excerpt, "ctx.fixedSource")
	assert.Empty(t, r.Plans)
}

func TestInitCommand(t *testing.T) {
	dir := t.TempDir()
	o := run(t, dir, "init", "mine")
	require.NoError(t, o.err)
	assert.Equal(t, "wrote mine/rankd.d.ts\nwrote mine/tsconfig.json\nwrote mine/example.plan.ts\nwrote mine/example.plan.test.ts\n", o.stdout)
	o = run(t, dir, "compile", "mine")
	assert.NoError(t, o.err, "the example compiles: %s", o.stderr)
	assert.ErrorContains(t, run(t, dir, "init").err, "takes one folder, not 0")

	// The declarations have the keys of the registry that is named.
	tables := tablesWithout(t, "country")
	o = run(t, dir, "init", "other", "--registry_dir", tables)
	require.NoError(t, o.err)
	text, err := os.ReadFile("other/rankd.d.ts")
	require.NoError(t, err)
	assert.NotContains(t, string(text), "country")
	assert.Contains(t, string(text), "title")

	// A folder of tables that is not there is made, with tables that the example can use.
	o = run(t, dir, "init", "third", "--registry_dir", "deep/registry")
	require.NoError(t, o.err)
	assert.Equal(t, "wrote deep/registry, which has the built-in tables: put your own columns, parameters and endpoints there\n"+
		"wrote third/rankd.d.ts\nwrote third/tsconfig.json\nwrote third/example.plan.ts\nwrote third/example.plan.test.ts\n", o.stdout)
	assert.NoError(t, run(t, dir, "compile", "third", "--registry_dir", "deep/registry").err)
}

// init --go begins a module beside what is there, with types that know its task.
func TestInitGoCommand(t *testing.T) {
	checkout, err := filepath.Abs("../../..")
	require.NoError(t, err)
	dir := t.TempDir()
	o := run(t, dir, "init", "deep/mine", "--go", "--checkout", checkout)
	require.NoError(t, o.err)
	assert.Equal(t, []string{"wrote deep/mine/go.mod", "wrote deep/mine/go.sum", "wrote deep/mine/main.go", "wrote deep/mine/every.go",
		"wrote deep/mine/plans/every.plan.ts", "wrote deep/mine/plans/every.plan.test.ts", "wrote deep/mine/plans/rankd.d.ts", "wrote deep/mine/plans/tsconfig.json",
		"next: cd deep/mine && go run . test plans", ""}, strings.Split(o.stdout, "\n"))
	text, err := os.ReadFile("deep/mine/plans/rankd.d.ts")
	require.NoError(t, err)
	assert.Contains(t, string(text), "every(")

	// Tables that are named are those of the module, and rankd.toml leads its program there.
	o = run(t, dir, "init", "other", "--go", "--checkout", checkout, "--registry_dir", "tables")
	require.NoError(t, o.err)
	text, err = os.ReadFile("rankd.toml")
	require.NoError(t, err)
	assert.Contains(t, string(text), "registry = 'tables'\nplans = 'other/plans'\n")

	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"deep/mine", "--go", "--checkout", checkout}, "deep/mine/go.mod is there already"},
		{[]string{"mine", "--go"}, "name a checkout of rankd: init mine --go --checkout PATH"},
		{[]string{"mine", "--checkout", checkout}, "--checkout is for --go"},
		{[]string{"--go", "--checkout", checkout, "--plan_dir", "plans"}, "init --go takes the folder of the module as an argument"},
	} {
		assert.ErrorContains(t, run(t, dir, append([]string{"init"}, c.args...)...).err, c.want)
		assert.NoDirExists(t, "mine")
	}
}

// tables is the path of the built-in tables. It is absolute, because tests change their folder.
var tables, _ = filepath.Abs("../../../registry/tables")

// tablesWithout returns a folder with the built-in tables, except for one key.
func tablesWithout(t *testing.T, key string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(tables)))
	path := filepath.Join(dir, "keys.toml")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	entries := strings.Split(string(text), "[[")
	kept := entries[:1]
	for _, entry := range entries[1:] {
		if !strings.Contains(entry, `"`+key+`"`) {
			kept = append(kept, entry)
		}
	}
	require.Len(t, kept, len(entries)-1)
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(kept, "[[")), 0o644))
	return dir
}
