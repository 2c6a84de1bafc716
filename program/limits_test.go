package program

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"
)

// napPlan sleeps for that long.
func napPlan(t *testing.T, d time.Duration) (path string) {
	return writePlan(t, t.TempDir(), "nap", fmt.Sprintf(`{"schema_version": 1, "plan_name": "nap", "nodes": [
		{"node_id": "s", "op": "fixed_source", "inputs": []},
		{"node_id": "nap", "op": "sleep", "inputs": ["s"], "params": {"duration_ms": %d}}], "outputs": ["nap"]}`, d.Milliseconds()))
}

func TestLimitsOfTime(t *testing.T) {
	t.Parallel()
	late, quick := napPlan(t, time.Hour), napPlan(t, time.Millisecond)
	const requests = "the request's deadline of 400ms passed while nap (test::sleep) ran"
	for _, engine := range []string{"reactor", "pool", "sequential"} {
		for _, c := range []struct{ name, plan, in, flag, detail string }{
			// This is long enough for the node before the late one, on any machine.
			{"deadline", late, `{"user_id": 1}`, "--deadline_ms=400", requests},
			{"node timeout", late, `{"user_id": 1}`, "--node-timeout-ms=400", "elapsed, limit 400ms"},
			{"the request's own deadline", late, `{"user_id": 1, "deadline_ms": 400}`, "--deadline_ms=3600000", requests},
			{"the request's own, alone", late, `{"user_id": 1, "deadline_ms": 400}`, "--deadline_ms=0", requests},
			{"a request cannot lengthen it", late, `{"user_id": 1, "deadline_ms": 3600000}`, "--deadline_ms=400", requests},
			{"generous", quick, `{"user_id": 1, "deadline_ms": 3600000}`, "--node_timeout_ms=3600000", ""},
		} {
			t.Run(engine+", "+c.name, func(t *testing.T) {
				t.Parallel()
				o := run(t, strings.NewReader(c.in), "--plan", c.plan, "--env", "test", "--engine", engine, c.flag)
				a := decode(t, o.lines()[0])
				if c.detail == "" {
					assert.Equal(t, exitOK, o.status)
					assert.Len(t, a.Candidates, 1)
					return
				}
				assert.Equal(t, exitFailed, o.status)
				assert.Contains(t, a.Detail, c.detail)
				require.Equal(t, "Node execution timeout", a.Error)
				assert.Equal(t, "nap", a.Node)
				assert.Equal(t, "test::sleep", a.Op)
			})
		}
	}
}

// TestCoalesceReads: the metrics say what requests that run at the same time have asked for,
// and what was sent.
func TestCoalesceReads(t *testing.T) {
	requests := strings.Repeat(`{"user_id": 1}`+"\n", 200)
	for _, coalesce := range []bool{true, false} {
		o := run(t, strings.NewReader(requests), "--plan_name", "concat_plan", "--metrics", fmt.Sprintf("--coalesce_reads=%v", coalesce))
		require.Equal(t, exitOK, o.status, o.stderr)
		lines := strings.Split(strings.TrimSpace(o.stderr), "\n")
		var m struct {
			Redis struct{ Asked, Sent, Shared int }
		}
		require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &m))
		assert.Equal(t, m.Redis.Asked-m.Redis.Sent, m.Redis.Shared)
		assert.GreaterOrEqual(t, m.Redis.Asked, 200*11)
		if coalesce {
			assert.Positive(t, m.Redis.Shared)
		} else {
			assert.Zero(t, m.Redis.Shared)
		}
	}
}

// Requests in flight fail when the grace is over. The program reads nothing else.
func TestShutdownGrace(t *testing.T) {
	for _, engine := range []string{"reactor", "pool", "sequential"} {
		for _, grace := range []string{"0", "20"} {
			t.Run(engine+", "+grace+" ms", func(t *testing.T) {
				asked, answer := make(chan struct{}, 1), make(chan struct{})
				addr := serveRedis(t, func(conn redcon.Conn, cmd redcon.Command) {
					if strings.EqualFold(string(cmd.Args[0]), "HGETALL") {
						asked <- struct{}{}
						<-answer
					}
					conn.WriteString("OK")
				})
				defer close(answer)
				stdin, in := io.Pipe() // stays open
				defer in.Close()
				ctx, signal := context.WithCancel(context.Background())
				var stdout, stderr bytes.Buffer
				p := program{stdin: stdin, stdout: &stdout, stderr: &stderr, tune: func(int) {}}
				status := make(chan int, 1)
				go func() {
					status <- p.run(ctx, []string{"--plan_name", "simple_viewer", "--redis", addr,
						"--engine", engine, "--shutdown_grace_ms", grace})
				}()
				_, err := io.WriteString(in, `{"user_id": 7, "request_id": "r7"}`+"\n")
				require.NoError(t, err)
				awaitAsked(t, asked)
				signal()
				assert.Equal(t, exitFailed, <-status)
				a := decode(t, stdout.String())
				assert.Equal(t, "r7", a.RequestID)
				assert.Equal(t, "Shutting down", a.Error)
				assert.Empty(t, stderr.String())
			})
		}
	}
}

func TestBenchWithLimits(t *testing.T) {
	for name, c := range map[string]struct {
		plan   string
		flag   string
		errors int
		status int
	}{
		"must be late":    {napPlan(t, time.Hour), "--deadline_ms=5", 24, exitFailed},
		"must be in time": {napPlan(t, time.Millisecond), "--deadline_ms=3600000", 0, exitOK},
		"a late node":     {napPlan(t, time.Hour), "--node_timeout_ms=5", 24, exitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			o := run(t, nil, "--plan", c.plan, "--env", "test", "--bench", "24", "--bench_concurrency", "6", c.flag)
			assert.Equal(t, c.status, o.status)
			assert.Contains(t, o.stdout, `"iterations":24`)
			assert.Contains(t, o.stdout, fmt.Sprintf(`"errors":%d`, c.errors))
		})
	}
}
