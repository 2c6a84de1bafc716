//go:build unix

package program

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/testworld"
)

// servedPlan is a plan without Redis, in a folder of its own.
func servedPlan(t *testing.T) (folder string) {
	folder = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "p.plan.json"), []byte(`{"schema_version": 1, "plan_name": "p", "outputs": ["rows"],
		"nodes": [{"node_id": "rows", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 40}}]}`), 0o644))
	return folder
}

// linesOf returns the engine request ids of all lines in a folder, and how many lines are cut off. Each whole line is valid.
func linesOf(t *testing.T, folder string) (ids []string, cut int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if !strings.HasSuffix(line, "\n") {
				cut++
				continue
			}
			ids = append(ids, servedID(t, line))
		}
	}
	return ids, cut
}

// servedID returns the engine request id of a valid line.
func servedID(t *testing.T, line string) string {
	t.Helper()
	var l struct {
		Version   int    `json:"served_log"`
		ID        string `json:"engine_request_id"`
		Delivered bool
		Outputs   []struct{ IDs []int }
	}
	require.NoError(t, json.Unmarshal([]byte(line), &l), line)
	require.Equal(t, 1, l.Version)
	require.True(t, l.Delivered)
	require.Len(t, l.Outputs, 1)
	require.Len(t, l.Outputs[0].IDs, 40)
	return l.ID
}

// engineIDs returns the ids of answers, a line each.
func engineIDs(text string) (ids []string) {
	for _, m := range regexp.MustCompile(`"engine_request_id": ?"([^"]+)"`).FindAllStringSubmatch(text, -1) {
		ids = append(ids, m[1])
	}
	return ids
}

// TestServedLogOfEachFront: each front leaves a line for each answer, of the same id.
func TestServedLogOfEachFront(t *testing.T) {
	plans := servedPlan(t)
	requests := strings.Repeat(`{"user_id": 7}`+"\n", 3)
	command := func(stdin string, args ...string) func(t *testing.T, folder string) string {
		return func(t *testing.T, folder string) string {
			run := exec.Command(os.Args[0], append(args, "--plan_dir", plans, "--plan_name", "p", "--served_log", folder)...)
			run.Env, run.Stdin = append(os.Environ(), "RANKD_TEST_RUN_MAIN=1"), strings.NewReader(stdin)
			var stderr strings.Builder
			run.Stderr = &stderr
			out, err := run.Output()
			require.NoError(t, err, stderr.String())
			return string(out)
		}
	}
	server := func(asked func(t *testing.T, s *serverProcess) string) func(t *testing.T, folder string) string {
		return func(t *testing.T, folder string) (answers string) {
			s := startServer(t, "--drain_delay_ms", "0", "--plan_dir", plans, "--plan_name", "p", "--served_log", folder)
			for range 3 {
				answers += asked(t, s)
			}
			require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
			require.Equal(t, exitOK, s.awaitEnd(t))
			return answers
		}
	}
	file := filepath.Join(t.TempDir(), "requests.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(requests), 0o644))
	out := filepath.Join(t.TempDir(), "answers.jsonl")
	for name, run := range map[string]func(t *testing.T, folder string) string{
		"stdin": command(requests),
		"batch": func(t *testing.T, folder string) string {
			command("", "batch", "--users", file, "--users_form", "jsonl", "--out", out)(t, folder)
			text, err := os.ReadFile(out)
			require.NoError(t, err)
			return string(text)
		},
		"HTTP": server(func(t *testing.T, s *serverProcess) string {
			return ask(t, newClient(t), "http://"+s.http+"/v1/rank", "", `{"user_id": 7}`).body
		}),
		"RESP": server(func(t *testing.T, s *serverProcess) string { return mustDial(t, s.resp).mustDo(t, "RANK", "p", "7") }),
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "served")
			answered := engineIDs(run(t, folder))
			require.Len(t, answered, 3)
			lines, cut := linesOf(t, folder)
			assert.ElementsMatch(t, answered, lines)
			assert.Zero(t, cut)
		})
	}
}

// TestServedLogOfAProcessThatEnds: whole lines are valid, and what was lost is what the counter says. kill -9 loses what the
// last milliseconds have answered, and nobody can count it.
func TestServedLogOfAProcessThatEnds(t *testing.T) {
	plans := servedPlan(t)
	const answers = 500
	for _, c := range []struct {
		name   string
		signal os.Signal // nil: stdin ends
		limit  string    // the command before rankd
	}{
		{name: "kill -9", signal: syscall.SIGKILL},
		{name: "SIGTERM", signal: syscall.SIGTERM},
		{name: "the end of stdin"},
		// A file of more than 64 blocks of 512 bytes is refused, as on a full disk; the signal that comes with it is ignored.
		{name: "full disk", limit: "trap '' XFSZ; ulimit -f 64; "},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "served")
			rankd := exec.Command("sh", "-c", c.limit+`exec "$0" "$@"`, os.Args[0], "--plan_dir", plans, "--plan_name", "p", "--served_log", folder)
			rankd.Env = append(os.Environ(), "RANKD_TEST_RUN_MAIN=1")
			var stderr strings.Builder
			rankd.Stderr = &stderr
			stdin, err := rankd.StdinPipe()
			require.NoError(t, err)
			stdout, err := rankd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, rankd.Start())
			go func() {
				for range answers {
					_, _ = io.WriteString(stdin, `{"user_id": 7}`+"\n") // It may be dead.
				}
				if c.signal == nil {
					_ = stdin.Close()
				}
			}()
			var answered []string
			for lines := bufio.NewScanner(stdout); lines.Scan(); {
				answered = append(answered, engineIDs(lines.Text())...)
				if len(answered) == answers && c.signal != nil {
					require.NoError(t, rankd.Process.Signal(c.signal))
				}
			}
			err = rankd.Wait()
			assert.Len(t, answered, answers)
			lines, cut := linesOf(t, folder)
			assert.Subset(t, answered, lines)
			seen := map[string]bool{}
			for _, id := range lines {
				seen[id] = true
			}
			assert.Len(t, seen, len(lines), "no line stands twice")
			if c.signal == syscall.SIGKILL {
				assert.Error(t, err)
				assert.LessOrEqual(t, cut, 1)
				return
			}
			require.NoError(t, err, stderr.String())
			assert.Zero(t, cut)
			lost := 0
			if m := regexp.MustCompile(`--served_log: (\d+) lines are lost of 500`).FindStringSubmatch(stderr.String()); m != nil {
				lost, err = strconv.Atoi(m[1])
				require.NoError(t, err)
			}
			assert.Equal(t, answers, len(lines)+lost, stderr.String())
			assert.Equal(t, c.limit != "", lost > 0, stderr.String())
			if c.limit != "" {
				assert.Equal(t, 1, strings.Count(stderr.String(), "lines of what was served are lost"), "one line says why")
			}
		})
	}
}

// TestServedLogInAStream: lines are entries of a real Redis. While it has no room for them lines are lost, and counted.
func TestServedLogInAStream(t *testing.T) {
	server := testworld.StartRedis(t)
	client := mustDial(t, server.Addr)
	require.Equal(t, "OK", client.mustDo(t, "SELECT", "2"))
	s := startServer(t, "--drain_delay_ms", "0", "--plan_dir", servedPlan(t), "--plan_name", "p",
		"--served_log", "redis://"+server.Addr+"/2", "--served_log_key", "shown", "--served_log_entries", "1000")
	web := newClient(t)
	var answered []string
	counter := func(name string) (n int) {
		for _, m := range regexp.MustCompile(`(?m)^`+name+`\{output="served_log"[^}]*\} (\d+)`).FindAllStringSubmatch(get(t, web, "http://"+s.host+"/metrics").body, -1) {
			value, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			n += value
		}
		return n
	}
	lost := func() int {
		return counter("rankd_output_lines_dropped_total") + counter("rankd_output_write_errors_total")
	}
	serve := func(n int) {
		for range n {
			answered = append(answered, engineIDs(ask(t, web, "http://"+s.http+"/v1/rank", "", `{"user_id": 7}`).body)...)
		}
		assert.Eventually(t, func() bool {
			n, err := strconv.Atoi(strings.TrimPrefix(client.mustDo(t, "XLEN", "shown"), ":"))
			return err == nil && n+lost() == len(answered)
		}, patience, patience/1000, "each line is an entry, or counted")
	}
	serve(5)
	assert.Zero(t, lost())
	require.Equal(t, "OK", client.mustDo(t, "CONFIG", "SET", "maxmemory", "1"))
	serve(7)
	assert.Equal(t, 7, lost())
	require.Equal(t, "OK", client.mustDo(t, "CONFIG", "SET", "maxmemory", "0"))
	serve(5)
	var lines []string
	for part := range strings.SplitSeq(client.mustDo(t, "XRANGE", "shown", "-", "+"), "\r\n") {
		if strings.HasPrefix(part, "{") {
			lines = append(lines, servedID(t, part))
		}
	}
	assert.Equal(t, append(append([]string(nil), answered[:5]...), answered[12:]...), lines)
	assert.Equal(t, 7, lost())
}
