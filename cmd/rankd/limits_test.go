package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/request"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// napPlan sleeps so long.
func napPlan(t *testing.T, d time.Duration) (path string) {
	return writePlan(t, t.TempDir(), "nap", fmt.Sprintf(`{"schema_version": 1, "plan_name": "nap", "nodes": [
		{"node_id": "s", "op": "fixed_source", "inputs": []},
		{"node_id": "nap", "op": "sleep", "inputs": ["s"], "params": {"duration_ms": %d}}], "outputs": ["nap"]}`, d.Milliseconds()))
}

func TestLimitsOfTime(t *testing.T) {
	late, quick := napPlan(t, time.Hour), napPlan(t, time.Millisecond)
	for _, engine := range []string{"reactor", "pool", "sequential"} {
		for _, c := range []struct{ name, plan, in, flag, detail string }{
			// Long enough for the node before the late one, on any machine.
			{"deadline", late, `{"user_id": 1}`, "--deadline_ms=400", "limit"},
			{"node timeout", late, `{"user_id": 1}`, "--node-timeout-ms=400", "limit 400ms"},
			{"the request's own deadline", late, `{"user_id": 1, "deadline_ms": 400}`, "--deadline_ms=3600000", "limit"},
			{"the request's own, alone", late, `{"user_id": 1, "deadline_ms": 400}`, "--deadline_ms=0", "limit"},
			{"a request cannot lengthen it", late, `{"user_id": 1, "deadline_ms": 3600000}`, "--deadline_ms=400", "limit"},
			{"generous", quick, `{"user_id": 1, "deadline_ms": 3600000}`, "--node_timeout_ms=3600000", ""},
		} {
			t.Run(engine+", "+c.name, func(t *testing.T) {
				t.Parallel()
				o := rankd(t, strings.NewReader(c.in), "--plan", c.plan, "--env", "test", "--engine", engine, c.flag)
				a := decode(t, o.lines()[0])
				if c.detail == "" {
					assert.Equal(t, exitOK, o.status)
					assert.Len(t, a.Candidates, 1)
					return
				}
				assert.Equal(t, exitFailed, o.status)
				assert.Contains(t, a.Detail, "elapsed")
				assert.Contains(t, a.Detail, c.detail)
				require.Equal(t, errorNodeTimeout, a.Error)
				assert.Equal(t, "nap", a.Node)
				assert.Equal(t, "test::sleep", a.Op)
			})
		}
	}
}

// The deadline counts from the arrival, and the earlier of the two stands.
func TestDeadlineOfARequest(t *testing.T) {
	for _, c := range []struct{ program, request, want time.Duration }{
		{0, 0, 0},
		{100 * time.Millisecond, 0, 100 * time.Millisecond},
		{0, 70 * time.Millisecond, 70 * time.Millisecond},
		{100 * time.Millisecond, 70 * time.Millisecond, 70 * time.Millisecond},
		{100 * time.Millisecond, 170 * time.Millisecond, 100 * time.Millisecond},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			a, e := heldApp(t, 1)
			a.opts.deadline = c.program
			in := `{"user_id": 1}`
			if c.request > 0 {
				in = fmt.Sprintf(`{"user_id": 1, "deadline_ms": %d}`, c.request.Milliseconds())
			}
			served := make(chan error, 1)
			go func() { served <- a.serve(context.Background(), strings.NewReader(in), io.Discard) }()
			r := <-e.submitted
			var want clock.Time
			if c.want > 0 {
				want = r.Arrived.Add(c.want)
			}
			assert.Equal(t, want, r.Deadline)
			assert.Equal(t, a.clock.Now(), r.Arrived)
			r.succeed()
			assert.NoError(t, <-served)
		})
	}
}

func TestLimitsAreChecked(t *testing.T) {
	for _, flag := range []string{"--deadline_ms", "--node_timeout_ms", "--shutdown_grace_ms"} {
		for _, value := range []string{"-1", "2147483648", "x", "1.5"} {
			o := rankd(t, nil, flag+"="+value)
			assert.Equal(t, exitUsage, o.status)
			assert.Contains(t, o.stderr, flag)
			assert.Empty(t, o.stdout)
		}
	}
}

// The bound is of a request: neither node of the plan makes too many rows by itself.
func TestMaxRows(t *testing.T) {
	path := writePlan(t, t.TempDir(), "two", `{"schema_version": 1, "plan_name": "two", "nodes": [
		{"node_id": "a", "op": "fixed_source", "inputs": [], "params": {"row_count": 30}},
		{"node_id": "b", "op": "fixed_source", "inputs": [], "params": {"row_count": 30}}], "outputs": ["a", "b"]}`)
	for _, engine := range []string{"reactor", "pool", "sequential"} {
		args := []string{"--plan", path, "--env", "test", "--engine", engine}
		o := rankd(t, strings.NewReader(`{"user_id": 1}`), append(args, "--max_rows=60")...)
		assert.Equal(t, exitOK, o.status, o.stdout)
		o = rankd(t, strings.NewReader(`{"user_id": 1}`), append(args, "--max-rows=59")...)
		assert.Equal(t, exitFailed, o.status)
		a := decode(t, o.lines()[0])
		assert.Equal(t, errorRows, a.Error)
		assert.Contains(t, a.Detail, "59")
		o = rankd(t, nil, append(args, "--max-rows=59", "--bench=2")...)
		assert.Equal(t, exitFailed, o.status)
		assert.Contains(t, o.stdout, `"errors":2`)
	}
	for _, value := range []string{"0", "-1", "2147483648", "x"} {
		o := rankd(t, nil, "--max_rows", value)
		assert.Equal(t, exitUsage, o.status)
		assert.Contains(t, o.stderr, "--max_rows")
	}
}

func TestFailureTexts(t *testing.T) {
	redis := func(kind, cause error) error {
		return errors.Join(task.ErrRedis, &resp.OpError{Addr: "h:1", Kind: kind, Cause: cause})
	}
	for _, c := range []struct {
		err  error
		text string
	}{
		{&scheduler.TimeoutError{Kind: scheduler.ErrRequestDeadline}, "Request deadline exceeded"},
		{&scheduler.TimeoutError{Kind: scheduler.ErrNodeTimeout}, "Node execution timeout"},
		{&scheduler.TimeoutError{Kind: scheduler.ErrDeadlineBeforeStart}, "Deadline exceeded before node start"},
		{scheduler.ErrShuttingDown, "Shutting down"},
		{redis(resp.ErrConnectionLost, io.EOF), "Redis connection lost"},
		{redis(resp.ErrConnect, errors.New("refused")), "Redis connection failed"},
		{redis(resp.ErrTimeout, nil), "Redis timeout"},
		{redis(resp.ErrQueueFull, nil), "Redis in-flight limit exceeded"},
		{redis(resp.ErrConnectionLost, redis(resp.ErrProtocol, nil)), "Redis connection lost"},
		{redis(resp.ErrProtocol, nil), "Redis protocol error"},
		{redis(errors.New("WRONGTYPE"), nil), "Redis error"},
		{cpupool.ErrQueueFull, "CPU queue full"},
		{&task.PanicError{Value: "x"}, "Task panicked"},
		{task.ErrContract, "Task contract violation"},
		{&task.RowsError{Rows: 20, Limit: 10}, "Too many rows"},
		{task.ErrInvalid, "Invalid node"},
		{builtin.ErrInjected, "Node execution failed"},
	} {
		f := failureOf(&scheduler.NodeError{Node: "n", Op: "core::vm", Err: c.err})
		assert.Equal(t, request.Failure{Error: c.text, Detail: c.err.Error(), Node: "n", Op: "core::vm"}, f)
	}
	assert.Equal(t, request.Failure{Error: "Shutting down", Detail: "shutting down"}, failureOf(scheduler.ErrShuttingDown))
	assert.Equal(t, request.Failure{Error: "Request failed", Detail: "x"}, failureOf(errors.New("x")))
	assert.Equal(t, request.Failure{Error: "Request deadline exceeded",
		Detail: "request deadline exceeded: 12ms elapsed, limit 10ms"},
		failureOf(&scheduler.TimeoutError{Kind: scheduler.ErrRequestDeadline, Elapsed: 12e6, Limit: 10e6}))
}

// What is in flight when the grace is over fails; nothing else is read.
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
				assert.Equal(t, errorShuttingDown, a.Error)
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
			o := rankd(t, nil, "--plan", c.plan, "--env", "test", "--bench", "24", "--bench_concurrency", "6", c.flag)
			assert.Equal(t, c.status, o.status)
			assert.Contains(t, o.stdout, `"iterations":24`)
			assert.Contains(t, o.stdout, fmt.Sprintf(`"errors":%d`, c.errors))
		})
	}
}
