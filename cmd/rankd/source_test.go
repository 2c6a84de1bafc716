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
