//go:build unix

package program

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/testing/servetest"
	"github.com/rankd/rankd/registry"
)

// patientTables is a registry whose Redis may take a minute for an answer.
func patientTables(t *testing.T) string {
	tables := t.TempDir()
	require.NoError(t, os.CopyFS(tables, registry.DefaultTables()))
	path := filepath.Join(tables, "endpoints.dev.toml")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	text = bytes.ReplaceAll(text, []byte("request_timeout_ms = 1000"), []byte("request_timeout_ms = 60000"))
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return tables
}

// heldRedis answers HGETALL when the test says so. asked gets a value for the first HGETALL of
// each connection.
func heldRedis(t *testing.T) (addr string, asked chan struct{}, release func()) {
	asked, held := make(chan struct{}, 16), make(chan struct{})
	addr = serveRedis(t, func(conn redcon.Conn, cmd redcon.Command) {
		if strings.EqualFold(string(cmd.Args[0]), "HGETALL") {
			asked <- struct{}{}
			<-held
			conn.WriteArray(2)
			conn.WriteBulkString("country")
			conn.WriteBulkString("NZ")
			return
		}
		conn.WriteString("OK")
	})
	released := false
	release = func() {
		if !released {
			released = true
			close(held)
		}
	}
	t.Cleanup(release) // before the server of Redis closes, which waits for its connections
	return addr, asked, release
}

// askAside sends a request on another goroutine.
func askAside(t *testing.T, url string) <-chan httpReply {
	replied := make(chan httpReply, 1)
	client := newClient(t)
	go func() {
		defer close(replied)
		reply, err := client.Post(url, "application/json", strings.NewReader(`{"user_id": 7, "request_id": "r7"}`))
		if err != nil {
			return
		}
		defer reply.Body.Close()
		body, _ := io.ReadAll(reply.Body) // is cut short if the connection broke
		replied <- httpReply{reply.StatusCode, string(body), reply.Close}
	}()
	return replied
}

// TestTheEndOfAServer: SIGTERM first makes the server not ready, while it goes on. It then
// answers what is in flight, on both fronts, and ends.
func TestTheEndOfAServer(t *testing.T) {
	t.Parallel()
	redis, asked, release := heldRedis(t)
	dir := t.TempDir()
	writePlan(t, dir, "fixed", fixedPlan("fixed"))
	viewer, err := os.ReadFile("../examples/demo/artifacts/simple_viewer.plan.json")
	require.NoError(t, err)
	writePlan(t, dir, "simple_viewer", string(viewer))
	s := startServer(t, "--plan_dir", dir, "--redis", redis, "--registry_dir", patientTables(t), "--drain_delay_ms", "2000", "--shutdown_grace_ms", "60000")
	client := newClient(t)
	inFlight := askAside(t, "http://"+s.http+"/v1/rank/simple_viewer")
	awaitAsked(t, asked)
	pending := mustDial(t, s.resp)
	reply := make(chan string, 1)
	go func() {
		text, _ := pending.do("RANK", "simple_viewer", "8")
		reply <- text
	}()
	s.awaitInFlight(t, 2)
	idle := mustDial(t, s.resp)
	require.Equal(t, "PONG", idle.mustDo(t, "PING"))

	keptAlive := newClient(t)
	assert.False(t, ask(t, keptAlive, "http://"+s.http+"/v1/rank/fixed", "", `{"user_id": 1}`).last)
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	s.log.awaitLine(t, 0, `"msg":"draining"`)
	assert.Equal(t, 503, get(t, client, "http://"+s.host+"/readyz").status)
	assert.Equal(t, 200, get(t, client, "http://"+s.host+"/livez").status, "it lives")
	assert.True(t, ask(t, keptAlive, "http://"+s.http+"/v1/rank/fixed", "", `{"user_id": 1}`).last, "Connection: close, within the drain delay")
	answered := ask(t, client, "http://"+s.http+"/v1/rank/fixed", "", `{"user_id": 1}`)
	assert.Equal(t, 200, answered.status, "the server goes on")
	assert.Contains(t, mustDial(t, s.resp).mustDo(t, "RANK", "fixed", "1"), `"candidates"`, "for new connections, too")

	// The ports are closed once the idle connection is.
	_, err = idle.replies.ReadByte()
	assert.Error(t, err)
	select {
	case r := <-inFlight:
		t.Fatalf("an answer before Redis had one: %v", r)
	case <-s.ended:
		t.Fatal("the server ended with requests in flight")
	default:
	}
	release()
	r := <-inFlight
	assert.Equal(t, 200, r.status)
	assert.Contains(t, r.body, `"candidates":[{"id":7,"country":"NZ"}]`)
	assert.True(t, r.last, "the answer ends its connection")
	assert.Contains(t, <-reply, `"candidates":[{"id":8,"country":"NZ"}]`)
	assert.Equal(t, exitOK, s.awaitEnd(t))
	_, err = net.Dial("tcp", s.http)
	assert.Error(t, err, "the port is closed")
}

func TestASecondSignalEndsTheServerAtOnce(t *testing.T) {
	t.Parallel()
	redis, asked, _ := heldRedis(t)
	s := startServer(t, "--redis", redis, "--registry_dir", patientTables(t), "--drain_delay_ms", "600000")
	inFlight := askAside(t, "http://"+s.http+"/v1/rank/simple_viewer")
	awaitAsked(t, asked)
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	s.log.awaitLine(t, 0, `"msg":"draining"`)
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, -1, s.awaitEnd(t), "by the signal")
	_, answered := <-inFlight
	assert.False(t, answered)
}

func TestAGraceThatIsTooShort(t *testing.T) {
	t.Parallel()
	redis, asked, _ := heldRedis(t)
	s := startServer(t, "--redis", redis, "--registry_dir", patientTables(t), "--drain_delay_ms", "0", "--shutdown_grace_ms", "300")
	pending := mustDial(t, s.resp)
	failed := make(chan error, 1)
	go func() {
		_, err := pending.do("RANK", "simple_viewer", "8")
		failed <- err
	}()
	awaitAsked(t, asked)
	inFlight := askAside(t, "http://"+s.http+"/v1/rank/simple_viewer")
	s.awaitInFlight(t, 2)
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, exitFailed, s.awaitEnd(t))
	assert.Contains(t, s.log.text(), "rankd: --shutdown_grace_ms was too short for 2 requests")
	r := <-inFlight
	assert.Equal(t, 503, r.status, r.body)
	assert.Contains(t, r.body, `"error":"Shutting down"`)
	assert.Error(t, <-failed, "the connection is closed")
}

// TestRequestsThatWaitAreLeft: requests that were not admitted count, too.
func TestRequestsThatWaitAreLeft(t *testing.T) {
	t.Parallel()
	redis, asked, _ := heldRedis(t)
	s := startServer(t, "--redis", redis, "--registry_dir", patientTables(t), "--max_inflight", "1", "--drain_delay_ms", "0", "--shutdown_grace_ms", "300")
	replies := []<-chan httpReply{askAside(t, "http://"+s.http+"/v1/rank/simple_viewer")}
	awaitAsked(t, asked)
	for range 2 {
		replies = append(replies, askAside(t, "http://"+s.http+"/v1/rank/simple_viewer"))
	}
	client := newClient(t)
	await(t, func() bool {
		return strings.Contains(get(t, client, "http://"+s.host+"/metrics").body, "\nrankd_requests_waiting 2\n")
	})
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, exitFailed, s.awaitEnd(t))
	s.log.awaitLine(t, 0, `"msg":"ended"`, `"requests_left":3`)
	for _, reply := range replies {
		assert.Equal(t, 503, (<-reply).status)
	}
}

// TestIdleTimeoutsAreOfTheirFronts: --resp_idle_timeout_ms closes an idle RESP client, but not
// an idle HTTP client.
func TestIdleTimeoutsAreOfTheirFronts(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--resp_idle_timeout_ms", "50", "--drain_delay_ms", "0")
	kept, err := net.Dial("tcp", s.http)
	require.NoError(t, err)
	defer kept.Close()
	idle := mustDial(t, s.resp)
	require.NoError(t, idle.SetDeadline(time.Now().Add(patience)))
	_, err = idle.replies.ReadByte()
	assert.ErrorIs(t, err, io.EOF)
	_, err = io.WriteString(kept, "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.NoError(t, err)
	reply, err := http.ReadResponse(bufio.NewReader(kept), nil)
	require.NoError(t, err)
	assert.Equal(t, 200, reply.StatusCode)
	require.NoError(t, reply.Body.Close())
}

// TestTokensInClear: the log warns of a front that other machines reach without TLS.
func TestTokensInClear(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens.toml")
	require.NoError(t, os.WriteFile(tokens, []byte(servetest.Token("a", "token-a", servetest.Plans("*"))), 0o600))
	s := startServer(t, "--tokens", tokens, "--listen", "0.0.0.0:0", "--drain_delay_ms", "0")
	s.log.awaitLine(t, 0, `"msg":"ready"`)
	const warning = "tokens travel in clear"
	assert.Equal(t, 1, strings.Count(s.log.text(), warning), s.log.text())
	s.log.awaitLine(t, 0, warning, `"front":"http"`)
}

// TestATakenPort: the server does not start. The script refused has other such servers.
func TestATakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for front, args := range map[string]string{"listen": "--admin off", "admin": "--listen 127.0.0.1:0"} {
		o := run(t, nil, append([]string{"serve", "--resp", "127.0.0.1:0", "--" + front, taken.Addr().String()}, strings.Fields(args)...)...)
		assert.Equal(t, exitFailed, o.status, o.stderr)
		assert.Empty(t, o.stdout)
		assert.Contains(t, o.stderr, "rankd: --"+front+": listen tcp "+taken.Addr().String()+": bind: address already in use")
	}
}

// TestTokensChangeWhileTheServerRuns: a token that is removed from the file stops working, even
// on open connections.
func TestTokensChangeWhileTheServerRuns(t *testing.T) {
	dir := t.TempDir()
	plans, tokens := filepath.Join(dir, "plans"), filepath.Join(dir, "tokens.toml")
	require.NoError(t, os.Mkdir(plans, 0o755))
	writePlan(t, plans, "fixed", fixedPlan("fixed"))
	replace := func(text string) { servetest.Replace(t, tokens, text) }
	replace(servetest.Token("a", "token-a", servetest.Plans("*")) + servetest.Token("b", "token-b", servetest.Plans("other")))
	s := startServer(t, "--env", "test", "--plan_dir", plans, "--tokens", tokens, "--drain_delay_ms", "0")
	client := newClient(t)
	url := "http://" + s.http + "/v1/rank/fixed"
	status := func(token string) int { return ask(t, client, url, token, `{"user_id": 1}`).status }
	assert.Equal(t, 401, status(""))
	assert.Equal(t, 401, status("b0gus"))
	assert.Equal(t, 403, status("token-b"), "another plan")
	assert.Equal(t, 200, status("token-a"))
	conn := mustDial(t, s.resp)
	assert.Regexp(t, "^-NOAUTH", conn.mustDo(t, "RANK", "fixed", "1"))
	assert.Regexp(t, "^-WRONGPASS", conn.mustDo(t, "AUTH", "b0gus"))
	assert.Equal(t, "OK", conn.mustDo(t, "AUTH", "a", "token-a"))
	assert.Contains(t, conn.mustDo(t, "RANK", "fixed", "1"), `"candidates"`)

	// A change of the file counts at once.
	replace(servetest.Token("b", "token-b", servetest.Plans("*")))
	_, seen := s.log.awaitLine(t, 0, `"msg":"tokens changed"`)
	assert.Equal(t, 401, status("token-a"))
	assert.Equal(t, 200, status("token-b"))
	assert.Regexp(t, "^-NOAUTH", conn.mustDo(t, "RANK", "fixed", "1"), "the token has been revoked")

	// A broken file changes nothing. SIGHUP reads it again.
	replace("[[token")
	_, seen = s.log.awaitLine(t, seen+1, `"msg":"the tokens stay as they were"`, `"after":"a change of a file"`)
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGHUP))
	s.log.awaitLine(t, seen+1, `"msg":"the tokens stay as they were"`, `"after":"SIGHUP"`)
	assert.Equal(t, 200, status("token-b"))

	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, exitOK, s.awaitEnd(t))
	for _, token := range []string{"token-a", "token-b", "b0gus", servetest.Digest("token-a"), servetest.Digest("token-b")} {
		assert.NotContains(t, s.log.text(), token, "no log line has a token")
	}
}

// TestFlagsGrant: a field without its flag is refused.
func TestFlagsGrant(t *testing.T) {
	ask := func(t *testing.T, s *serverProcess, document string) httpReply {
		return ask(t, newClient(t), "http://"+s.http+"/v1/rank/concat_plan", "", document)
	}
	documents := map[string]string{
		"scheduling":      `{"user_id": 1, "scheduling": "offload_all"}`,
		"trace":           `{"user_id": 1, "trace": true}`,
		"explain":         `{"user_id": 1, "explain": true}`,
		"param_overrides": `{"user_id": 1, "param_overrides": {"weight": 0.5}}`,
	}
	closed := startServer(t, "--drain_delay_ms", "0")
	open := startServer(t, "--drain_delay_ms", "0", "--allow_request_scheduling", "--allow_request_trace", "--allow_request_explain", "--allow_overrides", "w*")
	other := startServer(t, "--drain_delay_ms", "0", "--allow_plans", "diamond", "--allow_overrides", "x")
	for field, document := range documents {
		refused := ask(t, closed, document)
		assert.Equal(t, 403, refused.status, field)
		assert.Contains(t, refused.body, field)
		assert.Equal(t, 200, ask(t, open, document).status, field)
		assert.Equal(t, 403, ask(t, other, document).status, field)
	}
	assert.Equal(t, 200, ask(t, closed, `{"user_id": 1}`).status)
	assert.Equal(t, 403, ask(t, other, `{"user_id": 1}`).status, "another plan")
}

// TestTheBlockingEnginesServe serves with engines without a loop. The RESP front then brings
// its own.
func TestTheBlockingEnginesServe(t *testing.T) {
	for _, engine := range []string{cmdline.Pool, cmdline.Sequential} {
		s := startServer(t, "--engine", engine, "--admin", "off", "--drain_delay_ms", "0")
		r := ask(t, newClient(t), "http://"+s.http+"/v1/rank/diamond", "", `{"user_id": 3}`)
		assert.Equal(t, 200, r.status, engine)
		assert.Contains(t, r.body, `"candidates"`)
		assert.Contains(t, mustDial(t, s.resp).mustDo(t, "RANK", "diamond", "3"), `"candidates"`)
		require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
		assert.Equal(t, exitOK, s.awaitEnd(t))
	}
}

// TestAServerInProcess runs the command in this process, so that the check of goroutines after
// every test covers it.
func TestAServerInProcess(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stderr, write, err := os.Pipe()
	require.NoError(t, err)
	log := followLog(stderr)
	status := make(chan int, 1)
	go func() {
		p := program{stdin: strings.NewReader(""), stdout: &bytes.Buffer{}, stderr: write, tune: func(int) {}}
		status <- p.run(ctx, []string{"serve", "--log", "json", "--listen", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--drain_delay_ms", "0"})
		_ = write.Close()
	}()
	http := log.await(t, "ready", `"front":"http"`)["address"].(string)
	resp := log.await(t, "ready", `"front":"resp"`)["address"].(string)
	client := newClient(t)
	assert.Equal(t, 200, ask(t, client, "http://"+http+"/v1/rank/diamond", "", `{"user_id": 3}`).status)
	assert.Contains(t, mustDial(t, resp).mustDo(t, "RANK", "diamond", "3"), `"candidates"`)
	cancel()
	assert.Equal(t, exitOK, <-status)
	<-log.end
	require.NoError(t, stderr.Close())
}
