//go:build linux

package program

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// migrateRequests has the kernel pass on connections until the test ends. Connections in the
// backlog of a listener that closes go to another listener of the same port. Without permission
// it skips the test, or fails it if it must run.
func migrateRequests(t *testing.T) {
	const file = "/proc/sys/net/ipv4/tcp_migrate_req"
	before, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte("1"), 0)
	}
	if err != nil && os.Getenv("RANKD_REQUIRE_REDIS") == "" {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.WriteFile(file, before, 0) })
}

// TestRollingRestartOnOnePort restarts two servers that share a port, one after another, under
// load. Half of the clients open a connection for each request. No request fails, and each
// server has its share.
func TestRollingRestartOnOnePort(t *testing.T) {
	migrateRequests(t)
	plans := t.TempDir()
	writePlan(t, plans, "slow", `{"schema_version": 1, "plan_name": "slow", "nodes": [
		{"node_id": "rows", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 3}},
		{"node_id": "later", "op": "test::sleep", "inputs": ["rows"], "params": {"duration_ms": 2}}], "outputs": ["later"]}`)
	address := "127.0.0.1:" + fixedPort(t)
	operators := []string{"127.0.0.1:" + fixedPort(t), "127.0.0.1:" + fixedPort(t)}
	start := func(i int) *serverProcess {
		return startServer(t, "--env", "test", "--plan_dir", plans, "--drain_delay_ms", "1000", "--listen", address, "--reuse_port", "--resp", "off",
			"--admin", operators[i])
	}
	servers := []*serverProcess{start(0), start(1)}
	l := &traffic{progress: make(chan struct{}, 1)}
	var clients sync.WaitGroup
	var stop atomic.Bool
	for i := range 8 {
		client := newClient(t)
		client.Transport.(*http.Transport).DisableKeepAlives = i%2 == 0
		clients.Go(func() {
			for !stop.Load() {
				l.count(askThrough(client, address))
			}
		})
	}
	for range 2 {
		for i := range servers {
			l.more(300)
			require.NoError(t, servers[i].cmd.Process.Signal(syscall.SIGTERM))
			assert.Equal(t, exitOK, servers[i].awaitEnd(t))
			servers[i] = start(i)
		}
	}
	l.more(500)
	served := make([]string, len(operators))
	for i, operator := range operators {
		lines := strings.Split(get(t, newClient(t), "http://"+operator+"/metrics").body, "\n")
		at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, `rankd_connections_opened_total{front="http"}`) })
		require.GreaterOrEqual(t, at, 0)
		_, served[i], _ = strings.Cut(lines[at], " ")
		assert.NotEqual(t, "0", served[i])
	}
	stop.Store(true)
	clients.Wait()
	assert.Empty(t, l.failures)
	t.Logf("%d requests; the last servers took %v connections", l.answered.Load(), served)
}

// Without the flag, a second server finds the port taken and says so.
func TestOnePortWithoutTheFlag(t *testing.T) {
	first := startServer(t, "--env", "test")
	second := newServerProcess("--listen", first.http, "--env", "test", "--reuse_port")
	output, err := second.cmd.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(output), "--listen")
	assert.Contains(t, string(output), "address already in use")
}
