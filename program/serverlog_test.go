//go:build unix

package program

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/servetest"
)

// startMute starts "rankd serve" with stderr in the hands of the test, and waits until it is
// ready.
func startMute(t *testing.T, stderr *os.File, args ...string) *serverProcess {
	t.Helper()
	http, admin := "127.0.0.1:"+fixedPort(t), "127.0.0.1:"+fixedPort(t)
	s := newServerProcess(append(args, "--listen", http, "--admin", admin)...)
	s.http, s.host = http, admin
	s.log = &logLines{end: make(chan struct{})}
	s.cmd.Stderr = stderr
	require.NoError(t, s.cmd.Start())
	go func() {
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.ended
	})
	client := newClient(t)
	await(t, func() bool {
		reply, err := client.Get("http://" + s.host + "/readyz")
		return err == nil && read(t, reply).status == 200
	})
	return s
}

// TestTheReadyLineNamesTheEndpoints: who reads the log of a start sees where requests will go, without logins.
func TestTheReadyLineNamesTheEndpoints(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("../registry/tables")))
	const row = "[[endpoint]]\nid = %q\nname = %q\nkind = %q\nurl = %q\n[endpoint.policy]\nmax_inflight = 1\nconnect_timeout_ms = 1\nrequest_timeout_ms = 1\n"
	text := fmt.Sprintf(row, "ep_0001", "redis_default", "redis", "rediss+cluster://u:c4n4ry@h:1,i:2?tls_ca=ca.pem") +
		fmt.Sprintf(row, "ep_0002", "http_api", "http", "https://h/p?token=c4n4ry")
	for _, env := range []string{"dev", "test", "prod"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "endpoints."+env+".toml"), []byte(text), 0o644))
	}
	s := launchServer(t, "--env", "prod", "--registry_dir", dir, "--redis", "redis://u:c4n4ry@h:1/3", "--resp", "off", "--admin", "off")
	ready := s.log.await(t, "ready", `"msg":"ready"`)
	assert.Equal(t, map[string]any{"redis_default": "h:1", "http_api": "https://h:443/p"}, ready["endpoints"])
	assert.NotContains(t, fmt.Sprint(ready), "c4n4ry")
}

// await waits for a condition that no log reports.
func await(t *testing.T, met func() bool) {
	t.Helper()
	require.Eventually(t, met, patience, 10*time.Millisecond)
}

// fullPipe returns a pipe that is full.
func fullPipe(t *testing.T) (read, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = read.Close(), write.Close() })
	require.NoError(t, write.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
	_, err = write.Write(make([]byte, 1<<20))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	return read, write
}

// TestALogThatNobodyReads: stderr is a full pipe from the first line on. Tokens and
// certificates are still read again, each time. SIGTERM ends the server properly.
func TestALogThatNobodyReads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plans, tokens := filepath.Join(dir, "plans"), filepath.Join(dir, "tokens.toml")
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.Mkdir(plans, 0o755))
	writePlan(t, plans, "fixed", fixedPlan("fixed"))
	replace := func(text string) { servetest.Replace(t, tokens, text) }
	a, b, c := servetest.Token("a", "token-a", servetest.Plans("*")), servetest.Token("b", "token-b", servetest.Plans("*")), servetest.Token("c", "token-c", servetest.Plans("*"))
	replace(a + b + c)
	servetest.WriteCertificate(t, certFile, keyFile, 1)
	_, full := fullPipe(t)
	s := startMute(t, full, "--env", "test", "--plan_dir", plans, "--tokens", tokens, "--tls_cert", certFile, "--tls_key", keyFile, "--drain_delay_ms", "600")
	client, serial := newClient(t), int64(0)
	client.Transport = &http.Transport{
		DisableKeepAlives: true, // Each request has a handshake.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(state tls.ConnectionState) error {
			serial = state.PeerCertificates[0].SerialNumber.Int64()
			return nil
		}},
	}
	status := func(token string) int {
		return ask(t, client, "https://"+s.http+"/v1/rank/fixed", token, `{"user_id": 1}`).status
	}
	assert.Equal(t, []int{200, 200, 200, 401}, []int{status("token-a"), status("token-b"), status("token-c"), status("b0gus")})
	replace(b + c)
	await(t, func() bool { return status("token-a") == 401 })
	replace(c)
	await(t, func() bool { return status("token-b") == 401 })
	for want := int64(2); want <= 3; want++ {
		servetest.WriteCertificate(t, certFile, keyFile, want)
		await(t, func() bool { return status("token-c") == 200 && serial == want })
	}
	for range 20 { // lines about failed requests
		assert.Equal(t, 401, status("b0gus"))
	}
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	await(t, func() bool {
		reply, err := newClient(t).Get("http://" + s.host + "/readyz")
		return err == nil && read(t, reply).status == 503
	})
	assert.Equal(t, exitOK, s.awaitEnd(t))
}

// TestALogWhoseReaderHasGone: writes to stderr fail, and would end the process by SIGPIPE.
func TestALogWhoseReaderHasGone(t *testing.T) {
	t.Parallel()
	reader, stderr, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	defer stderr.Close()
	s := startMute(t, stderr, "--drain_delay_ms", "0")
	client := newClient(t)
	for range 3 {
		assert.Equal(t, 400, ask(t, client, "http://"+s.http+"/v1/rank/diamond", "", "{").status)
	}
	await(t, func() bool {
		return strings.Contains(get(t, client, "http://"+s.host+"/metrics").body, `rankd_output_write_errors_total{output="log"} `)
	})
	assert.NotContains(t, get(t, client, "http://"+s.host+"/metrics").body, `rankd_output_write_errors_total{output="log"} 0`)
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, exitOK, s.awaitEnd(t))
}

// TestTracesThatNobodyReads: the pipe of --trace_file fills up. The server counts the traces
// that are lost, serves on and ends.
func TestTracesThatNobodyReads(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	s := startServer(t, "--trace_file", pipe, "--drain_delay_ms", "0")
	client := newClient(t)
	const dropped = `rankd_output_lines_dropped_total{output="trace_file"}`
	require.Contains(t, get(t, client, "http://"+s.host+"/metrics").body, dropped+" 0\n")
	many := strings.Repeat(`{"user_id": 1, "plan": "concat_plan"}`+"\n", 100)
	await(t, func() bool {
		require.Equal(t, 200, ask(t, client, "http://"+s.http+"/v1/batch", "", many).status)
		return !strings.Contains(get(t, client, "http://"+s.host+"/metrics").body, dropped+" 0\n")
	})
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, exitFailed, s.awaitEnd(t), "traces are lost")
	assert.Contains(t, s.log.text(), "traces came faster than they could be written")
	assert.Contains(t, s.log.text(), "it took too little in 1s")
}

// TestTracesThatCannotBeWritten: the log says so at once.
func TestTracesThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this system has no disk that is always full")
	}
	s := startServer(t, "--trace_file", "/dev/full", "--drain_delay_ms", "0")
	client := newClient(t)
	assert.Equal(t, 200, ask(t, client, "http://"+s.http+"/v1/rank/complex_dag", "", `{"user_id": 1}`).status)
	s.log.awaitLine(t, 0, `"msg":"traces cannot be written, and are lost"`, "/dev/full", "no space left")
	assert.Contains(t, get(t, client, "http://"+s.host+"/metrics").body, `rankd_output_write_errors_total{output="trace_file"} 1`)
}

// TestTheEndOfStdinWithoutReaders: diagnostics or traces that nobody reads do not delay the
// end.
func TestTheEndOfStdinWithoutReaders(t *testing.T) {
	t.Parallel()
	_, full := fullPipe(t)
	var stdout bytes.Buffer
	p := program{stdin: strings.NewReader("{}\n"), stdout: &stdout, stderr: full, tune: func(int) {}}
	require.NoError(t, full.SetWriteDeadline(time.Time{}))
	assert.Equal(t, exitFailed, p.run(t.Context(), []string{"--plan_name", "diamond", "--metrics"}))
	assert.Contains(t, stdout.String(), "user_id")
	require.NoError(t, full.Close()) // ends the write that waits
}
