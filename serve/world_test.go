package serve_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/internal/testing/servetest"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/serve"
	"github.com/rankd/rankd/serve/access"
	"github.com/rankd/rankd/task"
)

// world is a service with its engine, and with all that a test can observe of it.
type world struct {
	*serve.Service
	t        testing.TB
	registry *prometheus.Registry
	log      *servetest.Log
	clock    *clock.Manual
	gate     *gate
	caller   *access.Caller // who may ask for everything
}

// openServer opens an engine and its service. Plan "held" waits at the gate.
func openServer(t testing.TB, o rankd.Options) *world {
	w := &world{t: t, registry: prometheus.NewRegistry(), log: new(servetest.Log), clock: clock.NewManual(), gate: newGate(), caller: root(t)}
	if o.Redis == "" {
		redis, err := rankdtest.StartRedis()
		require.NoError(t, err)
		t.Cleanup(redis.Close)
		o.Redis = redis.Addr()
	}
	o.Tasks = append(o.Tasks, w.gate.spec())
	o.AllowRequestScheduling, o.AllowRequestTrace, o.AllowRequestExplain = true, true, true
	if o.Plans == nil {
		o.Plans = folder
	}
	e, err := rankd.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Close()) })
	w.Service, err = serve.New(e, serve.Options{Logger: slog.New(slog.NewJSONHandler(w.log, nil)), Registerer: w.registry, Clock: w.clock})
	require.NoError(t, err)
	return w
}

// folder has the plans of the tests: rows, held, and one that does not load.
var folder = fstest.MapFS{
	"rows.plan.json":   servetest.Artifact("rows", `{"node_id": "out", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 3}}`),
	"held.plan.json":   servetest.Artifact("held", `{"node_id": "out", "op": "test::gate", "inputs": []}`),
	"viewer.plan.json": servetest.Artifact("viewer", `{"node_id": "out", "op": "core::viewer", "inputs": [], "params": {"endpoint": "ep_0001"}}`),
	"weighted.plan.json": servetest.Artifact("weighted", `{"node_id": "rows", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 2}},
		{"node_id": "out", "op": "core::vm", "inputs": ["rows"], "params": {"out_key": 2002, "expr_id": "e"}}`),
	"slow.plan.json": servetest.Artifact("slow", `{"node_id": "rows", "op": "test::fixed_source", "inputs": []},
		{"node_id": "out", "op": "test::sleep", "inputs": ["rows"], "params": {"duration_ms": 50}}`),
	"broken.plan.json": {Data: []byte(`{"schema_version": 1, "plan_name": "broken"}`)},
}

// gate is a task that waits until it is opened.
type gate struct {
	entered chan struct{} // a value for each body that has begun
	opened  chan struct{}
}

func newGate() *gate { return &gate{entered: make(chan struct{}, 1024), opened: make(chan struct{})} }

func (g *gate) spec() task.Spec {
	return task.Spec{Op: "test::gate", Output: task.Source, Run: func(c *task.Ctx) (rowset.RowSet, error) {
		g.entered <- struct{}{}
		select {
		case <-g.opened:
			return rankdtest.Rows(1), nil
		case <-c.Context().Done():
			return rowset.RowSet{}, task.ErrCancelled
		}
	}}
}

// caller returns a caller with these rules.
func caller(t testing.TB, r access.Rules) *access.Caller {
	if r.Name == "" {
		r.Name = "tester"
	}
	c, err := access.NewCaller(r)
	require.NoError(t, err)
	return c
}

// root returns a caller that may ask for everything.
func root(t testing.TB) *access.Caller {
	return caller(t, access.Rules{
		Plans: []string{"*"}, Overrides: []string{"*"}, Grants: []request.Grant{request.GrantScheduling, request.GrantTrace, request.GrantExplain},
	})
}

// ask sends a request and waits for its reply. There must be exactly one.
func (w *world) ask(fill func(q *serve.Query)) *serve.Reply {
	w.t.Helper()
	q, done := w.start(fill)
	<-done
	return &q.Reply
}

// start sends a request. The channel gets a value for each reply.
func (w *world) start(fill func(q *serve.Query)) (*serve.Query, <-chan struct{}) {
	done := make(chan struct{}, 2)
	q := w.NewQuery(serve.HTTP, func(*serve.Query) { done <- struct{}{} })
	q.Caller = w.caller
	fill(q)
	w.Ask(q)
	return q, done
}

// body returns the reply as JSON.
func body(t testing.TB, r *serve.Reply) map[string]any {
	text := r.AppendBody([]byte("x"))
	require.Equal(t, byte('x'), text[0])
	require.NotContains(t, string(text), "\n")
	var m map[string]any
	require.NoError(t, json.Unmarshal(text[1:], &m), string(text))
	return m
}

// value returns the value of a metric. The text format shows the name and the labels in the
// same way.
func (w *world) value(name string) float64 {
	w.t.Helper()
	families, err := w.registry.Gather()
	require.NoError(w.t, err)
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			full := f.GetName()
			if len(labels) > 0 {
				full += "{" + strings.Join(labels, ",") + "}"
			}
			if full != name {
				continue
			}
			switch {
			case m.Counter != nil:
				return m.Counter.GetValue()
			case m.Gauge != nil:
				return m.Gauge.GetValue()
			case m.Histogram != nil:
				return float64(m.Histogram.GetSampleCount())
			}
		}
	}
	return 0
}

// lines returns the records of the log once there are n of them.
func (w *world) lines(n int) (records []map[string]any) {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return strings.Count(w.log.String(), "\n") >= n }, 10*time.Second, time.Millisecond)
	for line := range strings.Lines(w.log.String()) {
		var record map[string]any
		require.NoError(w.t, json.Unmarshal([]byte(line), &record))
		records = append(records, record)
	}
	return records
}
