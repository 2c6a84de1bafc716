package program

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/internal/version"
)

// TestMain lets the test binary be the program, for tests that need a process.
func TestMain(m *testing.M) {
	compiler.Main()
	switch os.Getenv("RANKD_TEST_RUN_MAIN") {
	case "1":
		os.Exit(Main(Config{}))
	case "again":
		runAgain(os.Stdin, os.Stdout)
		os.Exit(0)
	}
	_ = flag.Set("test.parallel", "4") // The parallel tests of this package mostly wait. -parallel still has an effect.
	looptest.Main(m)
}

// outcome is the result of a run of the program.
type outcome struct {
	status         int
	stdout, stderr string
	tunedFor       int // CPU workers for which the process was set up; 0 if it was not
}

// lines returns the lines of stdout.
func (o outcome) lines() []string {
	return strings.Split(strings.TrimSuffix(o.stdout, "\n"), "\n")
}

// run runs the program in process.
func run(t testing.TB, stdin io.Reader, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	var o outcome
	p := program{
		stdin: stdin, stdout: &stdout, stderr: &stderr,
		tune: func(cpuThreads int) { o.tunedFor = cpuThreads },
	}
	o.status = p.run(context.Background(), args)
	o.stdout, o.stderr = stdout.String(), stderr.String()
	return o
}

// answer is one line of stdout, in either format.
type answer struct {
	RequestID       string           `json:"request_id"`
	EngineRequestID string           `json:"engine_request_id"`
	Candidates      []map[string]any `json:"candidates"`
	SchemaDeltas    []map[string]any `json:"schema_deltas"`
	Error           string           `json:"error"`
	Detail          string           `json:"detail"`
	Node            string           `json:"node"`
	Op              string           `json:"op"`
}

func decode(t testing.TB, line string) (a answer) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(line), &a), line)
	return a
}

func writePlan(t testing.TB, dir, name, artifact string) string {
	t.Helper()
	path := filepath.Join(dir, name+".plan.json")
	require.NoError(t, os.WriteFile(path, []byte(artifact), 0o644))
	return path
}

// fixedPlan has a name and three rows, and needs no Redis.
func fixedPlan(name string) string {
	return `{"schema_version": 1, "plan_name": "` + name + `", "nodes": [
		{"node_id": "s", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 3}}], "outputs": ["s"]}`
}

func TestAnswersFromNothingButTheProgram(t *testing.T) {
	for _, engine := range []string{"reactor", "pool", "sequential"} {
		t.Run(engine, func(t *testing.T) {
			o := run(t, strings.NewReader(`{"user_id": 1, "request_id": "r1"}`), "--plan_name", "complex_dag", "--engine", engine)
			require.Equal(t, exitOK, o.status, o.stderr)
			require.Len(t, o.lines(), 1)
			a := decode(t, o.lines()[0])
			assert.Equal(t, "r1", a.RequestID)
			assert.NotEmpty(t, a.EngineRequestID)
			require.Len(t, a.Candidates, 50)
			for i, c := range a.Candidates {
				id, score := c["id"].(float64), c["score"].(float64)
				assert.Equal(t, id*0.1, score)
				if i > 0 {
					assert.GreaterOrEqual(t, a.Candidates[i-1]["score"], score, "ranked")
				}
			}
			assert.Equal(t, 1, strings.Count(o.stderr, "\n"), "one line about the embedded Redis: %s", o.stderr)
			assert.Contains(t, o.stderr, "embedded Redis")
		})
	}
}

func TestEveryExamplePlanAnswers(t *testing.T) {
	var in strings.Builder
	o := run(t, nil, "--list-plans")
	require.Equal(t, exitOK, o.status, o.stderr)
	var plans []string
	for _, line := range o.lines()[1:] {
		name := strings.Fields(line)[0]
		plans = append(plans, name)
		in.WriteString(`{"user_id": 1, "request_id": "` + name + `", "plan": "` + name + `"}` + "\n")
	}
	assert.Equal(t, []string{"complex_dag", "concat_plan", "diamond", "mixed_pipeline", "parallel_fanout",
		"parallel_sleep_plan", "reels_plan_a", "regex_plan", "simple_viewer", "viewer_filter"}, plans)
	o = run(t, strings.NewReader(in.String()), "--dump-run-trace")
	require.Equal(t, exitOK, o.status, o.stderr)
	require.Len(t, o.lines(), len(plans))
	for i, line := range o.lines() {
		a := decode(t, line)
		assert.Equal(t, plans[i], a.RequestID, "in input order")
		assert.Empty(t, a.Error)
		assert.NotEmpty(t, a.SchemaDeltas)
		if plans[i] != "viewer_filter" { // keeps ids above 5, and the viewer is user 1
			assert.NotEmpty(t, a.Candidates, plans[i])
		}
	}
}

func TestAHugeLineIsRefused(t *testing.T) {
	huge := io.MultiReader(strings.NewReader(`{"user_id": "`), io.LimitReader(zeros{}, 100<<20), strings.NewReader("\"}\n{\"user_id\": 1}\n"))
	o := run(t, huge, "--env", "test")
	assert.Equal(t, exitFailed, o.status)
	require.Len(t, o.lines(), 2)
	assert.Equal(t, "Request too large", decode(t, o.lines()[0]).Error)
	assert.Len(t, decode(t, o.lines()[1]).Candidates, 5)
}

// zeros is an endless text of the digit 0.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// A server with the demo data gives the same answers as the embedded Redis.
func TestLoadDemoData(t *testing.T) {
	server := miniredis.RunT(t)
	require.NoError(t, server.Set("user:1", "a string, in the way"))
	o := run(t, nil, "--load_demo_data", "--redis", server.Addr())
	require.Equal(t, exitOK, o.status, o.stderr)
	assert.Empty(t, o.stdout)
	assert.Equal(t, "rankd: wrote demo data of 1000 users to "+server.Addr()+"\n", o.stderr)

	candidates := func(args ...string) []map[string]any {
		o := run(t, strings.NewReader(`{"user_id": 1}`), append(args, "--plan_name", "complex_dag")...)
		require.Equal(t, exitOK, o.status, o.stderr)
		return decode(t, o.lines()[0]).Candidates
	}
	want := candidates()
	assert.NotEmpty(t, want)
	assert.Equal(t, want, candidates("--redis", server.Addr()))

	addr := server.Addr()
	server.Close()
	o = run(t, nil, "--load_demo_data", "--redis", addr)
	assert.Equal(t, exitFailed, o.status)
	assert.Contains(t, o.stderr, addr)
}

// The demo data go to the master that sentinels know, and the message says where that is.
func TestLoadDemoDataBehindSentinels(t *testing.T) {
	s := testworld.StartRedisSentinels(t, 2, 1)
	o := run(t, nil, "--load_demo_data", "--redis", s.Addr())
	require.Equal(t, exitOK, o.status, o.stderr)
	assert.Equal(t, "rankd: wrote demo data of 1000 users to "+s.Nodes[0].Addr+"\n", o.stderr)
	assert.Equal(t, "1", s.Do(t, 0, "EXISTS", "user:1"))
}

func TestVersion(t *testing.T) {
	o := run(t, nil, "--version")
	assert.Equal(t, exitOK, o.status, o.stderr)
	assert.Equal(t, "rankd "+version.Read().String()+"\n", o.stdout)
	assert.Empty(t, o.stderr)
}

// A job that cannot print its output exits with status 1. Status 2 is for bad usage.
func TestOutputThatCannotBeWritten(t *testing.T) {
	nap := napPlan(t, time.Millisecond)
	for _, args := range [][]string{
		{"--list-plans"}, {"--print-registry"}, {"--version"}, {"--help"}, {"bench", "--help"}, {"--print-plan-info", "--plan_name", "diamond"},
		{"--plan", nap, "--env", "test"}, {"--plan", nap, "--env", "test", "--bench", "1"},
	} {
		var stderr bytes.Buffer
		p := program{stdin: strings.NewReader(`{"user_id": 1}`), stdout: brokenWriter{}, stderr: &stderr, tune: func(int) {}}
		assert.Equal(t, exitFailed, p.run(context.Background(), args), args)
		assert.Contains(t, stderr.String(), errBroken.Error(), args)
	}
}

func TestTheProcessIsTunedWherePlansRun(t *testing.T) {
	stdin := strings.NewReader(`{"user_id": 1}`)
	assert.Equal(t, 3, run(t, stdin, "--cpu_threads", "3", "--env", "test").tunedFor)
	assert.Zero(t, run(t, nil, "--list-plans").tunedFor)
}
