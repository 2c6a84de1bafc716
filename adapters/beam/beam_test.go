package rankdbeam_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/local"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/textio"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	rankdbeam "github.com/rankd/rankd/adapters/beam"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/testing/testworld"
)

var usersFlag = flag.Int("users", 1000, "how many users TestEveryAnswerIsThatOfStdin ranks")

// TestMain registers the transform. The workers of Prism are in this process.
func TestMain(m *testing.M) {
	flag.Parse()
	rankdbeam.Register(func(o *rankd.Options) { o.Logger = slog.New(slog.DiscardHandler) })
	beam.Init()
	os.Exit(m.Run())
}

// ranked ranks the users of a file with Prism. It returns the answers and the failed requests
// by their users, and the counters.
func ranked(t *testing.T, o rankd.Options, users string) (answers map[string]string, failed []string, counters map[string]int64) {
	t.Helper()
	config, err := rankdbeam.NewConfig(o, rankd.FormatFlat)
	require.NoError(t, err)
	dir := t.TempDir()
	p, s := beam.NewPipelineWithRoot()
	out, dead := rankdbeam.Rank(s, config, textio.Read(s, users))
	textio.Write(s, filepath.Join(dir, "answers"), out)
	textio.Write(s, filepath.Join(dir, "failed"), rankdbeam.Requests(s, dead))
	var result beam.PipelineResult
	timed(t, "Prism", func() { result, err = beam.Run(context.Background(), "prism", p) })
	require.NoError(t, err)
	counters = make(map[string]int64)
	for _, c := range result.Metrics().AllMetrics().Counters() {
		if c.Key.Namespace == rankdbeam.Namespace {
			counters[c.Key.Name] += c.Result()
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "failed"))
	if err == nil { // The file is missing if there are none.
		failed = strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	return byUser(t, filepath.Join(dir, "answers")), failed, counters
}

// nonce matches what differs in each answer.
var nonce = regexp.MustCompile(`"engine_request_id":"[^"]*"`)

// byUser returns the answers of a file by their requests.
func byUser(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	answers := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		var a struct {
			ID string `json:"request_id"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &a), "%.80s", line)
		_, twice := answers[a.ID] // NotContains looks at each key.
		require.False(t, twice, "user %s has two answers", a.ID)
		answers[a.ID] = nonce.ReplaceAllString(strings.TrimSpace(line), "")
	}
	return answers
}

// TestEveryAnswerIsThatOfStdin ranks users of a real redis-server with Prism, with rankd on stdin, and with rankd batch.
func TestEveryAnswerIsThatOfStdin(t *testing.T) {
	const plan = "concat_plan"
	redis := testworld.StartRedis(t)
	require.NoError(t, devredis.LoadUsers(t.Context(), redis.Addr, *usersFlag))
	dir := t.TempDir()
	ids, requests := filepath.Join(dir, "users"), filepath.Join(dir, "requests")
	var lines, documents strings.Builder
	for user := 1; user <= *usersFlag; user++ {
		fmt.Fprintln(&lines, user)
		fmt.Fprintf(&documents, "{\"user_id\": %d, \"request_id\": \"%d\"}\n", user, user)
	}
	require.NoError(t, os.WriteFile(ids, []byte(lines.String()), 0o600))
	require.NoError(t, os.WriteFile(requests, []byte(documents.String()), 0o600))
	binary := filepath.Join(dir, "rankd")
	build := exec.Command("go", "build", "-o", binary, "./cmd/rankd")
	build.Dir = "../.."
	said, err := build.CombinedOutput()
	require.NoError(t, err, "%s", said)

	program := func(stdin string, args ...string) {
		cmd := exec.Command(binary, append(args, "--plan_name", plan, "--redis", redis.Addr)...)
		in, err := os.Open(stdin)
		require.NoError(t, err)
		defer in.Close()
		out, err := os.Create(filepath.Join(dir, "stdout"))
		require.NoError(t, err)
		defer out.Close()
		cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, os.Stderr
		require.NoError(t, cmd.Run())
	}
	timed(t, "stdin", func() { program(requests, "--max_inflight", "64") })
	want := byUser(t, filepath.Join(dir, "stdout"))
	require.Len(t, want, *usersFlag)
	timed(t, "rankd batch", func() { program(requests, "batch", "--users", ids, "--out", filepath.Join(dir, "answers")) })
	assert.Equal(t, want, byUser(t, filepath.Join(dir, "answers")))
	got, failed, counters := ranked(t, rankd.Options{Plan: plan, Redis: redis.Addr}, ids)
	assert.Equal(t, want, got)
	assert.Empty(t, failed)
	assert.Equal(t, map[string]int64{"users": int64(*usersFlag), "engines": 1}, counters)
}

// A user that fails becomes a dead letter, which Rank accepts again. The plan comes with the
// pipeline.
func TestDeadLetters(t *testing.T) {
	redis, err := devredis.StartWith([]devredis.Command{
		{Name: "RPUSH", Key: "inbox:1", Args: []string{"11", "12"}}, {Name: "SET", Key: "inbox:2", Args: []string{"no list"}}, {Name: "RPUSH", Key: "inbox:3", Args: []string{"13"}},
	})
	require.NoError(t, err)
	defer redis.Close()
	users := filepath.Join(t.TempDir(), "users")
	require.NoError(t, os.WriteFile(users, []byte("1\n2\n{\"user_id\": 3, \"request_id\": \"r\"}\nx\n{\n"), 0o600))
	plans := fstest.MapFS{"inbox.plan.json": {Data: []byte(`{"schema_version": 1, "plan_name": "inbox", "outputs": ["out"],
		"nodes": [{"node_id": "out", "op": "core::candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "inbox:{user}"}}]}`)}}
	o := rankd.Options{Plan: "inbox", Plans: plans, Redis: redis.Addr()}
	answers, failed, counters := ranked(t, o, users)
	assert.Equal(t, map[string]string{
		"1": `{"request_id":"1",,"candidates":[{"id":11},{"id":12}]}`, "r": `{"request_id":"r",,"candidates":[{"id":13}]}`,
	}, answers)
	assert.ElementsMatch(t, []string{`{"user_id": "2"}`, `{"user_id": "x"}`, "{"}, failed)
	assert.Equal(t, map[string]int64{"users": 5, "failed": 3, "failed_bad_request": 2, "failed_unavailable": 1, "engines": 1}, counters)

	again := filepath.Join(t.TempDir(), "users")
	require.NoError(t, os.WriteFile(again, []byte(strings.Join(failed, "\n")), 0o600))
	require.NoError(t, redis.Replace([]devredis.Command{{Name: "RPUSH", Key: "inbox:2", Args: []string{"14"}}}))
	answers, _, _ = ranked(t, o, again)
	assert.Equal(t, map[string]string{"2": `{"request_id":"2",,"candidates":[{"id":14}]}`}, answers)
}

// What answers lack is counted, in the words of a batch.
func TestWhatAnswersLackIsCounted(t *testing.T) {
	redis, err := devredis.StartWith([]devredis.Command{
		{Name: "RPUSH", Key: "inbox:1", Args: []string{"11", "12"}}, {Name: "RPUSH", Key: "inbox:2", Args: []string{"21"}}, {Name: "SET", Key: "inbox:3", Args: []string{"no list"}},
		{Name: "RPUSH", Key: "spare:2", Args: []string{"91"}},
	})
	require.NoError(t, err)
	defer redis.Close()
	users := filepath.Join(t.TempDir(), "users")
	require.NoError(t, os.WriteFile(users, []byte("1\n2\n3\n"), 0o600))
	inbox := func(name, key, below string) *fstest.MapFile {
		return &fstest.MapFile{Data: fmt.Appendf(nil, `{"schema_version": 1, "plan_name": %q, "outputs": ["out"], "lenient": {"on_error": "auto", "answer_by": "50%%"}, "min_rows": [2], "below": %q,
			"nodes": [{"node_id": "out", "op": "core::candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "%s:{user}"}}],
			"capabilities_required": ["cap.rankd.lenient.v1", "cap.rankd.min_rows.v1"]}`, name, below, key)}
	}
	plans := fstest.MapFS{"inbox.plan.json": inbox("inbox", "inbox", "mark"), "home.plan.json": inbox("home", "inbox", "spare"), "spare.plan.json": inbox("spare", "spare", "mark")}
	for plan, want := range map[string]map[string]int64{
		"inbox": {"users": 3, "engines": 1, "degraded": 1, "empty": 1, "below_minimum": 2}, "home": {"users": 3, "engines": 1, "empty": 1, "below_minimum": 2, "fallback": 2},
	} {
		_, _, counters := ranked(t, rankd.Options{Plan: plan, Plans: plans, Redis: redis.Addr()}, users)
		assert.Equal(t, want, counters, plan)
	}
}

// The error of a worker says why its engine cannot open.
func TestAnEngineThatDoesNotOpen(t *testing.T) {
	config, err := rankdbeam.NewConfig(rankd.Options{Plan: "none"}, rankd.FormatFlat)
	require.NoError(t, err)
	p, s := beam.NewPipelineWithRoot()
	rankdbeam.Rank(s, config, beam.Create(s, "1"))
	_, err = beam.Run(context.Background(), "prism", p)
	assert.ErrorContains(t, err, "none")
	_, err = rankdbeam.NewConfig(rankd.Options{PlanFile: filepath.Join(t.TempDir(), "x.plan.json")}, rankd.FormatFlat)
	assert.ErrorContains(t, err, "x.plan.json")
}

// timed runs a function that ranks the users of TestEveryAnswerIsThatOfStdin, and logs the
// time.
func timed(t *testing.T, what string, run func()) {
	start, began := time.Now(), processTime(t)
	run()
	took, used := time.Since(start), processTime(t)-began
	t.Logf("%s: %v, %v of processor time; of %d users %.0f a second, %.1f µs each", what, took.Round(time.Millisecond), used, *usersFlag,
		float64(*usersFlag)/took.Seconds(), float64(used.Microseconds())/float64(*usersFlag))
}

// processTime returns the processor time of this process and of the processes that it has
// waited for.
func processTime(t *testing.T) (sum time.Duration) {
	for _, who := range [...]int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		require.NoError(t, syscall.Getrusage(who, &u))
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}
