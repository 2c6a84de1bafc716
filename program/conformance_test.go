package program

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/acceptance/conformance"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/task"
)

// TestConformance runs the cases of the original engine through the program, from stdin to stdout. What each engine
// answers is tested by internal/acceptance/conformance.
func TestConformance(t *testing.T) {
	addr := miniredis.RunT(t).Addr()
	conformance.Seed(t, addr)
	cases := conformance.Load(t)
	dir := t.TempDir()
	for i := range cases {
		c := &cases[i]
		plan := writePlan(t, dir, fmt.Sprint("c", i), string(conformance.Verbatim(t, c.Plan)))
		t.Run(c.Name, func(t *testing.T) {
			if c.Quirk() || c.Kind == "plan_error" {
				o := run(t, strings.NewReader(`{"user_id":1}`), "--plan", plan, "--redis", addr)
				assert.NotZero(t, o.status)
				assert.NotContains(t, o.stderr, "panic")
				return
			}
			var stdin bytes.Buffer
			for i := range c.Requests {
				stdin.Write(append(conformance.Verbatim(t, c.Requests[i].Request), '\n'))
			}
			o := run(t, &stdin, "--plan", plan, "--redis", addr, "--response", "fields", "--dump-run-trace")
			assert.NotContains(t, o.stderr, "panic")
			lines := o.lines()
			if c.Kind == "request_error" { // A broken document may be two.
				assert.GreaterOrEqual(t, len(lines), len(c.Requests))
				for _, line := range lines {
					assert.NotEmpty(t, decode(t, line).Error)
				}
				return
			}
			require.Len(t, lines, len(c.Requests))
			for i := range c.Requests {
				if c.Requests[i].Expected(t).Error {
					assert.NotEmpty(t, decode(t, lines[i]).Error)
				} else {
					c.Check(t, i, []byte(lines[i]))
				}
			}
		})
	}
}

// rankd itself panics while it encodes the answers of even users. The lines behind them come all the same.
func TestAnAnswerThatCannotBeEncodedIsAnError(t *testing.T) {
	broken := &testworld.BrokenRows{Rows: 3}
	e, err := rankd.Open(rankd.Options{
		Env: "test", Redis: "127.0.0.1:1" /* not used */, Logger: slog.New(slog.DiscardHandler), TraceSink: broken, TraceSample: 1, Tasks: []task.Spec{broken.Task()},
		PlanText: []byte(`{"schema_version": 1, "plan_name": "broken", "nodes": [{"node_id": "n", "op": "test::broken", "inputs": []}], "outputs": ["n"]}`),
	})
	require.NoError(t, err)
	defer e.Close()
	var stdout bytes.Buffer
	o := &options{input: inputJSON, maxInflight: 2, maxRequestBytes: request.DefaultMaxBytes}
	require.ErrorIs(t, serve(context.Background(), e, o, strings.NewReader(requests(4)), &stdout, io.Discard), cmdline.ErrFailed)
	for i, line := range strings.Split(strings.TrimSpace(stdout.String()), "\n") {
		a := decode(t, line)
		assert.Equal(t, fmt.Sprint("r", i+1), a.RequestID)
		assert.Equal(t, i%2 == 1, a.Error != "", line)
	}
	assert.Equal(t, 4, strings.Count(stdout.String(), "\n"))
}
