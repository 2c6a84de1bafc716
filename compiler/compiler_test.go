package compiler_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

func newCompiler(t testing.TB) *compiler.Compiler { return newCompilerOf(t, compiler.Config{}) }

// newCompilerOf returns a compiler, by default with the built-in tasks and keys.
func newCompilerOf(t testing.TB, config compiler.Config) *compiler.Compiler {
	t.Helper()
	if config.Registry == nil {
		config.Registry = testRegistry(t)
	}
	if config.Tasks == nil {
		config.Tasks = builtin.Catalog()
	}
	c, err := compiler.New(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func testRegistry(t testing.TB) *registry.Registry {
	t.Helper()
	reg, err := registry.Default("dev")
	require.NoError(t, err)
	return reg
}

// good is a plan of that name.
func good(name string) string { return bodied(name, "") }

// write writes the files of a folder and returns its path.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "plans")
	for name, text := range files {
		path := filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return folder
}

func compileFolder(t testing.TB, c *compiler.Compiler, folder string) []compiler.Result {
	t.Helper()
	sources, err := compiler.Folder(folder)
	require.NoError(t, err)
	results, err := c.Compile(context.Background(), sources...)
	require.NoError(t, err)
	return results
}

// one compiles one plan, which is called a.plan.ts.
func one(t testing.TB, c *compiler.Compiler, files map[string]string) compiler.Result {
	t.Helper()
	results, err := c.Compile(context.Background(), compiler.SourceFile(filepath.Join(write(t, files), "a.plan.ts")))
	require.NoError(t, err)
	require.Len(t, results, 1)
	return results[0]
}

// requireError requires that a result has one error and returns it.
func requireError(t testing.TB, r compiler.Result, code string) compiler.Diagnostic {
	t.Helper()
	require.Len(t, r.Errors, 1)
	require.Nil(t, r.Artifact)
	d := r.Errors[0]
	require.Equal(t, code, d.Code, d.String())
	require.NotEmpty(t, d.Hint)
	return d
}

// TestExamplePlans compiles the example plans. Those of the original specification are among
// them, unchanged.
func TestExamplePlans(t *testing.T) {
	c := newCompiler(t)
	results := compileFolder(t, c, "../examples/demo/plans")
	require.Len(t, results, 10)
	for _, r := range results {
		assert.Empty(t, r.Errors)
		assert.Empty(t, r.Warnings)
		assert.Equal(t, r.Plan+compiler.Extension, r.File)
		assert.Equal(t, []string{r.Path()}, r.Files)
		graph, err := plan.Load(r.File, r.Artifact, builtin.Catalog(), testRegistry(t))
		require.NoError(t, err)
		assert.Equal(t, r.Plan, graph.Name)
	}
}

// TestSameBytes: the artifact does not depend on the working directory or the process.
func TestSameBytes(t *testing.T) {
	folder := write(t, map[string]string{
		"a.plan.ts": `import { boost } from "./lib/boost";
import { limits } from "./lib/limits.json";
import { definePlan, type CandidateSet } from "@ranking-dsl/runtime";
export default definePlan({ name: "a", build: (ctx: any): CandidateSet =>
  ctx.fixedSource({ rowCount: limits.rows }).vm({ outKey: Key.score, expr: boost(Key.id, 3) }) });
`,
		"lib/boost.ts":    "import { half } from './half';\nexport const boost = (x: any, n: number) => half(x) * n;\n",
		"lib/half.ts":     "export function half(x: any) { return x * 0.5; }\n",
		"lib/limits.json": `{"limits": {"rows": 7}}`,
	})
	first := compileFolder(t, newCompiler(t), folder)[0]
	require.Empty(t, first.Errors)
	assert.Contains(t, string(first.Artifact), `"source_span": "plans/a.plan.ts:5:46"`)
	assert.Contains(t, string(first.Artifact), `"row_count": 7`)
	var files []string
	for _, file := range first.Files {
		name, err := filepath.Rel(folder, file)
		require.NoError(t, err)
		files = append(files, name)
	}
	assert.Equal(t, []string{"a.plan.ts", "lib/boost.ts", "lib/half.ts", "lib/limits.json"}, files)

	t.Chdir(folder)
	c := newCompiler(t)
	for range 3 {
		again := compileFolder(t, c, ".")[0]
		assert.Equal(t, string(first.Artifact), string(again.Artifact))
	}
	require.NoError(t, os.WriteFile("lib/half.ts", []byte("export function half(x: any) { return x * 0.25; }\n"), 0o600))
	changed := compileFolder(t, c, ".")[0]
	assert.NotEqual(t, first.Digest, changed.Digest)
	assert.Contains(t, string(changed.Artifact), changed.Digest)
}

// TestArtifact compares a whole artifact. Keys are sorted, and hints and limits are in their
// places. A node that no output needs is gone.
func TestArtifact(t *testing.T) {
	r := one(t, newCompiler(t), map[string]string{"a.plan.ts": `import { definePlan } from "@ranking-dsl/runtime";

const weighted = Key.id * coalesce(P.weight, 0.5);

export default definePlan({
  name: "whole",
  build: (ctx) => {
    const v = ctx.viewer({ endpoint: EP.redis.redis_default, trace: null });
    const left = v.follow({ endpoint: EP.redis.redis_default }).vm({ outKey: Key.score, expr: weighted });
    const right = v.recommendation({ endpoint: EP.redis.redis_default, fanout: 5 })
      .vm({ outKey: Key.final_score, expr: weighted });
    v.media({ endpoint: EP.redis.redis_default }).take({ count: 3 });
    return [
      left.concat({ rhs: right, trace: "both" }).sort({ by: Key.score, scheduling: { inline: true, costEstimateUs: 7 } }),
      left.busyCpu({ busyWaitMs: 1, timeoutMs: 50 }),
    ];
  },
});
`})
	require.Empty(t, r.Errors)
	golden := "testdata/whole.plan.json"
	got := strings.Replace(string(r.Artifact), r.Digest, "(digest)", 1)
	if compiler.Update() {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
	require.Len(t, r.Warnings, 1)
	w := r.Warnings[0]
	assert.Equal(t, compiler.Warning, w.Severity)
	assert.Equal(t, "no output uses this take, so it is left out", w.Message)
	assert.Equal(t, 12, w.Line)
	assert.Equal(t, 51, w.Column)
}

// The artifact has all that a plan says about nodes that fail, including the capability.
func TestOnErrorIsEmitted(t *testing.T) {
	r := compileFolder(t, newCompiler(t), write(t, map[string]string{"lenient.plan.ts": bodied("lenient", `
    const redis = EP.redis.redis_default;
    const v = ctx.viewer({ endpoint: redis });
    const backup = ctx.fixedSource({ rowCount: 3 }).take({ count: 2 });
    const follow = v.follow({ endpoint: redis, onError: backup, trace: "follow" });
    const recs = v.recommendation({ endpoint: redis, onError: "partial", optional: true });
    return follow.concat({ rhs: recs }).take({ count: 5, onError: "skip", optional: false }).take({ count: 4, onError: "fail" });`)}))[0]
	require.Empty(t, r.Errors)
	require.Empty(t, r.Warnings, "the fallback is needed")
	g, err := plan.Load("lenient", r.Artifact, builtin.Catalog(), testRegistry(t))
	require.NoError(t, err)
	said := map[string]string{}
	for _, n := range g.Nodes {
		text := n.OnError.String()
		if n.Fallback != nil {
			text += " " + n.Fallback.Op
		}
		if n.Optional {
			text += ", optional"
		}
		said[n.Op] = text
	}
	assert.Equal(t, map[string]string{"core::viewer": "fail", "test::fixed_source": "fail", "core::follow": "fallback core::take",
		"core::recommendation": "partial, optional", "core::concat": "fail", "core::take": said["core::take"]}, said)
	assert.Contains(t, string(r.Artifact), `"capabilities_required": [
    "cap.rankd.on_error.v1"
  ]`)
	strict := compileFolder(t, newCompiler(t), write(t, map[string]string{"strict.plan.ts": good("strict")}))[0]
	assert.Contains(t, string(strict.Artifact), `"capabilities_required": []`)
	assert.NotContains(t, string(strict.Artifact), "on_error")
}

// TestAPolicyIsEmitted: the artifact has the policy of the plan and the shares of nodes, and the loader takes them.
func TestAPolicyIsEmitted(t *testing.T) {
	r := compileFolder(t, newCompiler(t), write(t, map[string]string{"p.plan.ts": `import { definePlan } from "@ranking-dsl/runtime";
export default definePlan({ name: "p", lenient: { onError: "auto", timeout: "40%", timeoutMs: 20, answerBy: "80%" },
  build: (ctx) => ctx.viewer({ endpoint: EP.redis.redis_default }).follow({ endpoint: EP.redis.redis_default, fanout: 3, timeout: "30%" }) });`}))[0]
	require.Empty(t, r.Errors)
	g, err := plan.Load("p", r.Artifact, builtin.Catalog(), testRegistry(t))
	require.NoError(t, err)
	v, f := g.Nodes[0], g.Nodes[1]
	assert.Equal(t, []any{plan.OnErrorPartial, plan.Percent(40), plan.Percent(80), 20 * time.Millisecond}, []any{v.OnError, v.Share, v.AnswerBy, v.Timeout})
	assert.Equal(t, []any{plan.OnErrorPartial, plan.Percent(30), plan.Percent(80), time.Duration(0)}, []any{f.OnError, f.Share, f.AnswerBy, f.Timeout})
	for options, want := range map[string]string{
		`lenient: true`: "lenient must be an object, not true", `lenient: { onErr: "auto" }`: `lenient has no member "onErr"`, `lenient: { answerBy: [] }`: "lenient.answerBy must be a string or a number",
		`lenient: { answerBy: "110%" }`: `lenient.answerBy: must be a share from "1%" to "99%", not "110%"`, `lenient: { onError: "empty" }`: `lenient.onError: must be "auto"`,
		`lenient: {}`: "lenient: says nothing", `lenient: { answerBy: undefined }`: "lenient: says nothing",
	} {
		r := compileFolder(t, newCompiler(t), write(t, map[string]string{"p.plan.ts": `import { definePlan } from "@ranking-dsl/runtime";
export default definePlan({ name: "p",
  ` + options + `, build: (ctx) => ctx.fixedSource({ rowCount: 1 }) });`}))[0]
		require.Len(t, r.Errors, 1, options)
		assert.Contains(t, r.Errors[0].Message, want)
		assert.Equal(t, 3, r.Errors[0].Line)
	}
}

// TestMinRowsAreEmitted: the artifact has a number for each output.
func TestMinRowsAreEmitted(t *testing.T) {
	compile := func(options, returned string) compiler.Result {
		return compileFolder(t, newCompiler(t), write(t, map[string]string{"p.plan.ts": `import { definePlan } from "@ranking-dsl/runtime";
export default definePlan({ name: "p",
  ` + options + `, build: (ctx) => { const a = ctx.fixedSource({ rowCount: 1 }); return ` + returned + `; } });`}))[0]
	}
	for options, c := range map[string]struct {
		returned string
		want     []int
	}{
		`minRows: 5`: {"a", []int{5}}, `minRows: 5, below: "error"`: {"[a, a]", []int{5, 5}}, `minRows: { deals: 2 }`: {"{ home: a, deals: a }", []int{0, 2}}, `minRows: 3 `: {"{ home: a, deals: a }", []int{3, 3}},
	} {
		r := compile(options, c.returned)
		require.Empty(t, r.Errors, options)
		g, err := plan.Load("p", r.Artifact, builtin.Catalog(), testRegistry(t))
		require.NoError(t, err)
		assert.Equal(t, c.want, g.MinRows)
		assert.Equal(t, strings.Contains(options, "error"), g.Below == plan.BelowError)
	}
	for options, want := range map[string]string{
		`minRows: "5"`: "minRows must be a number or an object", `minRows: { home: 5 }`: `minRows names "home", and build returns no output of that name`, `minRows: -1`: "minRows: must be an integer from 0 to 1000000, not -1",
		`minRows: 1, below: "no plan"`: `below: must be "mark", "error", or the name of a plan, not "no plan"`,
		`minRows: 1, below: "light"`:   `below: names the plan "light", and so needs answer_by in lenient (answerBy in TypeScript)`, `below: "mark"`: "below: needs min_rows", `minRows: 1, below: 3`: "below must be a string, not 3",
	} {
		r := compile(options, "a")
		require.Len(t, r.Errors, 1, options)
		assert.Contains(t, r.Errors[0].Message, want)
		assert.Equal(t, 3, r.Errors[0].Line, options)
	}
}

// An onError that a node may not have is refused at its place in the plan.
func TestOnErrorIsRefusedAtItsPlace(t *testing.T) {
	for name, c := range map[string]struct {
		body, want string
		column     int
	}{
		"skip":     {`return ctx.fixedSource({ onError: "skip" });`, "the node has no input to pass on", 39},
		"partial":  {`return ctx.fixedSource({}).sort({ by: Key.id, onError: "partial" });`, "core::sort asks for no keys", 60},
		"optional": {`return ctx.fixedSource({}).take({ count: 1, optional: true });`, "the plan would never wait for it", 59},
		"read":     {`const f = ctx.fixedSource({}); return ctx.fixedSource({ onError: f }).concat({ rhs: f });`, "so it cannot be a fallback", 70},
		"columns": {`return ctx.viewer({ endpoint: EP.redis.redis_default, onError: ctx.fixedSource({}) }).sort({ by: Key.country });`,
			`reads column "country" (3001), which is missing if node "n1" at plans/bad.plan.ts:5:16 fails`, 102},
	} {
		t.Run(name, func(t *testing.T) {
			r := compileFolder(t, newCompiler(t), write(t, map[string]string{"bad.plan.ts": bodied("bad", c.body)}))[0]
			require.Len(t, r.Errors, 1)
			assert.Equal(t, "refused", r.Errors[0].Code)
			assert.Contains(t, r.Errors[0].Message, c.want)
			assert.Equal(t, [2]int{5, c.column}, [2]int{r.Errors[0].Line, r.Errors[0].Column})
		})
	}
}

// TestManyPlans compiles a folder with three broken plans, one of which ends the child. .ci/run
// does so with a thousand plans.
func TestManyPlans(t *testing.T) {
	t.Parallel()
	const count = 120
	files := make(map[string]string)
	for i := range count {
		name := fmt.Sprintf("p%04d", i)
		files[name+compiler.Extension] = good(name)
	}
	files["p0010.plan.ts"] = bodied("p0010", "return ctx.nothing();")
	files["p0020.plan.ts"] = bodied("p0020", `for (;;) {}`)
	files["p0090.plan.ts"] = "export default definePlan({"
	results := compileFolder(t, newCompilerOf(t, compiler.Config{Timeout: 3 * time.Second}), write(t, files))
	require.Len(t, results, count)
	broken := make(map[string]string)
	for _, r := range results {
		if len(r.Errors) == 0 {
			require.NotEmpty(t, r.Artifact)
			require.Equal(t, r.Plan+compiler.Extension, r.File)
			continue
		}
		broken[r.File] = r.Errors[0].Code
	}
	assert.Equal(t, map[string]string{"p0010.plan.ts": "unknown-method", "p0020.plan.ts": "timeout", "p0090.plan.ts": "syntax"}, broken)
}

// TestTwins: two plans with one name are both refused, each with the place of the other.
func TestTwins(t *testing.T) {
	results := compileFolder(t, newCompiler(t), write(t, map[string]string{
		"a.plan.ts": good("twin"), "b.plan.ts": good("other"), "c.plan.ts": "\n" + good("twin"),
	}))
	assert.Empty(t, results[1].Errors)
	for i, other := range map[int]string{0: "c.plan.ts:4:9", 2: "a.plan.ts:3:9"} {
		d := requireError(t, results[i], "plan-name")
		assert.Contains(t, d.Message, other)
		assert.Equal(t, `  name: "twin",`, d.Excerpt)
		assert.Equal(t, 9, d.Column)
	}
}

// TestText compiles a text in place of the file, with imports from the folder.
func TestText(t *testing.T) {
	folder := write(t, map[string]string{"a.plan.ts": "broken(", "rows.ts": "export const rows = 3;\n"})
	text := `import { rows } from "./rows";
import { definePlan } from "@ranking-dsl/runtime";
export default definePlan({ name: "a", build: (ctx) => ctx.fixed_source({ rowCount: rows }) });
`
	c := newCompiler(t)
	results, err := c.Compile(context.Background(),
		compiler.Source{Folder: folder, File: "a.plan.ts", Text: []byte(text)},
		compiler.Source{Folder: filepath.Join(folder, "nowhere"), File: "b.plan.ts", Text: []byte(good("b"))})
	require.NoError(t, err)
	assert.Empty(t, results[0].Errors)
	assert.Contains(t, string(results[0].Artifact), `"row_count": 3`)
	assert.Empty(t, results[1].Errors, "a text without imports needs no folder")
}

// TestImports: imports cannot leave the folder, by whatever path.
func TestImports(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret.ts")
	require.NoError(t, os.WriteFile(outside, []byte("export const x = 1;\n"), 0o600))
	c := newCompiler(t)
	imports := func(path string) string {
		return fmt.Sprintf("import { x } from %q;\n", path) + bodied("a", "ctx.fixed_source({ rowCount: x });")
	}
	for name, test := range map[string]struct{ path, code string }{
		"above":           {"../secret", "import-outside"},
		"above by folder": {"./lib/../../secret", "import-outside"},
		"absolute":        {outside, "import"},
		"url":             {"https://example.com/x.ts", "import"},
		"data":            {"data:text/javascript,export const x = 1", "import"},
		"node":            {"node:fs", "import"},
		"a link":          {"./link", "unreadable"},
		"a folder":        {"./lib", "unreadable"},
		"missing":         {"./missing", "unreadable"},
		"too large":       {"./large", "too-large"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := write(t, map[string]string{
				"a.plan.ts": imports(test.path), "lib/y.ts": "", "large.ts": strings.Repeat("//\n", 100_000),
			})
			require.NoError(t, os.Symlink(outside, filepath.Join(folder, "link.ts")))
			results, err := c.Compile(context.Background(), compiler.SourceFile(filepath.Join(folder, "a.plan.ts")))
			require.NoError(t, err)
			d := requireError(t, results[0], test.code)
			assert.Equal(t, 1, d.Line)
			assert.Equal(t, 19, d.Column)
		})
	}
}

// TestLargeSources refuses what the parsers should not see, and survives the rest.
func TestLargeSources(t *testing.T) {
	c := newCompiler(t)
	nested := func(depth int, opening, closing string) string {
		return bodied("a", "const x = "+strings.Repeat(opening, depth)+"1"+strings.Repeat(closing, depth)+";")
	}
	for name, test := range map[string]struct {
		text, code string
		line       int
	}{
		"10 MB":                 {"//" + strings.Repeat(" ", 10<<20), "too-large", 1},
		"a million parentheses": {nested(1_000_000, "(", ")"), "too-large", 1},
		"501 levels":            {nested(501, "(", ")"), "too-deep", 5},
		"501 brackets":          {nested(501, "[", "]"), "too-deep", 5},
		"hidden in comments":    {bodied("a", "const x = "+strings.Repeat("(/*)*/", 600)+"1"+strings.Repeat(")", 600)), "too-deep", 5},
		"not UTF-8":             {bodied("a", "const x = '\xff';"), "encoding", 5},
	} {
		t.Run(name, func(t *testing.T) {
			d := requireError(t, one(t, c, map[string]string{"a.plan.ts": test.text}), test.code)
			assert.Equal(t, test.line, d.Line)
			assert.Less(t, len(d.String()), 2000)
		})
	}
	for name, text := range map[string]string{
		"490 levels":         nested(480, "(", ")"),
		"brackets in a text": bodied("a", `const x = "`+strings.Repeat("(", 10_000)+`";`),
		"a long sum":         bodied("a", "const x = 1"+strings.Repeat("+1", 5_000)+";"),
		"many prefixes":      bodied("a", "const x = "+strings.Repeat("!", 5_000)+"1;"),
		"a byte order mark":  "\ufeff" + good("a"),
		"Windows line ends":  strings.ReplaceAll(good("a"), "\n", "\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			assert.Empty(t, one(t, c, map[string]string{"a.plan.ts": text}).Errors)
		})
	}
}

// TestHugeExpressions: expressions that grow in a loop are refused, with the line.
func TestHugeExpressions(t *testing.T) {
	c := newCompiler(t)
	for name, body := range map[string]string{
		"deep": "let x: any = Key.id; for (let i = 0; i < 2000; i++) x = x + i;",
		"wide": "let x: any = Key.id; for (let i = 0; i < 60; i++) x = x + x;",
	} {
		d := requireError(t, one(t, c, map[string]string{"a.plan.ts": bodied("a", body)}), "too-large")
		assert.Equal(t, 5, d.Line, name)
	}
	d := requireError(t, one(t, c, map[string]string{"a.plan.ts": bodied("a", "let v = ctx.fixed_source(); for (;;) v = v.take({ count: 1 });")}), "too-large")
	assert.Contains(t, d.Message, "more than 10000 nodes")
}

// TestNamedOutputs: an object names the outputs, in its order. The artifact has each node that
// they need once.
func TestNamedOutputs(t *testing.T) {
	r := one(t, newCompiler(t), map[string]string{"a.plan.ts": bodied("a", "const v = ctx.fixed_source(), few = v.take({ count: 1 }); return { home: few, deals: v, again: few };")})
	require.Empty(t, r.Errors)
	var artifact struct {
		Outputs      []string `json:"outputs"`
		Names        []string `json:"output_names"`
		Capabilities []string `json:"capabilities_required"`
	}
	require.NoError(t, json.Unmarshal(r.Artifact, &artifact))
	assert.Equal(t, []string{"n1", "n0", "n1"}, artifact.Outputs)
	assert.Equal(t, []string{"home", "deals", "again"}, artifact.Names)
	assert.Equal(t, []string{plan.OutputNamesCapability}, artifact.Capabilities)
	for _, body := range []string{"return ctx.fixed_source();", "return [ctx.fixed_source(), ctx.fixed_source()];"} {
		r := one(t, newCompiler(t), map[string]string{"a.plan.ts": bodied("a", body)})
		require.Empty(t, r.Errors)
		assert.NotContains(t, string(r.Artifact), "output_names")
	}
	requireError(t, one(t, newCompiler(t), map[string]string{"a.plan.ts": bodied("a", "return {};")}), "outputs")
}

// TestIntegersThatRequestsGive: an object in place of an integer names the parameter that holds
// it, and its bounds.
func TestIntegersThatRequestsGive(t *testing.T) {
	reg, err := registry.Load(os.DirFS("testdata/tables"), "dev")
	require.NoError(t, err)
	c := newCompilerOf(t, compiler.Config{Registry: reg})
	for take, want := range map[string]string{
		`{ count: { param: P.hour, max: 50, default: 20 }, offset: { param: P.hour, max: 9 } }`: "",
		`{ count: { param: P.hour, max: 0 } }`:                                                  "count.max must be at least 1, not 0",
		`{ count: { param: P.hour } }`:                                                          "count.max is missing, must be an integer of 64 bits",
		`{ count: { param: P.hour, max: 5, default: 7 } }`:                                      "count.default must be 1 to 5, not 7",
		`{ count: { param: P.hour, maximum: 5 } }`:                                              `count has no option "maximum"`,
		`{ count: { param: P.premium, max: 5 } }`:                                               "count.param must be a parameter of type int, not P.premium",
		`{ count: { param: Key.id, max: 5 } }`:                                                  "count.param must be a parameter of type int, not Key.id",
		`{ count: P.hour }`:                                                                     "count must be an integer of 64 bits, not P.hour",
		`{ count: { get param() { throw new Error("x") } } }`:                                   "x",
	} {
		r := one(t, c, map[string]string{"a.plan.ts": bodied("a", "return ctx.fixed_source().take("+take+");")})
		if want != "" {
			if assert.NotEmpty(t, r.Errors, take) {
				assert.Contains(t, r.Errors[0].Message, want, take)
			}
			continue
		}
		require.Empty(t, r.Errors)
		assert.JSONEq(t, `{"count": {"param_id": 102, "max": 50, "default": 20}, "offset": {"param_id": 102, "max": 9}}`, jsonParams(t, r.Artifact, 1))
	}
}

// jsonParams returns the parameters of a node of an artifact.
func jsonParams(t *testing.T, artifact []byte, node int) string {
	var a struct {
		Nodes []struct {
			Params json.RawMessage `json:"params"`
		} `json:"nodes"`
	}
	require.NoError(t, json.Unmarshal(artifact, &a))
	return string(a.Nodes[node].Params)
}

// TestHostileValues: code of the plan runs while the compiler reads what the plan made. Only
// endless code has little time, since a busy machine may take long for the rest.
func TestHostileValues(t *testing.T) {
	c, hurried := newCompiler(t), newCompilerOf(t, compiler.Config{Timeout: 500 * time.Millisecond})
	for body, code := range map[string]string{
		`return new Proxy([], { get() { throw new Error("no") } });`:                                   "outputs",
		`return [{ get x() { throw new Error("no") } }];`:                                              "outputs",
		`const a: any[] = [1]; Object.defineProperty(a, 0, { get() { for (;;) {} } }); return a;`:      "timeout",
		`const a: any = []; a.length = 4e9; return a;`:                                                 "too-large",
		`const a: any = []; a.length = 4e9; return ctx.fixed_source().filter({ pred: Key.id.in(a) });`: "too-large",
		`throw { get message() { throw new Error("again") } };`:                                        "exception",
		`return { get home() { throw new Error("no") } };`:                                             "exception",
		`return { get home() { for (;;) {} } };`:                                                       "timeout",
		`return new Proxy({}, { ownKeys() { throw new Error("no") } });`:                               "exception",
		`throw null;`:   "exception",
		`throw Key.id;`: "exception",
		`return ctx.fixed_source({ get rowCount() { throw new Error("no") } });`:                                "exception",
		`return ctx.fixed_source({ get rowCount() { for (;;) {} } });`:                                          "timeout",
		`return ctx.fixed_source(new Proxy({}, { ownKeys() { throw new Error("no") } }));`:                      "exception",
		`return ctx.fixed_source({ trace: { toString() { throw new Error("no") } } });`:                         "type",
		`return ctx.fixed_source(ctx);`:                                                                         "type",
		`return ctx.fixed_source(Object.create(Key.id));`:                                                       "look",
		`return ctx.fixed_source().filter({ pred: Object.create(Key.id > 1) });`:                                "look",
		`const p: any = { valueOf() { throw new Error("no") } }; return ctx.fixed_source({ rowCount: p * 2 });`: "exception",
	} {
		with := c
		if code == "timeout" {
			with = hurried
		}
		r := one(t, with, map[string]string{"a.plan.ts": bodied("a", body)})
		if code == "" {
			assert.Empty(t, r.Errors, body)
			continue
		}
		if assert.NotEmpty(t, r.Errors, body) {
			assert.Equal(t, code, r.Errors[0].Code, "%s\n%s", body, r.Errors[0].String())
		}
	}
}

// TestManyErrors bounds what one plan reports.
func TestManyErrors(t *testing.T) {
	lines := strings.Repeat("ctx.nothing();\n", 100)
	r := one(t, newCompiler(t), map[string]string{"a.plan.ts": bodied("a", lines)})
	assert.Len(t, r.Errors, 20)
	r = one(t, newCompiler(t), map[string]string{"a.plan.ts": bodied("a", "for (let i = 0; ; i++) ctx.nothing(i);")})
	assert.NotEmpty(t, r.Errors)
}

// TestOwnTask: the language has a task that this project has never seen, without further code.
func TestOwnTask(t *testing.T) {
	specs := builtin.Specs()
	most := int64(9)
	specs = append(specs, task.Spec{
		Op: "shop::newest_first", Doc: "Sorts by age.", Inputs: 1, Output: task.Permutation,
		Params: []plan.ParamSchema{
			{Name: "max_age_days", Type: plan.Int, Required: true, Source: plan.SourceRule{Max: &most}},
			{Name: "unit", Type: plan.String, StrValue: "day", Source: plan.SourceRule{OneOf: []string{"day", "week"}}},
			{Name: "boost_expr_id", Type: plan.ExprID},
			{Name: "fallback", Type: plan.NodeRef},
		},
		Run: func(c *task.Ctx) (rowset.RowSet, error) { return c.Inputs[0], nil },
	})
	catalog, err := task.NewCatalog(specs...)
	require.NoError(t, err)
	c := newCompilerOf(t, compiler.Config{Tasks: catalog})
	for _, name := range []string{"newestFirst", "newest_first"} {
		r := one(t, c, map[string]string{"a.plan.ts": bodied("a",
			`const s = ctx.fixed_source(); return s.`+name+`({ maxAgeDays: 7, unit: "week", boostExpr: Key.id * 2, fallback: s });`)})
		require.Empty(t, r.Errors)
		var a struct {
			Nodes []struct {
				Op     string         `json:"op"`
				Params map[string]any `json:"params"`
			} `json:"nodes"`
		}
		require.NoError(t, json.Unmarshal(r.Artifact, &a))
		assert.Equal(t, "shop::newest_first", a.Nodes[1].Op)
		assert.Equal(t, map[string]any{"max_age_days": 7., "unit": "week", "boost_expr_id": "e0", "fallback": "n0"}, a.Nodes[1].Params)
	}
	for options, code := range map[string]string{
		`{ maxAgeDays: 10 }`: "range", `{ maxAgeDays: 1, unit: "year" }`: "enum", `{}`: "missing-option", `{ maxAgeDays: 1, age: 2 }`: "unknown-option",
	} {
		r := one(t, c, map[string]string{"a.plan.ts": bodied("a", `return ctx.fixed_source().newestFirst(`+options+`);`)})
		requireError(t, r, code)
	}
}

// TestIDsThatAreStrings: if some entity has strings as ids, a plan may compare Key.id with
// strings.
func TestIDsThatAreStrings(t *testing.T) {
	tables := registrytest.BuiltIn().FS()
	tables["entities.toml"] = &fstest.MapFile{Data: []byte("[[entity]]\nname = \"product\"\nid = \"string\"\n[[entity]]\nname = \"shelf\"\n")}
	reg, err := registry.Load(tables, "test")
	require.NoError(t, err)
	texts, integers := newCompilerOf(t, compiler.Config{Registry: reg}), newCompiler(t)
	const id = `"lhs":{"key_id":1,"op":"key_ref"}`
	for written, want := range map[string]string{
		`Key.id == "sku-1"`:           `{` + id + `,"list":["sku-1"],"op":"in"}`,
		`"sku-1" != Key.id`:           `{"op":"not","x":{` + id + `,"list":["sku-1"],"op":"in"}}`,
		`Key.id.in(["a", "b"])`:       `{` + id + `,"list":["a","b"],"op":"in"}`,
		`["a", "b"].includes(Key.id)`: `{` + id + `,"list":["a","b"],"op":"in"}`,
		`Key.id == Key.country`:       `{"a":{"key_id":3001,"op":"key_ref"},"b":{"key_id":1,"op":"key_ref"},"cmp":"==","op":"cmp"}`,
	} {
		source := map[string]string{"a.plan.ts": bodied("a", `return ctx.candidates({ endpoint: EP.redis.redis_default, key: "new", entity: "product" }).lookup({ endpoint: EP.redis.redis_default, key: "p:{id}", fields: [Key.country] }).filter({ pred: `+written+` });`)}
		r := one(t, texts, source)
		require.Empty(t, r.Errors, written)
		var a struct {
			Preds        map[string]json.RawMessage `json:"pred_table"`
			Capabilities []string                   `json:"capabilities_required"`
		}
		require.NoError(t, json.Unmarshal(r.Artifact, &a))
		assert.JSONEq(t, want, regexp.MustCompile(`,\s*"source_span":\s*"[^"]*"`).ReplaceAllString(string(a.Preds["p0"]), ""), written)
		assert.Contains(t, a.Capabilities, "cap.rankd.expressions.v1")
		source["a.plan.ts"] = strings.Replace(source["a.plan.ts"], `, entity: "product"`, "", 1)
		require.NotEmpty(t, one(t, texts, source).Errors, "rows whose ids are integers: "+written)
		require.NotEmpty(t, one(t, integers, source).Errors, "a registry without such entities: "+written)
	}
	for _, written := range []string{`Key.id > "a"`, `Key.id.in(["a", 1])`, `Key.id.in([1, "a"])`, `Key.id + "a" == 1`, `Key.id == true`, `Key.id > 5`} {
		r := one(t, texts, map[string]string{"a.plan.ts": bodied("a", `return ctx.candidates({ endpoint: EP.redis.redis_default, key: "new", entity: "product" }).filter({ pred: `+written+` });`)})
		require.NotEmpty(t, r.Errors, written)
	}
}

// mixing is a task of several inputs with parameters of the newer types.
func mixing() task.Spec {
	least, most := 0.0, 1.0
	low, high := int64(1), int64(9)
	return task.Spec{
		Op: "shop::mix", Doc: "Mixes.", Inputs: 1, InputsMax: 3, Output: task.Merge,
		Params: []plan.ParamSchema{
			{Name: "share", Type: plan.Float, Source: plan.SourceRule{FloatMin: &least, FloatMax: &most}},
			{Name: "pattern", Type: plan.Int, List: true, MaxItems: 3, Source: plan.SourceRule{Min: &low, Max: &high}},
			{Name: "to", Type: plan.Key, Source: plan.SourceRule{KeyTypes: []registry.Type{registry.Float}, Writes: true}},
			{Name: "columns", Type: plan.Key, List: true},
			{Name: "how", Type: plan.Enum, Source: plan.SourceRule{OneOf: []string{"fair", "first"}}},
			{Name: "seen", Type: plan.Template},
			{Name: "service", Type: plan.Endpoint, EndpointKind: registry.HTTP},
			{Name: "refs", Type: plan.NodeRef, List: true},
			{Name: "rules", Type: plan.Object, List: true, Fields: []plan.ParamSchema{
				{Name: "pred_id", Type: plan.PredID, Required: true},
				{Name: "expr_id", Type: plan.ExprID, Source: plan.SourceRule{Alias: "then"}},
				{Name: "tops", Type: plan.Float, List: true},
			}},
		},
		Reads: task.Union(task.ExprKeys, task.KeyParams("columns")), Writes: task.KeyParams("to"),
		Run: func(c *task.Ctx) (rowset.RowSet, error) { return c.Inputs[0], nil },
	}
}

// TestNewerParameters: the spec alone brings lists, objects and several inputs into the
// language.
func TestNewerParameters(t *testing.T) {
	catalog, err := task.NewCatalog(append(builtin.Specs(), mixing())...)
	require.NoError(t, err)
	c := newCompilerOf(t, compiler.Config{Tasks: catalog})
	r := one(t, c, map[string]string{"a.plan.ts": bodied("a", `
    const a = ctx.viewer({ endpoint: EP.redis.redis_default }), b = ctx.fixed_source(), d = ctx.fixed_source({ rowCount: 2 });
    return a.mix({ with: [b, d], share: 0.25, pattern: [1, 9], to: Key.score, columns: [Key.id, Key.country], how: "first",
      seen: "seen:{user}", service: EP.http.http_api, refs: [b, b],
      rules: [{ pred: Key.id > 1, tops: [1, 0.5] }, { pred: Key.country == "US", then: Key.id * 2 }] });`)})
	require.Empty(t, r.Errors)
	var artifact struct {
		Nodes []map[string]any          `json:"nodes"`
		Exprs map[string]map[string]any `json:"expr_table"`
		Preds map[string]map[string]any `json:"pred_table"`
	}
	require.NoError(t, json.Unmarshal(r.Artifact, &artifact))
	n := artifact.Nodes[3]
	assert.Equal(t, []any{"n0", "n1", "n2"}, n["inputs"])
	assert.Nil(t, n["expr_span"], "the node has several expressions")
	params := n["params"].(map[string]any)
	rules := params["rules"].([]any)
	assert.Equal(t, map[string]any{"pred_id": "p0", "tops": []any{1.0, 0.5}}, rules[0])
	assert.Equal(t, map[string]any{"pred_id": "p1", "expr_id": "e0"}, rules[1])
	assert.Equal(t, "mul", artifact.Exprs["e0"]["op"])
	assert.Contains(t, artifact.Preds["p1"]["source_span"], ":9:61")
	delete(params, "rules")
	assert.Equal(t, map[string]any{"share": 0.25, "pattern": []any{1., 9.}, "to": 2002., "columns": []any{1., 3001.}, "how": "first",
		"seen": "seen:{user}", "service": "ep_0002", "refs": []any{"n1", "n1"}}, params)

	for options, want := range map[string]struct{ code, text string }{
		`{ share: 2 }`:                                  {"range", "share must be 0 to 1, not 2"},
		`{ share: "a" }`:                                {"type", "share must be a finite number"},
		`{ share: 0 / 0 }`:                              {"type", "share must be a finite number"},
		`{ pattern: 1 }`:                                {"type", "pattern must be an array"},
		`{ pattern: [1, 10] }`:                          {"range", "pattern[1] must be 1 to 9"},
		`{ pattern: [1, 1, 1, 1] }`:                     {"range", "pattern must have 0 to 3 items, not 4"},
		`{ to: Key.country }`:                           {"key", "to must be a key of type float"},
		`{ columns: [Key.id, "x"] }`:                    {"type", "columns[1] must be a key"},
		`{ pattern: [1e300] }`:                          {"type", "pattern[0] must be an integer of 64 bits, not 1e+300"},
		`{ pattern: [2 ** 60] }`:                        {"type", "pattern[0] must be an integer above -2^53 and below 2^53"},
		`{ how: "last" }`:                               {"enum", `how must be "fair" or "first"`},
		`{ service: EP.redis.redis_default }`:           {"type", "service must be an endpoint of kind http"},
		`{ refs: [1] }`:                                 {"type", "refs[0] must be a candidate set"},
		`{ with: [null] }`:                              {"type", "with[0] must be a candidate set, not null"},
		`{ with: s }`:                                   {"type", "with must be an array of candidate sets, not a candidate set"},
		`{ with: [1] }`:                                 {"type", "with[0] must be a candidate set"},
		`{ with: [s, s, s] }`:                           {"range", "with must list 0 to 2 nodes, not 3"},
		`{ wiht: [s] }`:                                 {"unknown-option", "wiht"},
		`{ rules: [{}] }`:                               {"missing-option", "rules[0].pred is missing, must be a predicate"},
		`{ rules: [{ pred: true, x: 1 }] }`:             {"unknown-option", `rules[0] has no option "x"`},
		`{ rules: [{ pred: true, expr: 1, then: 2 }] }`: {"option", "expr and then are the same option of rules[0]"},
		`{ rules: [{ pred: Key.id }] }`:                 {"type", "rules[0].pred"},
		`{ rules: [true] }`:                             {"type", "rules[0] must be an object"},
		`{ seen: "seen:{usr}" }`:                        {"refused", "seen: {usr} is neither"},
		`{ columns: [Key.title] }`:                      {"refused", `columns[0]: reads column "title" (3002)`},
	} {
		r := one(t, c, map[string]string{"a.plan.ts": bodied("a", `const s = ctx.fixed_source(); return s.mix(`+options+`);`)})
		require.NotEmpty(t, r.Errors, options)
		assert.Equal(t, want.code, r.Errors[0].Code, options)
		assert.Contains(t, r.Errors[0].Message, want.text, options)
		assert.Equal(t, "a.plan.ts", filepath.Base(r.Errors[0].File))
		assert.NotEqual(t, 1, r.Errors[0].Line, options)
	}
}

// TestPollution: if a plan changes built-in objects, it changes only its own run.
func TestPollution(t *testing.T) {
	results := compileFolder(t, newCompiler(t), write(t, map[string]string{
		"a.plan.ts": bodied("a", `
    (Array.prototype as any).push = () => { throw new Error("push") };
    (Object.prototype as any).endpoint = "x"; (Object.prototype as any).valueOf = () => 7;
    (Array.prototype as any)[Symbol.iterator] = null; (globalThis as any).Object = null; Math.max = null as any;
    return ctx.fixed_source({ rowCount: 1 + 1 }).filter({ pred: Key.id > 1 && Key.id.in([1, 2]) });`),
		"b.plan.ts": bodied("b", "return ctx.fixed_source({ rowCount: Math.max(1, 2) });"),
	}))
	for _, r := range results {
		assert.Empty(t, r.Errors)
	}
	assert.Contains(t, string(results[0].Artifact), `"row_count": 2`)
}

// TestLimits checks limits of the API itself.
func TestLimits(t *testing.T) {
	_, err := compiler.New(compiler.Config{})
	require.ErrorContains(t, err, "Tasks and Registry are required")
	_, err = compiler.New(compiler.Config{Tasks: builtin.Catalog(), Registry: testRegistry(t), Timeout: -1})
	require.ErrorContains(t, err, "must not be negative")

	c := newCompiler(t)
	results, err := c.Compile(context.Background())
	require.NoError(t, err)
	assert.Empty(t, results)
	require.NoError(t, c.Close())
	_, err = c.Compile(context.Background(), compiler.SourceFile("../examples/demo/plans/diamond.plan.ts"))
	require.ErrorIs(t, err, compiler.ErrClosed)

	_, err = compiler.Folder("testdata/nowhere")
	require.ErrorIs(t, err, os.ErrNotExist)
	results, err = newCompiler(t).Compile(context.Background(), compiler.SourceFile("testdata/nowhere/a.plan.ts"))
	require.NoError(t, err)
	requireError(t, results[0], "unreadable")

	t.Setenv("RANKD_COMPILER_CHILD", "1")
	_, err = compiler.New(compiler.Config{Tasks: builtin.Catalog(), Registry: testRegistry(t)})
	require.ErrorContains(t, err, "call compiler.Main first in main")
}

// TestCancel: the end of the context ends a compilation. The compiler still works afterwards.
func TestCancel(t *testing.T) {
	c := newCompilerOf(t, compiler.Config{Timeout: time.Minute})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	folder := write(t, map[string]string{"a.plan.ts": bodied("a", "for (;;) {}"), "b.plan.ts": good("b")})
	go func() {
		_, err := c.Compile(ctx, compiler.SourceFile(filepath.Join(folder, "a.plan.ts")))
		done <- err
	}()
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	results, err := c.Compile(context.Background(), compiler.SourceFile(filepath.Join(folder, "b.plan.ts")))
	require.NoError(t, err)
	assert.Empty(t, results[0].Errors)
}

// TestNotAChild: an error names a program that never calls Main. The program is not started
// again and again.
func TestNotAChild(t *testing.T) {
	for name, command := range map[string][]string{
		"ends":    {"/bin/sh", "-c", "echo no such flag >&2; exit 2"},
		"missing": {"/nowhere/rankd"},
	} {
		c := newCompilerOf(t, compiler.Config{Command: command})
		_, err := c.Compile(context.Background(), compiler.SourceFile("../examples/demo/plans/diamond.plan.ts"))
		require.Error(t, err, name)
		if name == "ends" {
			assert.ErrorContains(t, err, "compiler.Main")
			assert.ErrorContains(t, err, "no such flag")
		}
	}
}

// A child gets nothing of the environment, in which a program may have secrets.
func TestAChildHasNoEnvironment(t *testing.T) {
	t.Setenv("COMPILER_TEST_SECRET", "hunter2")
	c := newCompilerOf(t, compiler.Config{Command: []string{"/bin/sh", "-c",
		`echo "child=$RANKD_COMPILER_CHILD secret=$COMPILER_TEST_SECRET home=$HOME" >&2`}})
	_, err := c.Compile(t.Context(), compiler.SourceFile("../examples/demo/plans/diamond.plan.ts"))
	require.Error(t, err)
	assert.ErrorContains(t, err, "child=1 secret= home=")
	assert.NotContains(t, err.Error(), "hunter2")
}

// TestKilledChild: a child that dies without a message costs one plan.
func TestKilledChild(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	// The child cannot raise this limit: the kernel refuses memory before the watchdog notices.
	c := newCompilerOf(t, compiler.Config{
		Command: []string{"/bin/sh", "-c", "ulimit -t 1; exec " + self}, Timeout: time.Minute,
	})
	results := compileFolder(t, c, write(t, map[string]string{"a.plan.ts": bodied("a", "for (;;) {}"), "b.plan.ts": good("b")}))
	d := requireError(t, results[0], "internal")
	assert.Contains(t, d.Message, "ended the compiler's process")
	assert.NotEmpty(t, d.Excerpt)
	assert.Empty(t, results[1].Errors)
}

// TestLibraryDoesNotImportTheCompiler keeps esbuild and goja out of programs that only rank.
func TestLibraryDoesNotImportTheCompiler(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "github.com/rankd/rankd").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "github.com/rankd/rankd/scheduler")
	for _, name := range []string{"rankd/compiler", "evanw/esbuild", "dop251/goja", "go-sourcemap"} {
		assert.NotContains(t, string(out), name)
	}
}

func BenchmarkCompile(b *testing.B) {
	text, err := os.ReadFile("../examples/demo/plans/complex_dag.plan.ts")
	require.NoError(b, err)
	for name, count := range map[string]int{"1 plan": 1, "200 plans": 200} {
		files := make(map[string]string)
		for i := range count {
			name := fmt.Sprintf("p%04d", i)
			files[name+compiler.Extension] = strings.Replace(string(text), "complex_dag", name, 1)
		}
		folder := write(b, files)
		b.Run(name+", cold", func(b *testing.B) {
			for b.Loop() {
				c := newCompiler(b)
				for _, r := range compileFolder(b, c, folder) {
					require.Empty(b, r.Errors)
				}
				require.NoError(b, c.Close())
			}
		})
		b.Run(name+", warm", func(b *testing.B) {
			c := newCompiler(b)
			compileFolder(b, c, folder)
			for b.Loop() {
				compileFolder(b, c, folder)
			}
		})
	}
}
