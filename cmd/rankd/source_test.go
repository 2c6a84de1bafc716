package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// threeRows returns a plan in TypeScript with three rows, which needs no Redis.
func threeRows(name string) string {
	return `import { definePlan } from "@ranking-dsl/runtime";

export default definePlan({
  name: "` + name + `",
  build: (ctx) => ctx.fixedSource({ rowCount: 3 }),
});
`
}

// writeSource writes a plan in TypeScript into the folder plans below dir.
func writeSource(t testing.TB, dir, name, source string) string {
	t.Helper()
	path := filepath.Join(dir, "plans", name+".plan.ts")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(source), 0o644))
	return path
}

func TestPlansInTypeScriptAnswer(t *testing.T) {
	dir := t.TempDir()
	path := writeSource(t, dir, "three", threeRows("three"))
	writePlan(t, filepath.Join(dir, "plans"), "other", fixedPlan("other"))
	const request = `{"user_id": 1}`
	for name, c := range map[string]struct {
		stdin string
		args  []string
	}{
		"run":                       {request, []string{"run", path}},
		"run, with flags before":    {request, []string{"run", "--env", "test", path}},
		"--plan":                    {request, []string{"--plan", path}},
		"--plan_dir, chosen":        {request, []string{"--plan_dir", filepath.Dir(path), "--plan_name", "three"}},
		"--plan_dir, by request":    {`{"user_id": 1, "plan": "three"}`, []string{"--plan_dir", filepath.Dir(path)}},
		"--plan_dir, the artifact":  {`{"user_id": 1, "plan": "other"}`, []string{"--plan_dir", filepath.Dir(path)}},
		"an artifact, given to run": {request, []string{"run", filepath.Join(dir, "plans", "other.plan.json")}},
	} {
		t.Run(name, func(t *testing.T) {
			o := run(t, strings.NewReader(c.stdin), c.args...)
			require.Equal(t, exitOK, o.status, o.stderr)
			assert.Len(t, decode(t, o.lines()[0]).Candidates, 3)
		})
	}
	o := run(t, nil, "--plan_dir", filepath.Dir(path), "--list-plans")
	assert.Equal(t, "PLAN   NODES  OUTPUTS  OPS\nother  1      1        test::fixed_source\nthree  1      1        test::fixed_source\n", o.stdout)
}

// The seeds' plan gives the same answer as source and as artifact.
func TestASourceAnswersAsItsArtifact(t *testing.T) {
	const requests = `{"user_id": 1, "request_id": "a"}` + "\n" + `{"user_id": 7, "request_id": "b", "param_overrides": {"weight": 0.25}}`
	for _, name := range []string{"complex_dag", "mixed_pipeline", "parallel_fanout"} {
		source := run(t, strings.NewReader(requests), "run", "../../plans/"+name+".plan.ts")
		drawn := run(t, strings.NewReader(requests), "run", "../../artifacts/testdata/drawn/"+name+".plan.json")
		require.Equal(t, exitOK, source.status, source.stderr)
		require.Equal(t, exitOK, drawn.status, drawn.stderr)
		for i := range 2 {
			a, b := decode(t, source.lines()[i]), decode(t, drawn.lines()[i])
			a.EngineRequestID, b.EngineRequestID = "", ""
			assert.Equal(t, b, a)
		}
	}
}

func TestABrokenSourceShowsItsLine(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	broken := strings.Replace(threeRows("broken"), "rowCount", "rowsCount", 1)
	writeSource(t, dir, "broken", broken)
	writeSource(t, dir, "three", threeRows("three"))
	const place = "plans/broken.plan.ts:5:37: error: "
	for name, args := range map[string][]string{
		"run":              {"run", "plans/broken.plan.ts"},
		"--plan":           {"--plan", "plans/broken.plan.ts"},
		"--plan_name":      {"--plan_dir", "plans", "--plan_name", "broken"},
		"--plan_dir alone": {"--plan_dir", "plans"},
		"--list-plans":     {"--plan_dir", "plans", "--list-plans"},
		"--bench":          {"--plan", "plans/broken.plan.ts", "--bench", "1"},
		"bench compare":    {"bench", "compare", "--plan", "plans/broken.plan.ts"},
	} {
		t.Run(name, func(t *testing.T) {
			o := run(t, strings.NewReader(`{"user_id": 1}`), args...)
			assert.Equal(t, exitUsage, o.status)
			assert.True(t, strings.HasPrefix(o.stderr, place), "editors find the place at the start of a line: %s", o.stderr)
			assert.Contains(t, o.stderr, "\n    5 |   build: (ctx) => ctx.fixedSource({ rowsCount: 3 }),\n      |                                     ^\n")
			assert.Contains(t, o.stderr, "\n  hint: ")
			if name != "--list-plans" {
				assert.Empty(t, o.stdout)
			}
		})
	}
	// A request that names the plan gets one line.
	o := run(t, strings.NewReader(`{"user_id": 1, "plan": "broken"}`), "--plan_dir", "plans", "--plan_name", "three")
	assert.Equal(t, exitFailed, o.status)
	a := decode(t, o.lines()[0])
	assert.Equal(t, "Invalid plan", a.Error)
	assert.True(t, strings.HasPrefix(a.Detail, "plans/broken.plan.ts:5:37: "), a.Detail)

	writePlan(t, "plans", "three", fixedPlan("three"))
	o = run(t, strings.NewReader(`{"user_id": 1}`), "--plan_dir", "plans", "--plan_name", "three")
	assert.Equal(t, exitUsage, o.status)
	assert.Equal(t, "rankd: plan three: folder plans holds three.plan.json and three.plan.ts; remove one of them\n", o.stderr)
}

// A failure at run time names the line of the plan.
func TestAFailureNamesTheLineOfThePlan(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	path := writeSource(t, dir, "fails", `import { definePlan } from "@ranking-dsl/runtime";

export default definePlan({
  name: "fails",
  build: (ctx) =>
    ctx
      .fixedSource({ rowCount: 2 })
      .vm({
        outKey: Key.score,
        expr: Key.id * P.weight,
      })
      .sort({ key: Key.country }),
});
`)
	for params, want := range map[string]string{
		`{}`:              `"node":"n1","op":"core::vm","source_span":"plans/fails.plan.ts:10:15"`,
		`{"weight": 0.5}`: `"node":"n2","op":"core::sort","source_span":"plans/fails.plan.ts:12:8"`,
	} {
		o := run(t, strings.NewReader(`{"user_id": 1, "param_overrides": `+params+`}`), "run", path)
		assert.Equal(t, exitFailed, o.status)
		assert.Contains(t, o.stdout, want)
	}
	o := run(t, nil, "--plan", path, "--print-plan-info")
	require.Equal(t, exitOK, o.status, o.stderr)
	assert.Contains(t, o.stdout, `"source_span": "plans/fails.plan.ts:8:8",`+"\n      "+`"expr_span": "plans/fails.plan.ts:10:15"`)
}

// A trace says which line of the plan made each node.
func TestATraceNamesTheLinesOfThePlan(t *testing.T) {
	dir := t.TempDir()
	path := writeSource(t, dir, "three", threeRows("three"))
	kept := filepath.Join(dir, "trace.json")
	o := run(t, nil, "trace", "--plan", path, "--json", kept)
	require.Equal(t, exitOK, o.status, o.stderr)
	text, err := os.ReadFile(kept)
	require.NoError(t, err)
	assert.Contains(t, string(text), `"source_span":"plans/three.plan.ts:5:23"`)
}

// The compiler leaves out a node that no output uses, and says so.
func TestWarningsOfASource(t *testing.T) {
	path := writeSource(t, t.TempDir(), "unused", strings.Replace(threeRows("unused"), "(ctx) => ctx.", "(ctx) => { ctx.viewer({ endpoint: EP.redis.redis_default }); return ctx.", 1))
	source, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(source), "}),\n});", "}) },\n});", 1)), 0o644))
	o := run(t, strings.NewReader(`{"user_id": 1}`), "run", path)
	require.Equal(t, exitOK, o.status, o.stderr)
	assert.Contains(t, o.stderr, path+":5:")
	assert.Contains(t, o.stderr, ": warning: ")
}

func TestRunRefuses(t *testing.T) {
	path := writeSource(t, t.TempDir(), "three", threeRows("three"))
	for want, args := range map[string][]string{
		"rankd run takes one plan, not 0":                         {},
		"rankd run takes one plan, not 2":                         {path, path},
		"--plan and --plan_name exclude each other":               {path, "--plan_name", "x"},
		"--watch has no effect with --print-plan-info":            {path, "--watch", "--print-plan-info"},
		"--metrics has no effect with --watch":                    {path, "--watch", "--metrics"},
		"none.plan.ts: no such file or directory":                 {"none.plan.ts"},
		"unknown flag: --wtach; rankd run --help lists the flags": {path, "--wtach"},
	} {
		o := run(t, strings.NewReader(""), append([]string{"run"}, args...)...)
		assert.Equal(t, exitUsage, o.status)
		assert.Contains(t, o.stderr, want)
		assert.Empty(t, o.stdout)
	}
}

// rankd run --watch answers the same requests again after each change.
func TestRunWatch(t *testing.T) {
	path := writeSource(t, t.TempDir(), "three", threeRows("three"))
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	var answers bytes.Buffer
	p := program{stdin: strings.NewReader(`{"user_id": 1}`), stdout: &answers, stderr: w, tune: func(int) {}}
	status := make(chan int, 1)
	go func() {
		status <- p.run(ctx, []string{"run", path, "--watch"})
		_ = w.Close()
	}()
	notes := bufio.NewScanner(r)
	var said strings.Builder
	// wait reads until the program waits for a change.
	wait := func() {
		for notes.Scan() {
			said.WriteString(notes.Text() + "\n")
			if strings.Contains(notes.Text(), "waiting for a change of "+path) {
				return
			}
		}
		require.Fail(t, "the program ended", "%s", said.String())
	}
	save := func(source string) {
		require.NoError(t, os.WriteFile(path+".new", []byte(source), 0o644))
		require.NoError(t, os.Rename(path+".new", path))
	}
	wait()
	save(strings.Replace(threeRows("three"), "3", "5", 1))
	wait()
	save("oops(")
	wait()
	save(strings.Replace(threeRows("three"), "3", "1", 1))
	wait()
	cancel()
	go func() { _, _ = io.Copy(io.Discard, r) }()
	assert.Equal(t, exitOK, <-status, "a signal is the way to end it")
	var counts []int
	for line := range strings.Lines(answers.String()) {
		var a answer
		require.NoError(t, json.Unmarshal([]byte(line), &a))
		counts = append(counts, len(a.Candidates))
	}
	assert.Equal(t, []int{3, 5, 1}, counts)
	assert.Contains(t, said.String(), path+":1:")
	assert.Equal(t, 1, strings.Count(said.String(), "using an embedded Redis"), "one server for all runs")
}
