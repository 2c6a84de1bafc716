package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPlansChangeWhileTheServerRuns: SIGHUP, POST /reload, rankd reload and --watch read plans again, all of them or none, and rankd reload --back returns.
func TestPlansChangeWhileTheServerRuns(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	plans := filepath.Join(dir, "plans") // a link, as a mounted folder of Kubernetes is
	rows := func(folder string, n int) {
		require.NoError(t, os.MkdirAll(folder, 0o755))
		writePlan(t, folder, "rows", fmt.Sprintf(`{"schema_version": 1, "plan_name": "rows", "nodes": [{"node_id": "n0", "op": "fixed_source", "inputs": [],
			"params": {"row_count": %d}}], "outputs": ["n0"]}`, n))
	}
	rows(first, 1)
	require.NoError(t, os.Symlink(first, plans))
	s := startServer(t, "--env", "test", "--plan_dir", plans, "--drain_delay_ms", "0")
	client := newClient(t)
	answered := func() int {
		reply := ask(t, client, "http://"+s.http+"/v1/rank/rows", "", `{"user_id": 1}`)
		require.Equal(t, 200, reply.status, reply.body)
		return strings.Count(reply.body, `"id":`)
	}
	digest := func() string { return get(t, client, "http://"+s.http+"/v1/plans").body }
	before := digest()
	assert.Contains(t, before, `"generation":"`)
	assert.Equal(t, 1, answered())

	// Each way of asking counts.
	rows(first, 2)
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGHUP))
	_, seen := s.log.awaitLine(t, 0, `"msg":"plans changed"`, `"after":"SIGHUP"`)
	assert.Equal(t, 2, answered())
	assert.NotEqual(t, before, digest())
	rows(first, 3)
	o := run(t, nil, "reload", "--admin", s.host)
	require.Equal(t, exitOK, o.status, o.stderr)
	assert.Regexp(t, `^generation 3, digest [0-9a-f]{64}, 1 plans\n$`, o.stdout)
	assert.Equal(t, 3, answered())
	o = run(t, nil, "reload", "--admin", s.host, "--back")
	require.Equal(t, exitOK, o.status, o.stderr)
	assert.Equal(t, 2, answered())

	// A broken plan changes nothing, and the answer says why.
	writePlan(t, first, "rows", `{"schema_version": 1, "plan_name": "rows", "nodes": [], "outputs": ["gone"]}`)
	o = run(t, nil, "reload", "--admin", s.host)
	assert.Equal(t, exitFailed, o.status)
	assert.Contains(t, o.stderr, "rows.plan.json")
	assert.Contains(t, o.stderr, "gone")
	assert.Equal(t, 2, answered())
	ready := get(t, client, "http://"+s.host+"/readyz?verbose")
	assert.Equal(t, 200, ready.status)
	assert.Contains(t, ready.body, "reloads: ")
	assert.Contains(t, ready.body, "the last reload failed, and changed nothing: ")
	assert.Contains(t, ready.body, "gone")
	metrics := get(t, client, "http://"+s.host+"/metrics").body
	assert.Contains(t, metrics, "rankd_reload_failures_total 1\n")
	assert.Contains(t, metrics, `rankd_plan_info{digest="`)
	assert.Equal(t, "ok\n", get(t, client, "http://"+s.host+"/readyz").body)
	_, _ = s.log.awaitLine(t, seen, `"msg":"the plans stay as they were"`, `"after":"POST /reload"`)
	assert.Equal(t, 405, get(t, client, "http://"+s.host+"/reload").status)

	// A server that watches sees a link that is replaced.
	rows(first, 4)
	w := startServer(t, "--env", "test", "--plan_dir", plans, "--drain_delay_ms", "0", "--watch")
	rows(second, 5)
	next := filepath.Join(dir, "next")
	require.NoError(t, os.Symlink(second, next))
	require.NoError(t, os.Rename(next, plans))
	w.log.awaitLine(t, 0, `"msg":"plans changed"`, `"after":"a change of a file"`)
	s = w
	assert.Equal(t, 5, answered())
}

// TestReloadWithoutAServer: the command says whom it asked.
func TestReloadWithoutAServer(t *testing.T) {
	o := run(t, nil, "reload", "--admin", "127.0.0.1:1")
	assert.Equal(t, exitFailed, o.status)
	assert.Contains(t, o.stderr, "127.0.0.1:1")
	assert.Equal(t, exitUsage, run(t, nil, "reload", "now").status)
	o = run(t, nil, "serve", "--watch", "--listen", "127.0.0.1:0", "--admin", "off")
	assert.Equal(t, exitUsage, o.status)
	assert.Contains(t, o.stderr, "watch")
}
