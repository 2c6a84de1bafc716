package main

import (
	"encoding/json"
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

	"github.com/rankd/rankd/batch"
)

var batchKills = flag.Int("batch_kills", 3, "how often TestABatchThatIsKilled kills a batch")

// TestABatchThatIsKilled kills a batch at random points, and runs the same command until it ends: each user has one answer, in order.
func TestABatchThatIsKilled(t *testing.T) {
	t.Parallel()
	const users = 20_000
	dir := t.TempDir()
	writePlan(t, dir, "rows", `{"schema_version": 1, "plan_name": "rows", "nodes": [
		{"node_id": "rows", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 20}}], "outputs": ["rows"]}`)
	var text strings.Builder
	for i := range users {
		fmt.Fprintln(&text, i+1)
	}
	list, out := filepath.Join(dir, "users.txt"), filepath.Join(dir, "answers.jsonl")
	require.NoError(t, os.WriteFile(list, []byte(text.String()), 0o600))
	command := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0], "batch", "--env", "test", "--users", list, "--plan_dir", dir, "--plan_name", "rows", "--out", out, "--part_users", "500")
		cmd.Env = append(os.Environ(), "RANKD_TEST_RUN_MAIN=1")
		cmd.Stderr = os.Stderr
		return cmd
	}
	parts := func() int {
		whole, err := filepath.Glob(filepath.Join(out+".parts", "part-*.summary.json"))
		require.NoError(t, err)
		return len(whole)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range *batchKills {
		before := parts()
		cmd := command()
		require.NoError(t, cmd.Start())
		require.Eventually(t, func() bool { return parts() > before }, patience, time.Millisecond)
		time.Sleep(time.Duration(random.IntN(int(20 * time.Millisecond)))) // anywhere in a part
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if _, err := os.Stat(out); err == nil {
			break // It was faster.
		}
	}
	kept := parts()
	said, err := command().Output()
	require.NoError(t, err)
	var sum batch.Summary
	require.NoError(t, json.Unmarshal(said, &sum))
	assert.Equal(t, users, sum.Users)
	assert.Equal(t, 500*kept, sum.Kept)
	answers, err := os.ReadFile(out)
	require.NoError(t, err)
	n := 0
	for line := range strings.Lines(string(answers)) {
		n++
		require.True(t, strings.HasPrefix(line, fmt.Sprintf(`{"request_id":"%d",`, n)), "line %d: %.60s", n, line)
		require.True(t, strings.HasSuffix(line, "]}\n"), "line %d", n)
	}
	assert.Equal(t, users, n)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 3, "plan, users and answers")
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
		{[]string{"--users", list, "--users_form", "xml", "--plan_name", "simple_viewer", "--out", "x"}, exitUsage, "", "--users_form"},
	} {
		r := run(t, strings.NewReader("1\n2\n"), append([]string{"batch"}, c.args...)...)
		assert.Equal(t, c.status, r.status, "%v: %s", c.args, r.stderr)
		assert.Contains(t, r.stdout, c.stdout)
		assert.Contains(t, r.stderr, c.stderr, "%v", c.args)
	}
}
