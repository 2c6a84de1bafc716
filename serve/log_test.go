package serve_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/outcome"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/serve"
)

// A failed request has one line. The line says all that an operator needs, and its length is
// bounded.
func TestTheLineOfAFailedRequest(t *testing.T) {
	w := openServer(t, rankd.Options{})
	w.ask(func(q *serve.Query) { q.Plan, q.User = []byte("rows"), []byte("1") }) // has none
	w.ask(func(q *serve.Query) {
		q.Body = []byte(`{"user_id": 1, "plan": "viewer", "request_id": "` + strings.Repeat("long", 1000) + `", "require": ["nobody"]}`)
		q.TraceParent = []byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	})
	w.Refuse(serve.RESP, outcome.Unauthenticated, "mine", "no token")
	w.Fail(serve.HTTP, &request.Error{RequestID: "line", Code: request.CodeTooLarge, Detail: "too long"})
	lines := w.lines(3)
	require.Len(t, lines, 3)
	for _, line := range lines {
		delete(line, "time")
	}
	assert.Equal(t, map[string]any{
		"level": "INFO", "msg": "request failed", "front": "http", "class": "bad_request", "caller": "tester", "plan": "viewer",
		"trace_id": "0af7651916cd43dd8448eb211c80319c", "request_id": strings.Repeat("long", 50) + "… (4000 bytes)", "error": "Invalid request",
		"detail": `require names the node "nobody", and plan "viewer" has none of that id or label; did you mean "out"?`,
	}, lines[0])
	assert.Equal(t, map[string]any{
		"level": "INFO", "msg": "request failed", "front": "resp", "class": "unauthenticated", "request_id": "mine", "error": "Not authenticated",
		"detail": "no token",
	}, lines[1])
	assert.Equal(t, "too_large", lines[2]["class"])
}

func TestTheLogIsBounded(t *testing.T) {
	w := openServer(t, rankd.Options{})
	fail := func(n int) {
		for range n {
			w.Refuse(serve.HTTP, outcome.BadRequest, "x", "again")
		}
	}
	fail(1000)
	assert.Len(t, w.lines(10), 10)
	assert.EqualValues(t, 990, w.value("rankd_log_lines_dropped_total"))
	w.clock.Advance(200 * time.Millisecond) // two more lines
	fail(100)
	lines := w.lines(12)
	require.Len(t, lines, 12)
	assert.EqualValues(t, 990, lines[10]["unlogged"])
	assert.EqualValues(t, 1088, w.value("rankd_log_lines_dropped_total"))
	w.clock.Advance(time.Second)
	fail(1)
	lines = w.lines(13)
	assert.EqualValues(t, 98, lines[12]["unlogged"], "only of the second burst")
	assert.NotContains(t, lines[11], "unlogged")
	assert.EqualValues(t, 1101, w.value(`rankd_requests_total{class="bad_request",front="http",plan="(none)"}`))
}

// Requests do not wait for a log that nobody reads.
func TestAStalledLogHoldsUpNobody(t *testing.T) {
	w := openServer(t, rankd.Options{})
	resume := w.log.Stall()
	for range 10_000 {
		w.clock.Advance(time.Second)
		w.Refuse(serve.HTTP, outcome.BadRequest, "x", "again")
	}
	resume()
	lines := w.lines(64)
	assert.Less(t, len(lines), 200)
}

// Labels come from the library and from tables, whatever strangers send.
func TestLabelsAreBounded(t *testing.T) {
	w := openServer(t, rankd.Options{Plan: "rows"})
	ask := func(plan string) {
		w.ask(func(q *serve.Query) { q.Plan, q.User = []byte(plan), []byte("1") })
	}
	for plan := range folder {
		if name := strings.TrimSuffix(plan, ".plan.json"); name != "held" {
			ask(name)
		}
	}
	count := func() (n int) {
		families, err := w.registry.Gather()
		require.NoError(t, err)
		for _, f := range families {
			n += len(f.Metric)
		}
		return n
	}
	ask("nobody")
	before := count()
	for i := range 200 {
		ask(strings.Repeat("x", i+1))
		ask("rows\n" + strings.Repeat("{", i))
		w.Refuse(serve.HTTP, outcome.BadRequest, strings.Repeat("y", i), strings.Repeat("z", i))
	}
	assert.Equal(t, before, count())
}

func TestConnectionsAreCounted(t *testing.T) {
	w := openServer(t, rankd.Options{})
	w.ConnOpened(serve.RESP)
	w.ConnOpened(serve.RESP)
	w.ConnCut(serve.RESP, serve.CutSlowWrite)
	w.ConnClosed(serve.RESP)
	assert.EqualValues(t, 1, w.value(`rankd_connections{front="resp"}`))
	assert.EqualValues(t, 2, w.value(`rankd_connections_opened_total{front="resp"}`))
	assert.EqualValues(t, 1, w.value(`rankd_connections_cut_total{front="resp",reason="slow_write"}`))
	assert.Zero(t, w.value(`rankd_connections{front="http"}`))
}

// A syntax error in one line of a longer body has the place that the sender knows.
func TestLocate(t *testing.T) {
	w := openServer(t, rankd.Options{})
	reply := w.ask(func(q *serve.Query) {
		q.Body, q.RequestID = []byte("{"), []byte("h")
		q.Locate = func(err error) error {
			var refused *request.Error
			require.True(t, errors.As(err, &refused))
			located := *refused
			located.Detail += ", line 7 of the input"
			return &located
		}
	})
	assert.Equal(t, outcome.BadRequest, reply.Class)
	assert.Contains(t, body(t, reply)["detail"], ", line 7 of the input")
	assert.Equal(t, "h", reply.RequestID)
}
