//go:build linux

package program

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// haproxyProgram returns the path of HAProxy. Without HAProxy, it skips the test, or fails it
// if there must be one.
func haproxyProgram(t *testing.T) string {
	for _, name := range []string{os.Getenv("RANKD_HAPROXY"), "haproxy", "/usr/sbin/haproxy"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("RANKD_REQUIRE_HAPROXY") == "1" {
		t.Fatal("RANKD_REQUIRE_HAPROXY is set, but haproxy is missing; RANKD_HAPROXY names it")
	}
	t.Skip("haproxy is missing; RANKD_HAPROXY names it")
	return ""
}

// fleet has three replicas behind HAProxy. One goroutine.
type fleet struct {
	front, respFront string // addresses of HAProxy
	proxy            *logLines
	replicas         map[string]*serverProcess
	start            func(name string) *serverProcess
}

// startFleet starts three replicas, and HAProxy with the file that docs/deploy shows.
func startFleet(t *testing.T) *fleet {
	haproxy := haproxyProgram(t)
	plans := t.TempDir()
	// A request takes 10 ms, so some are always in flight. It needs no Redis.
	writePlan(t, plans, "slow", `{"schema_version": 1, "plan_name": "slow", "nodes": [
		{"node_id": "rows", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 3}},
		{"node_id": "later", "op": "test::sleep", "inputs": ["rows"], "params": {"duration_ms": 10}}], "outputs": ["later"]}`)
	f := &fleet{replicas: map[string]*serverProcess{}}
	address := func() string { return "127.0.0.1:" + fixedPort(t) }
	f.front, f.respFront = address(), address()
	environment := []string{"RANKD_HTTP=" + f.front, "RANKD_RESP=" + f.respFront}
	flags := map[string][]string{}
	for _, name := range []string{"a", "b", "c"} {
		http, resp, operators := address(), address(), fixedPort(t)
		variable := "RANKD_" + strings.ToUpper(name)
		environment = append(environment, variable+"="+http, variable+"_RESP="+resp, variable+"_ADMIN="+operators)
		flags[name] = []string{"--env", "test", "--plan_dir", plans, "--drain_delay_ms", "1000",
			"--listen", http, "--resp", resp, "--admin", "127.0.0.1:" + operators}
	}
	f.start = func(name string) *serverProcess { return startServer(t, flags[name]...) }
	for name := range flags {
		f.replicas[name] = f.start(name)
	}

	config, err := filepath.Abs("../docs/deploy/haproxy.cfg")
	require.NoError(t, err)
	proxy := exec.Command(haproxy, "-db", "-f", config)
	proxy.Env = append(os.Environ(), environment...)
	stderr, err := proxy.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, proxy.Start())
	f.proxy = followLog(stderr)
	t.Cleanup(func() {
		_ = proxy.Process.Kill()
		<-f.proxy.end
		_ = proxy.Wait()
		if t.Failed() {
			t.Logf("the log of HAProxy:\n%s", f.proxy.text())
		}
	})
	for _, addr := range []string{f.front, f.respFront} { // HAProxy does not say when it listens.
		require.Eventually(t, func() bool {
			conn, err := net.Dial("tcp", addr)
			return err == nil && conn.Close() == nil
		}, patience, 10*time.Millisecond)
	}
	return f
}

// traffic has clients that send requests through HAProxy until the test stops them. Any
// goroutine.
type traffic struct {
	stop     atomic.Bool
	clients  sync.WaitGroup
	answered atomic.Int64
	retried  atomic.Int64 // by the RESP clients, which connect again
	progress chan struct{}

	mu       sync.Mutex
	failures []string
}

const document = `{"user_id": 1, "request_id": "r"}`

// sound reports whether an answer is the one to document.
func sound(answer string) bool {
	return strings.HasPrefix(answer, `{"request_id":"r",`) && strings.HasSuffix(answer, `"candidates":[{"id":1},{"id":2},{"id":3}]}`)
}

// startTraffic starts clients of both protocols.
func startTraffic(t *testing.T, f *fleet) *traffic {
	l := &traffic{progress: make(chan struct{}, 1)}
	client := newClient(t)
	for range 12 {
		l.clients.Go(func() {
			for !l.stop.Load() {
				l.count(askThrough(client, f.front))
			}
		})
	}
	for range 4 {
		l.clients.Go(func() { l.askOverRESP(f.respFront) })
	}
	return l
}

// askThrough sends one POST and does not retry. Go's client does not repeat a POST by itself.
func askThrough(client *http.Client, front string) error {
	reply, err := client.Post("http://"+front+"/v1/rank/slow", "application/json", strings.NewReader(document))
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		return err
	}
	if reply.StatusCode != 200 || !sound(string(body)) {
		return fmt.Errorf("status %d: %s", reply.StatusCode, body)
	}
	return nil
}

// askOverRESP sends requests over one connection for as long as it holds. It sends the request
// again on another connection if this one breaks, as the clients of Redis do.
func (l *traffic) askOverRESP(front string) {
	var conn *redisConn
	defer func() {
		if conn != nil {
			_ = conn.Close()
		}
	}()
	for !l.stop.Load() {
		var err error
		for range 10 {
			var answer string
			if conn == nil {
				conn, err = dialRedis(front)
			}
			if conn != nil {
				if answer, err = conn.do("RANK", "slow", "1", `{"request_id": "r"}`); err == nil {
					if !sound(answer) {
						err = fmt.Errorf("over RESP: %s", answer)
					}
					break
				}
				_ = conn.Close()
				conn = nil
			}
			l.retried.Add(1)
		}
		l.count(err)
	}
}

func (l *traffic) count(err error) {
	if err != nil {
		l.mu.Lock()
		l.failures = append(l.failures, err.Error())
		l.mu.Unlock()
	}
	l.answered.Add(1)
	select {
	case l.progress <- struct{}{}:
	default:
	}
}

// more waits for some more answers.
func (l *traffic) more(n int64) {
	for until := l.answered.Load() + n; l.answered.Load() < until; {
		<-l.progress
	}
}

// finish stops the clients and checks that each request was answered.
func (l *traffic) finish(t *testing.T) {
	l.stop.Store(true)
	l.clients.Wait()
	assert.Empty(t, l.failures)
	t.Logf("%d requests; RESP clients connected again %d times", l.answered.Load(), l.retried.Load())
}

// endReplicas ends three replicas one by one under load, with a signal, and checks that no
// request fails.
func endReplicas(t *testing.T, signal syscall.Signal, status int) {
	f := startFleet(t)
	l := startTraffic(t, f)
	for _, name := range []string{"a", "b", "c"} {
		l.more(100)
		seen := f.proxy.count()
		require.NoError(t, f.replicas[name].cmd.Process.Signal(signal))
		assert.Equal(t, status, f.replicas[name].awaitEnd(t))
		if signal == syscall.SIGKILL {
			f.proxy.awaitLine(t, seen, "http/"+name+" is DOWN")
		}
		f.replicas[name] = f.start(name)
		f.proxy.awaitLine(t, seen, "http/"+name+" is UP")
	}
	l.more(100)
	l.finish(t)
}

// TestRollingRestartBehindHAProxy restarts three replicas one by one under load. No request fails.
func TestRollingRestartBehindHAProxy(t *testing.T) {
	t.Parallel()
	endReplicas(t, syscall.SIGTERM, exitOK)
}

// TestKilledReplicasBehindHAProxy kills three replicas one by one under load. HAProxy sends the
// requests to another replica, so none fails.
func TestKilledReplicasBehindHAProxy(t *testing.T) {
	t.Parallel()
	endReplicas(t, syscall.SIGKILL, -1)
}
