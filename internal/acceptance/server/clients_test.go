package server

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/bench/caller"
)

// answer is the part of an answer that the tests check.
type answer struct {
	RequestID  string           `json:"request_id"`
	Candidates []map[string]any `json:"candidates"`
	Error      string           `json:"error"`
}

func decode(t testing.TB, text string) (a answer) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &a), text)
	return a
}

// call runs a program and returns its output, with stderr after stdout.
func call(t testing.TB, stdin, program string, args ...string) (out string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdin = strings.NewReader(stdin)
	text, err := cmd.CombinedOutput()
	return string(text), err
}

func port(t testing.TB, addr string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	return port
}

func TestRedisCLI(t *testing.T) {
	cli := installed(t, "redis-cli")
	server := demo(t)
	for _, protocol := range []string{"-2", "-3"} {
		t.Run("RESP"+protocol, func(t *testing.T) {
			run := func(stdin string, args ...string) string {
				t.Helper()
				out, err := call(t, stdin, cli, append([]string{"-p", port(t, server.RESP), protocol, "-e"}, args...)...)
				require.NoError(t, err, out)
				return out
			}
			assert.Equal(t, "PONG\n", run("", "PING"))
			assert.Len(t, decode(t, run("", "RANK", "complex_dag", "1")).Candidates, 50)
			assert.Equal(t, "cli", decode(t, run("", "RANK", "simple_viewer", "1", `{"request_id": "cli"}`)).RequestID)
			assert.Contains(t, strings.Fields(run("", "PLANS")), "complex_dag")
			assert.Contains(t, run("", "INFO"), "rankd")

			many := strings.Split(strings.TrimSpace(run("", "RANK.MANY", "simple_viewer", "1", "2", "3")), "\n")
			require.Len(t, many, 3)
			for i, line := range many {
				assert.EqualValues(t, i+1, decode(t, line).Candidates[0]["id"])
			}

			var commands strings.Builder // one after the other on one connection
			for user := range 20 {
				fmt.Fprintf(&commands, "RANK simple_viewer %d\n", user+1)
			}
			lines := strings.Split(strings.TrimSpace(run(commands.String())), "\n")
			require.Len(t, lines, 20)
			for i, line := range lines {
				assert.EqualValues(t, i+1, decode(t, line).Candidates[0]["id"])
			}

			out, err := call(t, "", cli, "-p", port(t, server.RESP), protocol, "-e", "RANK", "nowhere", "1")
			assert.Error(t, err, "-e: an error reply is an exit status")
			assert.Contains(t, out, "NOPLAN")
		})
	}
	t.Run("Pipe", func(t *testing.T) {
		commands := strings.Repeat("*3\r\n$4\r\nRANK\r\n$13\r\nsimple_viewer\r\n$1\r\n1\r\n", 1000)
		out, err := call(t, commands, cli, "-p", port(t, server.RESP), "--pipe")
		require.NoError(t, err, out)
		assert.Contains(t, out, "errors: 0, replies: 1000")
	})
}

func TestPythonRedis(t *testing.T) {
	python := os.Getenv("RANKD_REDIS_PYTHON")
	if python == "" {
		python = "/usr/bin/python3"
	}
	if out, err := call(t, "", python, "-c", "import redis"); err != nil {
		missing(t, fmt.Sprintf("%s: %v: %s", python, err, out))
	}
	server := demo(t)
	out, err := call(t, "", python, filepath.Join("testdata", "client.py"), port(t, server.RESP))
	require.NoError(t, err, out)
	assert.Equal(t, "ok\n", out)
}

func TestCurl(t *testing.T) {
	curl := installed(t, "curl")
	server := demo(t)
	base := "http://" + server.HTTP
	run := func(args ...string) string {
		t.Helper()
		out, err := call(t, "", curl, append([]string{"-sS", "--max-time", "20"}, args...)...)
		require.NoError(t, err, out)
		return out
	}
	assert.Len(t, decode(t, run("-d", `{"user_id": 1}`, base+"/v1/rank/complex_dag")).Candidates, 50)
	assert.Equal(t, "curl", decode(t, run("-d", `{"user_id": 1, "plan": "diamond", "request_id": "curl"}`, base+"/v1/rank")).RequestID)
	assert.Contains(t, run(base+"/v1/plans"), "complex_dag")
	assert.Contains(t, run(base+"/openapi.json"), "/v1/batch")

	// Two requests share a connection.
	out := run("-w", " %{http_code} %{num_connects}\n", "-d", `{"user_id": 1}`, base+"/v1/rank/simple_viewer", base+"/v1/rank/simple_viewer")
	assert.Contains(t, out, " 200 1\n")
	assert.Contains(t, out, " 200 0\n")

	for name, tc := range map[string]struct {
		args   []string
		status string
	}{
		"UnknownPlan":  {[]string{"-d", `{"user_id": 1}`, base + "/v1/rank/nowhere"}, "404"},
		"UnknownPath":  {[]string{base + "/v2"}, "404"},
		"BadDocument":  {[]string{"-d", "oops", base + "/v1/rank/diamond"}, "400"},
		"Get":          {[]string{base + "/v1/rank/diamond"}, "405"},
		"Chunked":      {[]string{"-H", "Transfer-Encoding: chunked", "-d", `{"user_id": 1}`, base + "/v1/rank/simple_viewer"}, "200"},
		"Expect":       {[]string{"-H", "Expect: 100-continue", "-d", `{"user_id": 1}`, base + "/v1/rank/simple_viewer"}, "200"},
		"HTTP10":       {[]string{"--http1.0", "-d", `{"user_id": 1}`, base + "/v1/rank/simple_viewer"}, "200"},
		"ShortTimeout": {[]string{"-H", "X-Request-Timeout-Ms: 20", "-d", `{"user_id": 1}`, base + "/v1/rank/parallel_sleep_plan"}, "504"},
	} {
		assert.Equal(t, tc.status, run(append([]string{"-o", "/dev/null", "-w", "%{http_code}"}, tc.args...)...), name)
	}

	var lines, users strings.Builder
	for user := range 100 {
		fmt.Fprintf(&lines, "{\"user_id\": %d, \"request_id\": \"b%d\"}\n", user+1, user+1)
		fmt.Fprintf(&users, "b%d\n", user+1)
	}
	file := filepath.Join(t.TempDir(), "batch.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(lines.String(), "}", `, "plan": "simple_viewer"}`)), 0o600))
	var order strings.Builder
	for line := range strings.Lines(run("--data-binary", "@"+file, base+"/v1/batch")) {
		order.WriteString(decode(t, line).RequestID + "\n")
	}
	assert.Equal(t, users.String(), order.String(), "in order")
}

// The HTTP clients are those of Python and Node.js, and h2load, which pipelines.
func TestClientsOfHTTP(t *testing.T) {
	server := demo(t)
	for program, script := range map[string]string{"python3": "client_http.py", "node": "client_http.js"} {
		t.Run(program, func(t *testing.T) {
			out, err := call(t, "", installed(t, program), filepath.Join("testdata", script), port(t, server.HTTP))
			require.NoError(t, err, out)
			assert.Equal(t, "ok\n", out)
		})
	}
	t.Run("h2load", func(t *testing.T) {
		document := filepath.Join(t.TempDir(), "document")
		require.NoError(t, os.WriteFile(document, []byte(`{"user_id": 1}`), 0o600))
		out, err := call(t, "", installed(t, "h2load"), "--h1", "-c", "8", "-m", "16", "-n", "2000", "-d", document, "http://"+server.HTTP+"/v1/rank/simple_viewer")
		require.NoError(t, err, out)
		assert.Contains(t, out, "2000 succeeded, 0 failed, 0 errored, 0 timeout")
		assert.Contains(t, out, "status codes: 2000 2xx")
	})
}

// All requests of the load generators that rankd bench serve calls succeed. rankd understands
// their figures.
func TestForeignLoadGenerators(t *testing.T) {
	for _, f := range caller.Foreigners() {
		t.Run(f.Name, func(t *testing.T) {
			installed(t, f.Program)
			t.Parallel() // they mostly wait for their seconds to pass
			server := demo(t)
			c := caller.Call{
				Addr: server.RESP, Plan: "simple_viewer", User: 1, InFlight: 32, Requests: 2000, Duration: time.Second, Folder: t.TempDir(),
			}
			if f.Front == caller.HTTP {
				c.Addr = server.HTTP
			}
			seen, err := f.Run(t.Context(), &c)
			require.NoError(t, err)
			assert.Greater(t, seen.Requests, int64(10))
			assert.Positive(t, seen.P50)
			assert.Positive(t, seen.P99)

			c.Plan, c.InFlight = "nowhere", 1
			_, err = f.Run(t.Context(), &c)
			assert.Error(t, err, "a client whose requests fail says so")
		})
	}
}
