package main

import (
	"bytes"
	"context"
	"encoding/json"
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
	"github.com/rankd/rankd/internal/version"
	"github.com/rankd/rankd/loop/looptest"
)

// TestMain lets the test binary stand in for the program, for tests that need
// a process.
func TestMain(m *testing.M) {
	compiler.Main()
	if os.Getenv("RANKD_TEST_RUN_MAIN") == "1" {
		main() // exits
	}
	looptest.Main(m)
}

// outcome is what a run of the program left behind.
type outcome struct {
	status         int
	stdout, stderr string
	tunedFor       int // CPU workers that the process was set up for; 0 if it was not
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

// answer is one line of stdout, in either form.
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

func TestBadUsageAndBadPlans(t *testing.T) {
	dir := t.TempDir()
	writePlan(t, dir, "bad", `{"schema_version": 1, "plan_name": "bad", "nodes": [{"node_id": "x", "op": "nope", "inputs": []}], "outputs": []}`)
	file := filepath.Join(dir, "bad.plan.json")
	emptyDir := t.TempDir() // but for what is not a plan
	require.NoError(t, os.WriteFile(filepath.Join(emptyDir, "plan.json"), []byte("{}"), 0o644))
	require.NoError(t, os.Mkdir(filepath.Join(emptyDir, "folder.plan.json"), 0o755))
	oddDir := t.TempDir()
	writePlan(t, oddDir, "my-plan", fixedPlan("my-plan"))
	for _, tc := range []struct {
		name   string
		args   []string
		stderr []string
	}{
		{"UnknownFlag", []string{"--nope"}, []string{"unknown flag: --nope; rankd --help lists the flags"}},
		{"UnknownFlagOfAMode", []string{"bench", "loop", "--nope"}, []string{"unknown flag: --nope; rankd bench loop --help lists the flags"}},
		{"NotANumber", []string{"--cpu_threads", "two"}, []string{`--cpu_threads is a whole number, not "two"`}},
		{"NumberBeyondRange", []string{"--max_rows", "99999999999999999999"}, []string{`--max_rows is a number of at most 64 bits, not "99999999999999999999"`}},
		{"NotASwitch", []string{"--async_scheduler=maybe"}, []string{`--async_scheduler is true or false, not "maybe"`}},
		{"TwoPlans", []string{"--plan", "x", "--plan-name", "y"}, []string{"--plan and --plan_name exclude each other: give one of them"}},
		{"TwoJobs", []string{"--version", "--list_plans"}, []string{"--list-plans and --version exclude each other: give one of them"}},
		{"RateAndConcurrency", []string{"bench", "compare", "--rate", "5", "--concurrency", "3"}, []string{"--rate and --concurrency exclude each other: give one of them"}},
		{"OneDash", []string{"-plan_name", "x"}, []string{"flags begin with --"}},
		{"NameForAFile", []string{"--plan", "complex_dag"}, []string{"--plan: complex_dag: no such file or directory; --plan_name complex_dag names a plan"}},
		{"Argument", []string{"answer"}, []string{`unknown command "answer"`}},
		{"File", []string{"--plan_name", "diamond", "requests.jsonl"}, []string{"a file of requests comes on stdin: rankd [flags] < requests.jsonl"}},
		{"FileWithAnOddName", []string{"my\nrequests"}, []string{`"my\nrequests"`, "rankd [flags] < file"}},
		{"ValueOfASwitch", []string{"--async_scheduler", "false"}, []string{`"false"`, "--flag=false"}},
		{"EmptyPlanName", []string{"--plan_name", ""}, []string{"--plan_name needs a value"}},
		{"EmptyPlan", []string{"--plan="}, []string{"--plan needs a value"}},
		{"EmptyPlanFolder", []string{"--plan-dir", ""}, []string{"--plan_dir needs a value"}},
		{"AllThatIsEmpty", []string{"--plan_name=", "--redis=", "--registry_dir=", "--env=", "--response=", "--engine="},
			[]string{"--plan_name needs", "--redis needs", "--registry_dir needs", "--env needs", "--response needs", "--engine needs"}},
		{"FolderWithoutPlans", []string{"--plan_dir", emptyDir}, []string{"--plan_dir", emptyDir, "no plan", "<name>.plan.json"}},
		{"FolderWithoutPlansAndAName", []string{"--plan_dir", emptyDir, "--plan_name", "x"}, []string{"--plan_dir", emptyDir, "no plan"}},
		{"FolderWithoutPlansAndAFile", []string{"--plan_dir", emptyDir, "--plan", file}, []string{"--plan_dir", emptyDir, "no plan"}},
		{"FolderWithoutPlansListed", []string{"--plan_dir", emptyDir, "--list-plans"}, []string{"--plan_dir", emptyDir, "no plan"}},
		{"NoNumber", []string{"--cpu_threads", "many"}, []string{"--cpu_threads"}},
		{"AllProblemsAtOnce", []string{"--engine", "x", "--response", "y", "--redis", "z", "--max_inflight", "0", "--cpu_threads", "-1", "--max_request_bytes", "0", "--bench_concurrency", "0"},
			[]string{"--engine", "--response", "--redis", "--max_inflight", "--cpu_threads", "--max_request_bytes", "--bench_concurrency"}},
		{"Input", []string{"--input", "xml"}, []string{`--input is json or jsonl, not "xml"`}},
		{"RedisPort", []string{"--redis", "localhost:0"}, []string{"--redis"}},
		{"RedisHost", []string{"--redis", ":6379"}, []string{"--redis"}},
		{"EngineContradiction", []string{"--async_scheduler", "--engine", "sequential"}, []string{"contradicts"}},
		{"AsyncIsNotThePool", []string{"--async_scheduler", "--engine", "pool"}, []string{"contradicts"}},
		{"NotAsyncIsNotTheReactor", []string{"--async_scheduler=false", "--engine", "reactor"}, []string{"contradicts"}},
		{"ParallelIsNotSequential", []string{"--within_request_parallelism", "--engine", "sequential"}, []string{"contradicts"}},
		{"AsyncAndParallel", []string{"--within_request_parallelism", "--async_scheduler"}, []string{"contradicts"}},
		{"PoolSizes", []string{"--io_threads", "0", "--redis_pool", "-1"}, []string{"--io_threads", "--redis_pool"}},
		{"PlanAndName", []string{"--plan", file, "--plan_name", "x"}, []string{"plan", "plan_name"}},
		{"TwoModes", []string{"--list-plans", "--print-registry"}, []string{"list-plans", "print-registry"}},
		{"BenchWithoutPlan", []string{"--bench", "5"}, []string{"--bench needs a plan"}},
		{"BenchZero", []string{"--bench", "0", "--plan_name", "diamond"}, []string{"--bench is a number"}},
		{"DemoDataWithoutRedis", []string{"--load_demo_data"}, []string{"--load_demo_data needs", "--redis"}},
		{"DemoDataAndPlans", []string{"--load_demo_data", "--redis", "h:1", "--list-plans"}, []string{"load_demo_data", "list-plans"}},
		{"InfoWithoutPlan", []string{"--print-plan-info"}, []string{"--print-plan-info needs a plan"}},
		{"UnknownEnvironment", []string{"--env", "moon"}, []string{"moon"}},
		{"UnknownRegistryFolder", []string{"--registry_dir", filepath.Join(dir, "nope")}, []string{"--registry_dir", "nope"}},
		{"RegistryFolderWithoutTables", []string{"--registry_dir", dir}, []string{"--registry_dir", dir, "keys.toml"}},
		{"UnknownModelFolder", []string{"--model_dir", filepath.Join(dir, "nope")}, []string{"--model_dir", "nope"}},
		{"AModelThatIsNone", []string{"--model_dir", dir}, []string{"--model_dir", dir, "bad.plan.json", "must be \"gbtree\""}},
		{"UnknownPlan", []string{"--plan_name", "nope"}, []string{`unknown plan "nope"`}},
		{"PlanNameWithPath", []string{"--plan_name", "../bad"}, []string{"plan name"}},
		{"UnknownPlanFolder", []string{"--plan_dir", filepath.Join(dir, "nope")}, []string{"--plan_dir", "nope"}},
		{"PlanFileWithABadName", []string{"--plan_dir", oddDir}, []string{"my-plan.plan.json", "letters, digits and _"}},
		{"PlanFolderIsAFile", []string{"--plan_dir", file}, []string{"is not a folder"}},
		{"UnknownPlanFile", []string{"--plan", filepath.Join(dir, "nope")}, []string{"nope"}},
		{"BadPlanByFile", []string{"--plan", file}, []string{"bad.plan.json", "nodes[0]", "nope"}},
		{"BadPlanByName", []string{"--plan_dir", dir, "--plan_name", "bad"}, []string{"bad.plan.json", "nodes[0]", "nope"}},
		{"BadPlanAmongSeveral", []string{"--plan_dir", dir}, []string{"bad.plan.json", "nodes[0]", "nope"}},
		{"BadPlanForBench", []string{"--plan", file, "--bench", "1"}, []string{"bad.plan.json"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := run(t, strings.NewReader(`{"user_id": 1}`), tc.args...)
			assert.Equal(t, exitUsage, o.status)
			assert.Empty(t, o.stdout)
			for _, want := range tc.stderr {
				assert.Contains(t, o.stderr, want)
			}
			for line := range strings.Lines(o.stderr) {
				assert.True(t, strings.HasPrefix(line, "rankd: "), line)
			}
		})
	}
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

func TestVersion(t *testing.T) {
	o := run(t, nil, "--version")
	assert.Equal(t, exitOK, o.status, o.stderr)
	assert.Equal(t, "rankd "+version.Read().String()+"\n", o.stdout)
	assert.Empty(t, o.stderr)
}

// A job that cannot print its output fails with status 1. Status 2 is for bad usage.
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
