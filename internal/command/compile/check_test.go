package compile

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/cmdline"
)

// checkedFolder returns a folder with two plans and their artifacts.
func checkedFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{"plans/a.plan.ts": source("a", 1), "plans/b.plan.ts": `import { definePlan } from "@ranking-dsl/runtime";

export default definePlan({
  name: "b",
  build: (ctx) => ctx
    .viewer({ endpoint: EP.redis.redis_default })
    .filter({ pred: Key.country == "US" })
    .vm({ outKey: Key.score, expr: Key.id * 2 }),
});
`})
	o := run(t, dir, "compile", "plans")
	require.NoError(t, o.err, o.stderr)
	return dir
}

func TestCheck(t *testing.T) {
	compiled := os.DirFS(checkedFolder(t)) // once, because each command starts a process
	for _, c := range []struct {
		name   string
		change func(t *testing.T, dir string) (args []string)
		want   []string // on stderr; none: all is well
	}{
		{"up to date", func(*testing.T, string) []string { return nil }, nil},
		{"another source", func(t *testing.T, dir string) []string {
			write(t, dir, map[string]string{"plans/a.plan.ts": source("a", 2)})
			return nil
		}, []string{"plans/a.plan.ts:1:1: error: artifacts/plans/a.plan.json is stale", "hint: run rankd compile plans -o artifacts/plans"}},
		{"a source that differs in its comments", func(t *testing.T, dir string) []string {
			write(t, dir, map[string]string{"plans/a.plan.ts": source("a", 1) + "// more\n"})
			return nil
		}, []string{"artifacts/plans/a.plan.json is stale"}},
		{"an artifact edited by hand", func(t *testing.T, dir string) []string {
			write(t, dir, map[string]string{"artifacts/plans/a.plan.json": "{}"})
			return nil
		}, []string{"plans/a.plan.ts:1:1: error: artifacts/plans/a.plan.json is stale"}},
		{"an artifact is missing", func(t *testing.T, dir string) []string {
			require.NoError(t, os.Remove("artifacts/plans/a.plan.json"))
			return nil
		}, []string{"plans/a.plan.ts:1:1: error: its artifact is missing"}},
		{"a source is gone", func(t *testing.T, dir string) []string {
			require.NoError(t, os.Remove("plans/a.plan.ts"))
			return nil
		}, []string{"artifacts/plans/a.plan.json:1:1: error: the source of this artifact is gone"}},
		{"aliases that are copied", func(t *testing.T, dir string) []string {
			write(t, dir, map[string]string{"plans/aliases.toml": "home = \"a\"\n"})
			require.NoError(t, run(t, dir, "compile", "plans").err)
			return nil
		}, nil},
		{"aliases that are not copied", func(t *testing.T, dir string) []string {
			write(t, dir, map[string]string{"plans/aliases.toml": "home = \"a\"\n"})
			return nil
		}, []string{"plans/aliases.toml:1:1: error: its copy is missing", "hint: run rankd compile plans -o artifacts/plans"}},
		{"other aliases", func(t *testing.T, dir string) []string {
			write(t, dir, map[string]string{"plans/aliases.toml": "home = \"a\"\n", "artifacts/plans/aliases.toml": "home = \"b\"\n"})
			return nil
		}, []string{"plans/aliases.toml:1:1: error: artifacts/plans/aliases.toml is stale"}},
		{"aliases whose source is gone", func(t *testing.T, dir string) []string {
			write(t, dir, map[string]string{"artifacts/plans/aliases.toml": "home = \"a\"\n"})
			return nil
		}, []string{"artifacts/plans/aliases.toml:1:1: error: the source of these aliases is gone", "hint: remove the file, or move it to plans"}},
		{"aliases of a plan that is not there", func(t *testing.T, dir string) []string {
			write(t, dir, map[string]string{"plans/aliases.toml": "home = \"c\"\n"})
			return nil
		}, []string{"plans/aliases.toml:1:1: error: home: there is no plan c"}},
		{"artifacts beside their sources, with aliases", func(t *testing.T, dir string) []string {
			require.NoError(t, os.RemoveAll("artifacts"))
			write(t, dir, map[string]string{"plans/aliases.toml": "home = \"a\"\n"})
			require.NoError(t, run(t, dir, "compile", "plans", "-o", "plans").err)
			return []string{"plans", "-o", "plans"}
		}, nil},
		{"an artifact without a source", func(t *testing.T, dir string) []string {
			write(t, dir, map[string]string{"plans/hand.plan.json": fixed("hand"), "artifacts/plans/other.plan.json": fixed("other")})
			return nil
		}, nil},
		{"a source and an artifact for one name", func(t *testing.T, dir string) []string {
			write(t, dir, map[string]string{"plans/a.plan.json": fixed("a")})
			return nil
		}, []string{"plans/a.plan.ts:1:1: error: the plan has two files, the other is plans/a.plan.json"}},
		{"an artifact that is none", func(t *testing.T, dir string) []string {
			write(t, dir, map[string]string{"plans/hand.plan.json": "{}"})
			return nil
		}, []string{"plans/hand.plan.json:1:1: error: schema_version: is missing"}},
		{"a folder in place of an artifact by hand", func(t *testing.T, dir string) []string {
			require.NoError(t, os.MkdirAll("plans/hand.plan.json", 0o755))
			return nil
		}, []string{"plans/hand.plan.json:1:1: error: is a folder, must be a regular file"}},
		{"a folder in place of a source", func(t *testing.T, dir string) []string {
			require.NoError(t, os.MkdirAll("plans/c.plan.ts", 0o755))
			return nil
		}, []string{"plans/c.plan.ts:1:1: error: cannot read c.plan.ts: not a regular file"}},
		{"a folder in place of an artifact", func(t *testing.T, dir string) []string {
			require.NoError(t, os.Remove("artifacts/plans/a.plan.json"))
			require.NoError(t, os.Mkdir("artifacts/plans/a.plan.json", 0o755))
			return nil
		}, []string{"plans/a.plan.ts:1:1: error: its artifact is missing: artifacts/plans/a.plan.json: is a folder, must be a regular file"}},
		{"rows of a plan that is not there", func(t *testing.T, dir string) []string {
			write(t, dir, map[string]string{"plans/hand.plan.json": resident("hand", "gone")})
			return nil
		}, []string{`plans/hand.plan.json:1:1: error: node "n1" reads the rows of plan gone: the folder has no sound plan gone`}},
		{"rows of a plan that depends on the user", func(t *testing.T, dir string) []string {
			write(t, dir, map[string]string{"plans/hand.plan.json": resident("hand", "b")})
			return nil
		}, []string{`node "n1" reads the rows of plan b: node n0 (core::viewer) of plan b depends on the user`}},
		{"rows without a column", func(t *testing.T, dir string) []string {
			write(t, dir, map[string]string{"plans/hand.plan.json": resident("hand", "fixed"), "plans/fixed.plan.json": fixed("fixed")})
			return nil
		}, []string{"plan fixed returns no column country of type string"}},
		{"a registry that lost a key", func(t *testing.T, dir string) []string {
			return []string{"--registry_dir", tablesWithout(t, "country")}
		}, []string{"plans/b.plan.ts:7:"}},
		{"a registry that lost a key of an artifact alone", func(t *testing.T, dir string) []string {
			require.NoError(t, os.MkdirAll("served", 0o755))
			require.NoError(t, os.Rename("artifacts/plans/b.plan.json", "served/b.plan.json"))
			require.NoError(t, os.RemoveAll("plans"))
			require.NoError(t, os.Rename("served", "plans"))
			require.NoError(t, os.RemoveAll("artifacts"))
			require.NoError(t, os.Rename("plans", "json"))
			return []string{"json", "--registry_dir", tablesWithout(t, "score")}
		}, []string{"plans/b.plan.ts:8:", `node "n2" uses key 2002, which the registry lacks (json/b.plan.json)`}},
		{"a column that nothing writes", func(t *testing.T, dir string) []string {
			write(t, dir, map[string]string{"plans/hand.plan.json": unwritten("hand")})
			return nil
		}, []string{`plans/hand.plan.json:1:1: error: node "f": nodes[1].params.pred_id: reads column "title" (3002), which no node before it writes`}},
		{"a column that nothing writes in the artifact of a source", func(t *testing.T, dir string) []string {
			text, err := os.ReadFile("plans/b.plan.ts")
			require.NoError(t, err)
			write(t, dir, map[string]string{"plans/b.plan.ts": strings.Replace(string(text), "Key.country", "Key.title", 1)})
			require.NoError(t, run(t, dir, "compile", "plans").err)
			return nil
		}, []string{`plans/b.plan.ts:7:6: error: node "n1": nodes[1].params.pred_id: reads column "title"`}},
		{"an error", func(t *testing.T, dir string) []string {
			write(t, dir, map[string]string{"plans/a.plan.ts": "oops("})
			return nil
		}, []string{"plans/a.plan.ts:1:"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, compiled))
			t.Chdir(dir)
			args := c.change(t, dir)
			if len(args) == 0 || args[0] == "--registry_dir" {
				args = append([]string{"plans"}, args...)
			}
			before := listing(t, dir)
			o := run(t, dir, append([]string{"check"}, args...)...)
			assert.Equal(t, before, listing(t, dir), "check writes nothing")
			if len(c.want) == 0 {
				assert.NoError(t, o.err, o.stderr)
				assert.Equal(t, "rankd: 2 plans up to date\n", o.stderr)
				return
			}
			assert.ErrorIs(t, o.err, cmdline.ErrReported)
			for _, want := range c.want {
				assert.Contains(t, o.stderr, want)
			}
		})
	}
}

func TestCheckAsJSON(t *testing.T) {
	dir := checkedFolder(t)
	write(t, dir, map[string]string{"plans/a.plan.ts": source("a", 2)})
	assert.ErrorContains(t, run(t, dir, "check", "plans/a.plan.ts").err, "not a directory; check looks at a whole folder: rankd check plans")
	o := run(t, dir, "check", "plans", "--json")
	assert.ErrorIs(t, o.err, cmdline.ErrReported)
	var r report
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &r))
	require.Len(t, r.Diagnostics, 1)
	assert.Equal(t, "stale-artifact", r.Diagnostics[0].Code)
	assert.Equal(t, []compiled{{Source: "plans/b.plan.ts", Plan: "b", Artifact: "artifacts/plans/b.plan.json"}}, r.Plans)
	assert.Empty(t, o.stderr)
}

// fixed returns an artifact that people wrote.
func fixed(name string) string {
	return `{"schema_version": 1, "plan_name": "` + name + `", "outputs": ["s"], "nodes": [{"node_id": "s", "op": "test::fixed_source", "inputs": []}]}`
}

// unwritten returns an artifact that reads a column that no node writes.
func unwritten(name string) string {
	return `{"schema_version": 1, "plan_name": "` + name + `", "outputs": ["f"], "nodes": [
		{"node_id": "s", "op": "test::fixed_source", "inputs": []},
		{"node_id": "f", "op": "core::filter", "inputs": ["s"], "params": {"pred_id": "p"}}],
		"pred_table": {"p": {"op": "in", "lhs": {"op": "key_ref", "key_id": 3002}, "list": ["x"]}}}`
}

// listing returns the content of all files below dir.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	for _, folder := range []string{"plans", "json", "artifacts/plans"} {
		entries, _ := os.ReadDir(dir + "/" + folder) // a folder may be missing
		for _, e := range entries {
			if e.IsDir() {
				continue
			}
			text, err := os.ReadFile(dir + "/" + folder + "/" + e.Name())
			require.NoError(t, err)
			files[folder+"/"+e.Name()] = string(text)
		}
	}
	return files
}

// resident returns the artifact of a plan that reads the rows of another one.
func resident(name, of string) string {
	return fmt.Sprintf(`{"schema_version": 1, "plan_name": %q, "nodes": [{"node_id": "n1", "op": "core::resident", "inputs": [], "params": {"plan": %q, "fields": ["country"]}}], "outputs": ["n1"]}`, name, of)
}
