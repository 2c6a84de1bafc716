package program

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/batch"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
)

var batchKills = flag.Int("batch_kills", 3, "how often TestABatchThatIsKilled kills a batch")

// killedBatch starts a batch again and again, and kills it at random points. It runs the same command until it ends, and returns the summary. ended says whether the batch
// has ended.
func killedBatch(t *testing.T, checkpoints string, ended func() bool, args ...string) (sum batch.Summary) {
	command := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0], append([]string{"batch", "--env", "test", "--plan_name", "rows", "--checkpoint_users", "500"}, args...)...)
		cmd.Env = append(os.Environ(), "RANKD_TEST_RUN_MAIN=1")
		cmd.Stderr = os.Stderr
		return cmd
	}
	there := func() (done int) { // users at the last checkpoint
		text, err := os.ReadFile(checkpoints)
		if !errors.Is(err, os.ErrNotExist) {
			require.NoError(t, err)
		}
		if _, count, found := strings.Cut(string(text), `"done":`); found {
			_, err = fmt.Sscan(count, &done)
			require.NoError(t, err)
		}
		return done
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range *batchKills {
		before := there()
		cmd := command()
		require.NoError(t, cmd.Start())
		require.Eventually(t, func() bool { return there() > before || ended() }, patience, time.Millisecond)
		time.Sleep(time.Duration(random.IntN(int(20 * time.Millisecond)))) // anywhere between two checkpoints
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if ended() {
			break // It was faster.
		}
	}
	said, err := command().Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(said, &sum))
	if !ended() {
		assert.Positive(t, sum.Kept)
	}
	return sum
}

// killedUsers is the number of users in the batches that are killed.
const killedUsers = 20_000

// writeRowsPlan writes a plan that gives 20 rows.
func writeRowsPlan(t *testing.T, dir string) {
	writePlan(t, dir, "rows", `{"schema_version": 1, "plan_name": "rows", "nodes": [
		{"node_id": "rows", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 20}}], "outputs": ["rows"]}`)
}

// TestABatchThatIsKilled: each user has one answer, in order.
func TestABatchThatIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeRowsPlan(t, dir)
	var text strings.Builder
	for i := range killedUsers {
		fmt.Fprintln(&text, i+1)
	}
	list, out := filepath.Join(dir, "users.txt"), filepath.Join(dir, "answers.jsonl")
	require.NoError(t, os.WriteFile(list, []byte(text.String()), 0o600))
	ended := func() bool { _, err := os.Stat(out); return err == nil }
	sum := killedBatch(t, out+".checkpoints", ended, "--users", list, "--plan_dir", dir, "--out", out)
	assert.Equal(t, killedUsers, sum.Users)
	answers, err := os.ReadFile(out)
	require.NoError(t, err)
	n := 0
	for line := range strings.Lines(string(answers)) {
		n++
		require.True(t, strings.HasPrefix(line, fmt.Sprintf(`{"request_id":"%d",`, n)), "line %d: %.60s", n, line)
		require.True(t, strings.HasSuffix(line, "]}\n"), "line %d", n)
	}
	assert.Equal(t, killedUsers, n)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 3, "plan, users and answers")
}

// TestABatchInRedisThatIsKilled: the users come from keys, and the answers go to lists. The
// version has each user once. The pointer names it only at the end.
func TestABatchInRedisThatIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeRowsPlan(t, dir)
	server := testworld.StartRedis(t)
	require.NoError(t, devredis.Write(t.Context(), server.Addr, func(write func(command ...string) error) error {
		for i := range killedUsers {
			if err := write("SET", fmt.Sprint("user:", i+1), "x"); err != nil {
				return err
			}
		}
		return nil
	}))
	ask := func(use func(r resp.Reply), command ...string) {
		require.NoError(t, devredis.WithClient(t.Context(), server.Addr, func(c *blocking.Client) error {
			var b resp.Batch
			b.Cmd(command...)
			return c.Do(&b, 0, func(replies resp.Replies) error { use(replies.At(0)); return replies.At(0).Err() })
		}))
	}
	ended := func() (there bool) {
		ask(func(r resp.Reply) { there = r.Int() > 0 }, "ZCARD", "home")
		return there
	}
	checkpoints := filepath.Join(dir, "home.checkpoints")
	sum := killedBatch(t, checkpoints, ended, "--users", "redis:user:{user}", "--users_redis", server.Addr, "--plan_dir", dir,
		"--out", "redis://"+server.Addr, "--out_key", "home", "--checkpoints", checkpoints)
	assert.Equal(t, killedUsers, sum.Users)
	assert.True(t, sum.Current)
	ask(func(r resp.Reply) {
		assert.EqualValues(t, 2*killedUsers+2, r.Int(), "users, lists, the pointer and the shares")
	}, "DBSIZE")
	for i := range killedUsers {
		ask(func(r resp.Reply) { assert.EqualValues(t, 20, r.Int()) }, "LLEN", fmt.Sprintf("home:%d:%d", sum.Version, i+1))
		if t.Failed() {
			break
		}
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 1, "the plan")
}

func TestBatchFlags(t *testing.T) {
	dir := t.TempDir()
	list := filepath.Join(dir, "users.csv")
	require.NoError(t, os.WriteFile(list, []byte("user_id\n1\n2\nx\n"), 0o600))
	for _, c := range []struct {
		args           []string
		status         int
		stdout, stderr string
	}{
		{[]string{"--users", list, "--plan_name", "simple_viewer", "--out", filepath.Join(dir, "a.jsonl")}, exitFailed, `{"users":3,"failed":1,`, "a.failed.jsonl runs them again"},
		{[]string{"--users", "-", "--plan_name", "simple_viewer", "--out", filepath.Join(dir, "b.jsonl")}, exitOK, `{"users":2,"failed":0,`, ""},
		{[]string{"--plan_name", "simple_viewer"}, exitUsage, "", "rankd batch needs --users"},
		{[]string{"--users", list, "--out", "x"}, exitUsage, "", "needs a plan"},
		{[]string{"--users", list, "--plan_name", "simple_viewer", "--out", "x", "--shard", "8/8"}, exitUsage, "", "--shard is i/n"},
		{[]string{"--users", filepath.Join(dir, "none"), "--plan_name", "simple_viewer", "--out", "x"}, exitUsage, "", "no such file"},
		{[]string{"--users", "redis:user:{user}", "--plan_name", "simple_viewer", "--out", filepath.Join(dir, "c.jsonl")}, exitOK, `{"users":1000,"failed":0,`, ""},
		{[]string{"--users", "redis:user:{user}", "--plan_name", "simple_viewer", "--out", "x", "--env", "test", "--registry_dir", "../registry/tables"}, exitUsage, "", "needs the Redis to look in"},
		{[]string{"--users", "redis:user", "--plan_name", "simple_viewer", "--out", "x"}, exitUsage, "", "--users: the key of the users has the mark {user} once"},
		{[]string{"--users", list, "--plan_name", "simple_viewer", "--out", "http://127.0.0.1:1"}, exitUsage, "", "--out: the scheme must be redis://"},
		{[]string{"--users", list, "--plan_name", "simple_viewer", "--out", "redis://127.0.0.1:1", "--checkpoints", filepath.Join(dir, "p"), "--shard", "0/2"}, exitUsage, "", "--shard needs --out_version"},
		{[]string{"--users", list, "--plan_name", "simple_viewer", "--out", "redis://127.0.0.1:1", "--checkpoints", filepath.Join(dir, "p")}, exitFailed, "", "refused"},
		{[]string{"--users", list, "--plan_name", "simple_viewer", "--out", filepath.Join(dir, "d"), "--out_key", "y", "--users_redis", "z"}, exitUsage, "", "--out_key has no effect unless --out is a Redis"},
		{[]string{"--users", list, "--plan_name", "simple_viewer", "--out", dir + "/"}, exitFailed, "", "is a folder: name a file in it"},
		{[]string{"--users", list, "--users_form", "xml", "--plan_name", "simple_viewer", "--out", "x"}, exitUsage, "", "--users_form"},
	} {
		r := run(t, strings.NewReader("1\n2\n"), append([]string{"batch"}, c.args...)...)
		assert.Equal(t, c.status, r.status, "%v: %s", c.args, r.stderr)
		assert.Contains(t, r.stdout, c.stdout)
		assert.Contains(t, r.stderr, c.stderr, "%v", c.args)
	}
}

// A batch and stdin say what their answers lack, and write them in the form that --response names.
func TestAnswersThatLackSomethingAreSaid(t *testing.T) {
	dir := t.TempDir()
	path := writePlan(t, dir, "p", `{"schema_version": 1, "plan_name": "p", "outputs": ["f"], "capabilities_required": ["cap.rankd.on_error.v1"], "nodes": [
		{"node_id": "v", "op": "core::viewer", "inputs": [], "params": {"endpoint": "ep_0001"}, "on_error": "empty"},
		{"node_id": "s", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 1}},
		{"node_id": "m", "op": "core::vm", "inputs": ["s"], "params": {"out_key": 2001, "expr_id": "e"}},
		{"node_id": "f", "op": "core::concat", "inputs": ["v"], "params": {"rhs": "m"}}],
		"expr_table": {"e": {"op": "const_number", "value": 0.5}}}`)
	const lacking = "rankd: of 2 that were ranked: 2 degraded (p/v failed 2)"
	o := run(t, strings.NewReader("{\"user_id\": 1}\n{\"user_id\": 2}\n"), "--plan", path, "--redis", "127.0.0.1:1")
	assert.Equal(t, exitOK, o.status, o.stdout)
	assert.Contains(t, o.stderr, lacking)
	out := filepath.Join(dir, "a.jsonl")
	o = run(t, strings.NewReader("1\n2\n"), "batch", "--users", "-", "--plan", path, "--redis", "127.0.0.1:1", "--out", out, "--response", "fields")
	assert.Equal(t, exitOK, o.status, o.stderr)
	assert.Contains(t, o.stderr, lacking)
	assert.Contains(t, o.stdout, `"degraded":2`)
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	assert.Equal(t, 2, strings.Count(string(text), `{"id":1,"fields":{"final_score":0.5}}`))
	o = run(t, strings.NewReader("1\n2\n"), "batch", "--users", "-", "--plan", path, "--redis", "127.0.0.1:1", "--out", filepath.Join(dir, "b.jsonl"), "--max_degraded", "10")
	assert.Equal(t, exitFailed, o.status)
	assert.Contains(t, o.stderr, "2 of 2 degraded, and --max_degraded is 10 in a hundred")
	assert.NoFileExists(t, filepath.Join(dir, "b.jsonl"))
}

func TestProgressText(t *testing.T) {
	for want, p := range map[string]batch.Progress{
		"17 keys of users found":         {Found: 17},
		"3 users, 1 failed, 6 a second":  {Summary: batch.Summary{Users: 3, Failed: 1, PerSecond: 6}},
		"0 users, 0 failed, 0 a second":  {Size: 7},
		"50 users, 0 failed, 5 a second": {Summary: batch.Summary{Users: 50, PerSecond: 5}, Read: 10},
		"[############............] 50 users, 0 failed, 5 a second, 50%, 10s left": {Summary: batch.Summary{Users: 50, PerSecond: 5, Seconds: 10}, Read: 100, Size: 200},
		"[##################......] 75 users, 0 failed, 5 a second, 75%, 5s left":  {Summary: batch.Summary{Users: 75, PerSecond: 5, Seconds: 5}, Begun: 100, Read: 150, Size: 200},
		"[########################] 99 users, 0 failed, 5 a second, 100%":          {Summary: batch.Summary{Users: 99, PerSecond: 5, Seconds: 5}, Read: 200, Size: 200, Ended: true},
	} {
		assert.Equal(t, want, progressText(p, true))
		assert.NotContains(t, progressText(p, false), "[")
	}
}
