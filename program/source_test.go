package program

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// The plan of the original specification gives the same answer as source and as artifact.
func TestASourceAnswersAsItsArtifact(t *testing.T) {
	const requests = `{"user_id": 1, "request_id": "a"}` + "\n" + `{"user_id": 7, "request_id": "b", "param_overrides": {"weight": 0.25}}`
	for _, name := range []string{"complex_dag", "mixed_pipeline", "parallel_fanout"} {
		source := run(t, strings.NewReader(requests), "run", "../examples/demo/plans/"+name+".plan.ts")
		drawn := run(t, strings.NewReader(requests), "run", "../examples/demo/testdata/drawn/"+name+".plan.json")
		require.Equal(t, exitOK, source.status, source.stderr)
		require.Equal(t, exitOK, drawn.status, drawn.stderr)
		for i := range 2 {
			a, b := decode(t, source.lines()[i]), decode(t, drawn.lines()[i])
			a.EngineRequestID, b.EngineRequestID = "", ""
			assert.Equal(t, b, a)
		}
	}
}

// watching is a program with --watch.
type watching struct {
	wait func()                                   // until it waits for a change again
	end  func() (status int, stdout, said string) // what it left
}

// startWatching starts a program that watches a path.
func startWatching(t *testing.T, path, stdin string, args ...string) watching {
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	var answers bytes.Buffer
	p := program{stdin: strings.NewReader(stdin), stdout: &answers, stderr: w, tune: func(int) {}}
	status := make(chan int, 1)
	go func() {
		status <- p.run(ctx, append(args, "--watch"))
		_ = w.Close()
	}()
	notes := bufio.NewScanner(r)
	var said strings.Builder
	return watching{wait: func() {
		for notes.Scan() {
			said.WriteString(notes.Text() + "\n")
			if strings.Contains(notes.Text(), "waiting for a change") && strings.HasSuffix(notes.Text(), path) {
				return
			}
		}
		require.Fail(t, "the program ended", "%s", said.String())
	}, end: func() (int, string, string) {
		cancel()
		go func() { _, _ = io.Copy(io.Discard, r) }()
		return <-status, answers.String(), said.String()
	}}
}

// save replaces a file as editors do.
func save(t *testing.T, path, text string) {
	require.NoError(t, os.WriteFile(path+".new", []byte(text), 0o644))
	require.NoError(t, os.Rename(path+".new", path))
}

// rankd test --watch runs the tests again after a change of a plan, of a test or of what it imports.
func TestTestWatch(t *testing.T) {
	plan := writeSource(t, t.TempDir(), "three", threeRows("three"))
	dir := filepath.Dir(plan)
	tests := filepath.Join(dir, "three.plan.test.ts")
	save(t, tests, `import { expect, rank, test } from "@ranking-dsl/test";
import { rows } from "./rows";
test("rows", () => { expect(rank({ user_id: 1 })).count(rows); });`)
	save(t, filepath.Join(dir, "rows.ts"), "export const rows = 3;")
	w := startWatching(t, dir, "", "test", dir)
	w.wait()
	save(t, plan, strings.Replace(threeRows("three"), "3", "5", 1))
	w.wait()
	save(t, filepath.Join(dir, "rows.ts"), "export const rows = 5;")
	w.wait()
	save(t, tests, "oops(")
	w.wait()
	status, stdout, said := w.end()
	assert.Equal(t, exitOK, status, "a signal is the way to end it")
	assert.Contains(t, stdout, "there should be 3 rows, not 5")
	assert.Contains(t, stdout, tests+":1:6: error: ")
	assert.Equal(t, []string{"1 passed, 0 failed", "0 passed, 1 failed", "1 passed, 0 failed", "0 passed, 1 failed"},
		regexp.MustCompile(`\d passed, \d failed`).FindAllString(said, -1))
}

// rankd run --watch answers the same requests again after each change.
func TestRunWatch(t *testing.T) {
	path := writeSource(t, t.TempDir(), "three", threeRows("three"))
	w := startWatching(t, path, `{"user_id": 1}`, "run", path)
	w.wait()
	save(t, path, strings.Replace(threeRows("three"), "3", "5", 1))
	w.wait()
	save(t, path, "oops(")
	w.wait()
	save(t, path, strings.Replace(threeRows("three"), "3", "1", 1))
	w.wait()
	status, answers, said := w.end()
	assert.Equal(t, exitOK, status, "a signal is the way to end it")
	var counts []int
	for line := range strings.Lines(answers) {
		var a answer
		require.NoError(t, json.Unmarshal([]byte(line), &a))
		counts = append(counts, len(a.Candidates))
	}
	assert.Equal(t, []int{3, 5, 1}, counts)
	assert.Contains(t, said, path+":1:")
	assert.Equal(t, 1, strings.Count(said, "using an embedded Redis"), "one server for all runs")
}

// The dev environment loads the plan twice, since its Redis is at another address. A pipe can
// be read only once.
func TestThePlanMayBeAPipeAndHaveAnyName(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	_, err = w.WriteString(fixedPlan("any name/at all"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	o := run(t, strings.NewReader(`{"user_id": 1}`), "--plan", fmt.Sprintf("/dev/fd/%d", r.Fd()))
	assert.Equal(t, exitOK, o.status, "%s%s", o.stdout, o.stderr)
	assert.NotEmpty(t, decode(t, o.lines()[0]).Candidates)
}

// BenchmarkCompile measures rankd compile from a cold start to its end, as a shell sees it: the
// process, its child, the plans and the artifacts. It builds the program first. The plans are
// copies of complex_dag, the largest example.
func BenchmarkCompile(b *testing.B) {
	dir := b.TempDir()
	program := filepath.Join(dir, "rankd")
	out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(b, err, "%s", out)
	source, err := os.ReadFile("../examples/demo/plans/complex_dag.plan.ts")
	require.NoError(b, err)
	for _, plans := range []int{1, 200} {
		folder := filepath.Join(dir, fmt.Sprint(plans))
		require.NoError(b, os.Mkdir(folder, 0o755))
		for i := range plans {
			name := fmt.Sprintf("p%d", i)
			text := strings.Replace(string(source), "complex_dag", name, 1)
			require.NoError(b, os.WriteFile(filepath.Join(folder, name+".plan.ts"), []byte(text), 0o644))
		}
		b.Run(fmt.Sprintf("plans=%d", plans), func(b *testing.B) {
			for b.Loop() {
				artifacts := filepath.Join(dir, "artifacts")
				out, err := exec.Command(program, "compile", folder, "-o", artifacts).CombinedOutput()
				require.NoError(b, err, "%s", out)
				written, err := os.ReadDir(artifacts)
				require.NoError(b, err)
				require.Len(b, written, plans)
				b.StopTimer()
				require.NoError(b, os.RemoveAll(artifacts))
				b.StartTimer()
			}
		})
	}
}

// TestOneRedisOfAllEnvironments: what stands at the top of rankd.toml does not move the endpoints of test and prod in
// silence. What was chosen for the environment, or on the command line, does.
func TestOneRedisOfAllEnvironments(t *testing.T) {
	for _, c := range []struct {
		project string
		args    []string
		want    string // where the endpoint is; or else the error
	}{
		{"redis = \"h:1\"", nil, "h:1"},
		{"redis = \"h:1\"", []string{"--env", "prod"}, "rankd.toml: redis: h:1 is not where endpoints.prod.toml has endpoint ep_0001, which is 127.0.0.1:6379; " +
			"a Redis for all environments must agree with the tables: put it under [env.dev], or choose one with [env.prod] or --redis"},
		{"redis = \"redis://u:c4n4ry@127.0.0.1\"", []string{"--env", "prod"}, "127.0.0.1:6379"},
		{"redis = \"h:1\"", []string{"--env", "prod", "--redis", "i:2"}, "i:2"},
		{"redis = \"h:1\"\n[env.prod]\nredis = \"j:3\"", []string{"--env", "prod"}, "j:3"},
		{"redis = \"h:1\"\n[env.prod]\nredis = \"j:3\"", []string{"--env", "test"}, "rankd.toml: redis: h:1 is not where endpoints.test.toml"},
		{"[env.dev]\nredis = \"h:1\"", []string{"--env", "prod"}, "127.0.0.1:6379"},
		{"[env.dev]\nredis = \"h:1\"", nil, "h:1"},
	} {
		t.Chdir(t.TempDir())
		require.NoError(t, os.WriteFile("rankd.toml", []byte(c.project), 0o644))
		o := run(t, nil, append([]string{"--print-registry"}, c.args...)...)
		if strings.HasPrefix(c.want, "rankd.toml") {
			assert.Equal(t, exitUsage, o.status, o.stdout)
			assert.Contains(t, o.stderr, c.want)
			continue
		}
		require.Equal(t, exitOK, o.status, o.stderr)
		assert.Regexp(t, `(?m)^ep_0001 .* `+regexp.QuoteMeta(c.want)+" ", o.stdout)
		assert.NotContains(t, o.stdout, "c4n4ry")
	}
}

// TestPlansOfAnEnvironment: what may stand at the top of rankd.toml may stand in one environment.
func TestPlansOfAnEnvironment(t *testing.T) {
	t.Chdir(t.TempDir())
	writeSource(t, ".", "a", threeRows("a"))
	writeSource(t, "live", "b", threeRows("b"))
	require.NoError(t, os.WriteFile("rankd.toml", []byte("plans = \"plans\"\n[env.prod]\nplans = \"live/plans\"\nartifacts = \"served\""), 0o644))
	assert.Contains(t, run(t, nil, "--list-plans").stdout, "\na ")
	assert.Contains(t, run(t, nil, "--list-plans", "--env", "prod").stdout, "\nb ")
	assert.Contains(t, run(t, nil, "compile", "--env", "prod").stderr, "compiled 1 plan to served")
	assert.FileExists(t, "served/b.plan.json")
	assert.Contains(t, run(t, nil, "check", "--env", "prod").stderr, "1 plan up to date")
}
