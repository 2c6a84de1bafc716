package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/serve"
	"github.com/rankd/rankd/serve/access"
	"github.com/rankd/rankd/serve/admin"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

func TestMain(m *testing.M) {
	looptest.Main(m)
}

// world is the pages of an engine with demo data.
type world struct {
	engine   *rankd.Engine
	t        *testing.T
	service  *serve.Service
	registry *prometheus.Registry
	handler  http.Handler
	unready  atomic.Pointer[string]
	stuck    atomic.Int64 // the age of the loop, as a duration
}

func openAdmin(t *testing.T, o rankd.Options) *world {
	redis, err := rankdtest.StartRedis()
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	o.Redis, o.AllowRequestTrace = redis.Addr(), true
	e, err := rankd.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Close()) })
	w := &world{t: t, engine: e, registry: prometheus.NewRegistry()}
	w.service, err = serve.New(e, serve.Options{Registerer: w.registry, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	caller, err := access.NewCaller(access.Rules{Name: "admin", Plans: []string{"*"}, Grants: []request.Grant{request.GrantTrace}})
	require.NoError(t, err)
	hosts, err := access.NewHosts([]string{"example.com"}) // the name of httptest
	require.NoError(t, err)
	w.handler = admin.Handler(admin.Options{Service: w.service, Registry: w.registry, Caller: caller, Hosts: hosts, Stuck: func() time.Duration { return time.Duration(w.stuck.Load()) }, Outputs: map[string]admin.Output{"log": output{}}, Ready: func() error {
		if why := w.unready.Load(); why != nil {
			return errors.New(*why)
		}
		return nil
	}})
	return w
}

// output is an Output with its own metrics.
type output struct{}

func (output) Dropped() uint64  { return 7 }
func (output) Failures() uint64 { return 3 }

// get returns the page at a path. With a body, it posts.
func (w *world) get(path, body string) (status int, contentType, page string) {
	w.t.Helper()
	method, in := http.MethodGet, io.Reader(nil)
	if body != "" {
		method, in = http.MethodPost, strings.NewReader(body)
	}
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, httptest.NewRequest(method, path, in))
	return answer.Code, answer.Header().Get("Content-Type"), answer.Body.String()
}

func TestLiveAndReady(t *testing.T) {
	w := openAdmin(t, rankd.Options{})
	for _, path := range []string{"/livez", "/readyz"} {
		status, _, page := w.get(path, "")
		assert.Equal(t, 200, status)
		assert.Equal(t, "ok\n", page)
	}
	for stuck, want := range map[time.Duration]int{10*time.Second - 1: 200, 10 * time.Second: 503} {
		w.stuck.Store(int64(stuck))
		status, _, _ := w.get("/livez", "")
		assert.Equal(t, want, status, stuck)
	}
	w.stuck.Store(0)
	why := "draining"
	w.unready.Store(&why)
	status, _, page := w.get("/readyz", "")
	assert.Equal(t, 503, status)
	assert.Equal(t, "draining\n", page)
	status, _, _ = w.get("/livez", "")
	assert.Equal(t, 200, status, "a process that drains lives")
}

func TestHosts(t *testing.T) {
	w := openAdmin(t, rankd.Options{})
	for _, path := range []string{"/livez", "/metrics", "/debug/pprof/heap", "/v1/trace?plan=diamond&user_id=7"} {
		for name, want := range map[string]int{"localhost:8081": 200, "127.0.0.1:8081": 200, "evil.test": 403} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Host = name
			answer := httptest.NewRecorder()
			w.handler.ServeHTTP(answer, r)
			assert.Equal(t, want, answer.Code, "%s at %s", path, name)
			r.Host = "localhost"
			r.Header.Set("Origin", "http://"+name)
			answer = httptest.NewRecorder()
			w.handler.ServeHTTP(answer, r)
			assert.Equal(t, want, answer.Code, "%s from %s", path, name)
		}
	}
}

func TestProfilesWithoutTheCommandLine(t *testing.T) {
	w := openAdmin(t, rankd.Options{})
	for path, want := range map[string]int{
		"/debug/pprof/": 200, "/debug/pprof/goroutine?debug=1": 200, "/debug/pprof/heap?debug=1": 200, "/debug/pprof/cmdline": 404, "/debug/nothing": 404, "/": 404,
	} {
		status, _, _ := w.get(path, "")
		assert.Equal(t, want, status, path)
	}
}

func TestTrace(t *testing.T) {
	w := openAdmin(t, rankd.Options{})
	for path, body := range map[string]string{
		"/v1/trace?plan=diamond&user_id=7": "",
		"/v1/trace?plan=diamond":           `{"user_id": 7, "request_id": "r"}`,
		"/v1/trace":                        `{"user_id": 7, "plan": "diamond", "request_id": "r", "trace": false}`,
	} {
		status, contentType, page := w.get(path, body)
		require.Equal(t, 200, status, page)
		assert.Equal(t, "application/json", contentType)
		ran, err := trace.Decode([]byte(page))
		require.NoError(t, err)
		assert.Equal(t, "diamond", ran.Plan)
		assert.NotEmpty(t, ran.Tracks)
	}
	status, contentType, page := w.get("/v1/trace?plan=diamond&user_id=7&format=html", "")
	assert.Equal(t, 200, status)
	assert.Equal(t, "text/html; charset=utf-8", contentType)
	assert.Contains(t, page, "<html")
	assert.Contains(t, page, "diamond")

	for path, c := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"/v1/trace":                          {"", 400, "Invalid JSON input"},
		"/v1/trace?user_id=7":                {"", 400, "plan is missing"},
		"/v1/trace?plan=nobody&user_id=7":    {"", 404, "Unknown plan"},
		"/v1/trace?plan=diamond&user_id=x":   {"", 400, "decimal digits"},
		"/v1/trace?plan=diamond&format=html": {"{", 400, "middle of a document"},
		"/v1/trace?plan=complex_dag":         {`"` + strings.Repeat("x", 2<<20) + `"`, 413, "Request too large"},
	} {
		status, _, page := w.get(path, c.body)
		assert.Equal(t, c.status, status, path)
		assert.Contains(t, page, c.want)
		assert.True(t, json.Valid([]byte(page)), page)
	}
	status, _, page = w.get("/v1/trace?plan=diamond", `{"user_id": 7, "deadline_ms": 1, "param_overrides": {"weight": 1}}`)
	assert.Equal(t, 403, status, page)
}

// TestATraceWhoseOperatorHasGone: the request is abandoned and ends, instead of running on.
func TestATraceWhoseOperatorHasGone(t *testing.T) {
	entered := make(chan struct{})
	w := openAdmin(t, rankd.Options{
		Plans: fstest.MapFS{"held.plan.json": {Data: []byte(`{"schema_version": 1, "plan_name": "held", "outputs": ["out"],
			"nodes": [{"node_id": "out", "op": "test::held", "inputs": []}]}`)}},
		Tasks: []task.Spec{{Op: "test::held", Output: task.Source, Run: func(c *task.Ctx) (rowset.RowSet, error) {
			close(entered)
			<-c.Context().Done()
			return rowset.RowSet{}, task.ErrCancelled
		}}},
	})
	ctx, leave := context.WithCancel(t.Context())
	served := make(chan struct{})
	go func() {
		defer close(served)
		w.handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v1/trace?plan=held&user_id=7", nil).WithContext(ctx))
	}()
	<-entered
	leave()
	select {
	case <-served:
	case <-time.After(10 * time.Second): // only a failed test waits that long
		t.Fatal("the request runs on")
	}
	_, _, page := w.get("/metrics", "")
	assert.Contains(t, page, `rankd_requests_total{class="abandoned",front="admin",plan="held"} 1`)
}

func TestMetrics(t *testing.T) {
	for _, model := range []rankd.Model{rankd.Reactor, rankd.Pool} {
		t.Run(string(model), func(t *testing.T) {
			w := openAdmin(t, rankd.Options{Model: model, MaxInflight: 4})
			for range 3 {
				w.get("/v1/trace?plan=diamond&user_id=7", "")
			}
			status, _, page := w.get("/metrics", "")
			require.Equal(t, 200, status)
			for _, want := range []string{
				`rankd_requests_total{class="ok",front="admin",plan="diamond"} 3`,
				`rankd_request_duration_seconds_count{front="admin",plan="diamond"} 3`,
				"rankd_requests_running 0",
				`rankd_endpoint_calls_failed_total{endpoint="redis_default"} 0`,
				"# TYPE rankd_loop_callback_seconds histogram",
				"go_goroutines ", "process_open_fds ",
			} {
				assert.Contains(t, page, want)
			}
			assert.NotContains(t, page, `rankd_endpoint_commands_sent_total{endpoint="redis_default"} 0`)
			if model == rankd.Reactor {
				assert.NotContains(t, page, "rankd_loop_iterations_total 0")
			}
			problems, err := promlint.New(strings.NewReader(page)).Lint()
			require.NoError(t, err)
			for _, p := range problems {
				assert.False(t, strings.HasPrefix(p.Metric, "rankd_"), "%s: %s", p.Metric, p.Text)
			}
		})
	}
}

// A scrape of a closed engine shows its last counters.
func TestMetricsAfterClose(t *testing.T) {
	w := openAdmin(t, rankd.Options{})
	require.NoError(t, w.service.Engine().Close())
	status, _, page := w.get("/metrics", "")
	assert.Equal(t, 200, status)
	assert.Contains(t, page, "rankd_loop_iterations_total")
}
