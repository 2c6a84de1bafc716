//go:build unix

package program

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/servetest"
)

// patience bounds each wait for a process. Only a failed test waits that long.
const patience = 30 * time.Second

// serverProcess is "rankd serve" as a process. One goroutine.
type serverProcess struct {
	cmd              *exec.Cmd
	log              *logLines
	ended            chan struct{} // closed when the process has ended
	http, resp, host string        // addresses; host serves operators
}

// startServer starts "rankd serve" with a log in JSON, and waits until it is ready. Fronts
// listen on free ports unless args say otherwise.
func startServer(t *testing.T, args ...string) *serverProcess {
	t.Helper()
	s := launchServer(t, args...)
	for _, front := range []struct {
		name string
		addr *string
	}{{"http", &s.http}, {"resp", &s.resp}, {"admin", &s.host}} {
		if line := s.log.await(t, "ready", `"listening"`, `"front":"`+front.name+`"`); line != nil {
			*front.addr = line["address"].(string)
		}
	}
	return s
}

// fixedPort returns a free port. Neither the kernel nor another such test gives it to anybody
// until the test ends. So a restarted server finds it free again.
func fixedPort(t *testing.T) string {
	for range 1000 {
		port := strconv.Itoa(20000 + rand.IntN(12000)) // below the range of /proc/sys/net/ipv4/ip_local_port_range
		lock, err := os.OpenFile(filepath.Join(os.TempDir(), "rankd-test-port-"+port), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			continue // another user's test has it
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			_ = lock.Close()
			continue
		}
		t.Cleanup(func() { _ = lock.Close() }) // The file stays: otherwise two processes could lock two files of the same name.
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			require.NoError(t, l.Close())
			return port
		}
	}
	t.Fatal("no free port")
	return ""
}

// newServerProcess returns a "rankd serve" that has not been started.
func newServerProcess(args ...string) *serverProcess {
	command := []string{"serve", "--log", "json"}
	for _, flag := range []string{"--listen", "--resp", "--admin"} {
		if !slices.Contains(args, flag) {
			command = append(command, flag, "127.0.0.1:0")
		}
	}
	s := &serverProcess{cmd: exec.Command(os.Args[0], append(command, args...)...), ended: make(chan struct{})}
	s.cmd.Env = append(os.Environ(), "RANKD_TEST_RUN_MAIN=1")
	return s
}

// launchServer starts "rankd serve" and does not wait for anything.
func launchServer(t *testing.T, args ...string) *serverProcess {
	t.Helper()
	s := newServerProcess(args...)
	stderr, err := s.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	s.log = followLog(stderr)
	go func() {
		<-s.log.end // Wait closes the pipe, so all is read first.
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.ended
		if t.Failed() {
			t.Logf("the log of rankd %s:\n%s", strings.Join(s.cmd.Args[1:], " "), s.log.text())
		}
	})
	return s
}

// awaitEnd waits for the end of the process and returns its exit status, or -1 if a signal
// ended it.
func (s *serverProcess) awaitEnd(t *testing.T) int {
	t.Helper()
	select {
	case <-s.ended:
	case <-time.After(patience):
		_ = s.cmd.Process.Kill()
		t.Fatalf("the server did not end:\n%s", s.log.text())
	}
	return s.cmd.ProcessState.ExitCode()
}

// awaitInFlight waits until that many requests run.
func (s *serverProcess) awaitInFlight(t *testing.T, n int) {
	t.Helper()
	client := newClient(t)
	line := fmt.Sprintf("\nrankd_requests_running %d\n", n)
	require.Eventually(t, func() bool { return strings.Contains(get(t, client, "http://"+s.host+"/metrics").body, line) },
		patience, 10*time.Millisecond)
}

// logLines are the lines that a process has written so far. Any goroutine.
type logLines struct {
	end   chan struct{} // closed after the last line
	mu    sync.Mutex
	more  chan struct{} // closed and replaced when a line comes
	lines []string
}

func followLog(r io.Reader) *logLines {
	l := &logLines{end: make(chan struct{}), more: make(chan struct{})}
	go func() {
		defer close(l.end)
		for lines := bufio.NewScanner(r); lines.Scan(); {
			l.mu.Lock()
			l.lines = append(l.lines, lines.Text())
			close(l.more)
			l.more = make(chan struct{})
			l.mu.Unlock()
		}
	}()
	return l
}

func (l *logLines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// awaitLine waits for a line after the first skipped lines that has all of the words. It
// returns the line with its number.
func (l *logLines) awaitLine(t *testing.T, skip int, words ...string) (line string, number int) {
	t.Helper()
	for timeout := time.After(patience); ; {
		l.mu.Lock()
		lines, more := l.lines, l.more
		l.mu.Unlock()
		for i := skip; i < len(lines); i++ {
			if containsAll(lines[i], words) {
				return lines[i], i
			}
		}
		skip = max(skip, len(lines))
		select {
		case <-more:
		case <-l.end:
			if l.count() == len(lines) {
				t.Fatalf("the process ended without a line with %q:\n%s", words, l.text())
			}
		case <-timeout:
			t.Fatalf("no line with %q:\n%s", words, l.text())
		}
	}
}

// await waits for a line with the message. It returns the first line up to there that has all
// of the words, decoded, or nil.
func (l *logLines) await(t *testing.T, message string, words ...string) map[string]any {
	t.Helper()
	_, last := l.awaitLine(t, 0, `"msg":"`+message+`"`)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines[:last+1] {
		if containsAll(line, words) {
			var event map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &event), line)
			return event
		}
	}
	return nil
}

func (l *logLines) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lines)
}

func containsAll(line string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(line, word) {
			return false
		}
	}
	return true
}

// httpReply is an answer over HTTP.
type httpReply struct {
	status int
	body   string
	last   bool // The server closes the connection.
}

// ask sends a request over HTTP. A token may be empty.
func ask(t *testing.T, client *http.Client, url, token, body string) httpReply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	reply, err := client.Do(r)
	require.NoError(t, err)
	return read(t, reply)
}

// get asks for a page.
func get(t *testing.T, client *http.Client, url string) httpReply {
	t.Helper()
	reply, err := client.Get(url)
	require.NoError(t, err)
	return read(t, reply)
}

func read(t *testing.T, reply *http.Response) httpReply {
	t.Helper()
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	require.NoError(t, err)
	return httpReply{reply.StatusCode, string(body), reply.Close}
}

// newClient returns a client with its own connections, which close at the end of the test.
func newClient(t *testing.T) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// redisConn is a connection of a Redis client that only knows commands and replies of one part.
// One goroutine.
type redisConn struct {
	net.Conn
	replies *bufio.Reader
}

func dialRedis(addr string) (*redisConn, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return newRedisConn(conn), nil
}

func newRedisConn(conn net.Conn) *redisConn { return &redisConn{conn, bufio.NewReader(conn)} }

// do sends a command and returns its reply: the text of a status, an error with its "-", or a bulk string.
func (c *redisConn) do(args ...string) (string, error) {
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	if _, err := c.Write(servetest.Command(args...)); err != nil {
		return "", err
	}
	reply, err := servetest.ReadReply(c.replies)
	return servetest.Text(reply), err
}

// mustDial connects, until the test ends.
func mustDial(t *testing.T, addr string) *redisConn {
	t.Helper()
	conn, err := dialRedis(addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// mustDo is do for a connection that must work.
func (c *redisConn) mustDo(t *testing.T, args ...string) string {
	t.Helper()
	reply, err := c.do(args...)
	require.NoError(t, err)
	return reply
}

func TestTheServerAnswersOnBothFronts(t *testing.T) {
	s := startServer(t, "--drain_delay_ms", "0")
	client := newClient(t)
	assert.Equal(t, 200, get(t, client, "http://"+s.host+"/readyz").status)
	answered := ask(t, client, "http://"+s.http+"/v1/rank/complex_dag", "", `{"user_id": 1, "request_id": "r1"}`)
	assert.Equal(t, 200, answered.status)
	a := decode(t, answered.body)
	assert.Equal(t, "r1", a.RequestID)
	assert.Len(t, a.Candidates, 50)
	b := decode(t, mustDial(t, s.resp).mustDo(t, "RANK", "complex_dag", "1"))
	assert.Equal(t, a.Candidates, b.Candidates, "the same over RESP")
	require.NoError(t, s.cmd.Process.Signal(os.Interrupt))
	assert.Equal(t, exitOK, s.awaitEnd(t))
}

// TestServingOverTLS: both fronts use TLS, and show a new certificate to new connections.
func TestServingOverTLS(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	trusted := servetest.WriteCertificate(t, certFile, keyFile, 1)
	s := startServer(t, "--tls_cert", certFile, "--tls_key", keyFile, "--drain_delay_ms", "0")
	check := func(trusted servetest.Certificate, serial int64) *redisConn {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted.Roots}}
		defer transport.CloseIdleConnections()
		reply, err := (&http.Client{Transport: transport, Timeout: patience}).Get("https://" + s.http + "/v1/plans")
		require.NoError(t, err)
		assert.Equal(t, serial, reply.TLS.PeerCertificates[0].SerialNumber.Int64())
		assert.Contains(t, read(t, reply).body, "complex_dag")
		conn, err := tls.Dial("tcp", s.resp, &tls.Config{RootCAs: trusted.Roots})
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		assert.Equal(t, serial, conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64())
		redis := newRedisConn(conn)
		assert.Contains(t, redis.mustDo(t, "RANK", "complex_dag", "1"), `"candidates"`)
		return redis
	}
	first := check(trusted, 1)
	trusted = servetest.WriteCertificate(t, certFile, keyFile, 2)
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGHUP))
	s.log.awaitLine(t, 0, `"msg":"certificate changed"`)
	check(trusted, 2)
	assert.Equal(t, "PONG", first.mustDo(t, "PING"), "an open connection keeps its certificate")
	plain, err := dialRedis(s.resp)
	require.NoError(t, err)
	defer plain.Close()
	_, err = plain.do("PING")
	assert.Error(t, err, "nothing in clear")
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, exitOK, s.awaitEnd(t))
}

// TestAnExpiredCertificate: the log warns of an expired certificate, at the start and when it
// comes later.
func TestAnExpiredCertificate(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	servetest.Issue(t, 1, time.Now().Add(-time.Minute)).Write(t, certFile, keyFile)
	s := startServer(t, "--tls_cert", certFile, "--tls_key", keyFile, "--drain_delay_ms", "0")
	const warning = `"level":"WARN","msg":"the certificate has expired`
	_, first := s.log.awaitLine(t, 0, warning)
	servetest.WriteCertificate(t, certFile, keyFile, 2)
	_, sound := s.log.awaitLine(t, first+1, `"msg":"certificate changed"`)
	servetest.Issue(t, 3, time.Now().Add(-time.Minute)).Write(t, certFile, keyFile)
	_, second := s.log.awaitLine(t, sound+1, warning)
	_, last := s.log.awaitLine(t, sound+1, `"msg":"certificate changed"`)
	assert.Equal(t, last+1, second, "the sound certificate has no warning")
}

// TestPlansChangeWhileTheServerRuns: SIGHUP, POST /reload, rankd reload and --watch read the
// plans again. They load all of them or none. rankd reload --back returns to the plans before.
func TestPlansChangeWhileTheServerRuns(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	plans := filepath.Join(dir, "plans") // a link, as in a folder that Kubernetes mounts
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

	// Each way to reload works.
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

	// A server that watches notices a link that is replaced.
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

// TestReloadWithoutAServer: the command names the server that it could not reach.
func TestReloadWithoutAServer(t *testing.T) {
	o := run(t, nil, "reload", "--admin", "127.0.0.1:1")
	assert.Equal(t, exitFailed, o.status)
	assert.Contains(t, o.stderr, "127.0.0.1:1")
	assert.Equal(t, exitUsage, run(t, nil, "reload", "now").status)
	o = run(t, nil, "serve", "--watch", "--listen", "127.0.0.1:0", "--admin", "off")
	assert.Equal(t, exitUsage, o.status)
	assert.Contains(t, o.stderr, "watch")
}
