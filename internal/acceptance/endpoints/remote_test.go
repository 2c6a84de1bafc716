package endpoints_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/trace"
)

// modelPlan asks a feature service for candidates and a model server for their scores.
const modelPlan = `{"schema_version": 1, "plan_name": "model", "nodes": [
{"node_id": "start", "op": "fixed_source", "inputs": [], "params": {"row_count": 1}},
{"node_id": "found", "op": "remote_candidates", "inputs": ["start"], "params": {"endpoint": "ep_find", "columns": ["age"], "params": ["hour"], "limit": 50}},
{"node_id": "scored", "op": "remote", "inputs": ["found"], "params": {"endpoint": "ep_model", "send": ["age"], "columns": ["score"]}},
{"node_id": "sorted", "op": "sort", "inputs": ["scored"], "params": {"by": 2, "order": "desc"}},
{"node_id": "top", "op": "take", "inputs": ["sorted"], "params": {"count": 3}}], "outputs": ["top"], "expr_table": {}, "pred_table": {}}`

// modelRegistry has the two services at an address.
func modelRegistry(addr, policy string) fstest.MapFS {
	return fstest.MapFS{
		"keys.toml": {Data: []byte(`key = [{id = 1, name = "id", type = "int"},
 {id = 2, name = "score", type = "float", nullable = true, writable = true}, {id = 3, name = "age", type = "int", nullable = true, writable = true}]`)},
		"params.toml": {Data: []byte(`param = [{id = 1, name = "hour", type = "int"}]`)},
		"endpoints.dev.toml": {Data: fmt.Appendf(nil, `
[[endpoint]]
id = "ep_find"
name = "find"
kind = "http"
url = "http://%[1]s/find"
policy.connect_timeout_ms = 30000
policy.request_timeout_ms = 30000
[[endpoint]]
id = "ep_model"
name = "model"
kind = "http"
url = "http://%[1]s/score"
[[endpoint.header]]
name = "X-Api-Key"
value = "c4n4ry"
[endpoint.policy]
bearer_token = "c4n4ry"
%[2]s
`, addr, policy)},
	}
}

// modelServer is both services: ages are user + i, and scores are the age modulo 10. fault
// answers the requests to the model server, if it is set.
type modelServer struct {
	*httptest.Server
	fault atomic.Pointer[http.HandlerFunc]
	asked atomic.Int64
}

func newModelServer(t testing.TB) *modelServer {
	s := new(modelServer)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var doc struct {
			User    int64            `json:"user_id"`
			Params  map[string]int   `json:"params"`
			IDs     []int64          `json:"ids"`
			Columns map[string][]any `json:"columns"`
		}
		if err := json.NewDecoder(r.Body).Decode(&doc); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.asked.Add(1)
		if r.URL.Path == "/find" {
			ids, ages := []int64{}, []int64{}
			for i := range int64(20) {
				ids, ages = append(ids, 1<<60+i), append(ages, doc.User+i)
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"ids": ids, "columns": map[string]any{"age": ages}})
			return
		}
		if r.Header.Get("Authorization") != "Bearer c4n4ry" || r.Header.Get("X-Api-Key") != "c4n4ry" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		if fault := s.fault.Load(); fault != nil {
			(*fault)(w, r)
			return
		}
		scores := make([]any, len(doc.IDs))
		for i := range scores {
			scores[i] = int64(doc.Columns["age"][i].(float64)) % 10
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"columns": map[string]any{"score": scores}})
	}))
	t.Cleanup(s.Close)
	return s
}

// overModels opens an engine of each model that uses the services.
func (s *modelServer) overModels(t *testing.T, policy string, o rankd.Options, test func(t *testing.T, e *rankd.Engine)) {
	o.Registry, o.PlanText = modelRegistry(s.Listener.Addr().String(), policy), []byte(modelPlan)
	for _, model := range []rankd.Model{rankd.Reactor, rankd.Pool, rankd.Sequential} {
		t.Run(string(model), func(t *testing.T) {
			o.Model = model
			e, err := rankd.Open(o)
			require.NoError(t, err)
			defer e.Close()
			test(t, e)
		})
	}
}

// TestRemote: services answer many requests at the same time, in the same way on each model.
// The metrics count their calls, and few connections serve them all.
func TestRemote(t *testing.T) {
	s := newModelServer(t)
	s.overModels(t, "connections = 4\nconnect_timeout_ms = 30000\nrequest_timeout_ms = 30000", rankd.Options{}, func(t *testing.T, e *rankd.Engine) {
		var all sync.WaitGroup
		for user := range int64(100) {
			all.Go(func() {
				a, err := e.Rank(t.Context(), rankd.Request{UserID: user + 1, Params: map[string]any{"hour": 7}})
				if assert.NoError(t, err) {
					line := string(a.AppendJSON(nil, rankd.FormatFlat))
					first := (9 - (user+1)%10 + 10) % 10 // the first whose age ends with 9
					assert.Contains(t, line, fmt.Sprintf(`[{"id":%d,"score":9.0,"age":%d},{"id":%d,"score":9.0,"age":%d},{"id":`,
						1<<60+first, user+1+first, 1<<60+first+10, user+1+first+10))
				}
			})
		}
		all.Wait()
		m := e.Metrics()
		require.Len(t, m.Remote, 2)
		for i, connections := range []uint64{16, 4} {
			assert.Equal(t, uint64(100), m.Remote[i].Calls)
			assert.Zero(t, m.Remote[i].Failed)
			assert.Less(t, m.Remote[i].Connects, connections+20, "net/http drops a connection now and then on a busy machine")
			assert.NotZero(t, m.Remote[i].BytesSent)
			assert.NotZero(t, m.Remote[i].BytesReceived)
		}
	})
}

// TestRemoteFaults: each fault of a service is an error of the same class and text on each
// model. The error hides secrets, and without the fault the engine is well again.
// docs/remote.md has the table.
func TestRemoteFaults(t *testing.T) {
	hangUp := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
				_, _ = io.WriteString(conn, text)
				_ = conn.Close()
			}
		}
	}
	answers := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	hangs := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	const long, short = "connect_timeout_ms = 30000\nrequest_timeout_ms = 30000", "request_timeout_ms = 60"
	for _, c := range []struct {
		name    string
		fault   http.HandlerFunc
		policy  string
		timeout time.Duration // of the request
		text    string
		detail  string
		class   error
	}{
		{"500", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "out of memory", 500) }, long, 0, "Service error", "status: 500: out of memory", nil},
		{"slow", hangs, short, 0, "Service timeout", "timeout: not done within 60ms", nil},
		{"slow, and the request has less time", hangs, long, 100 * time.Millisecond, "", "", rankd.ErrTimeout},
		{"half an answer", hangUp("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"columns\":"), long, 0, "Service connection lost", "unexpected EOF", nil},
		{"no answer", hangUp(""), long, 0, "Service connection lost", "connection lost", nil},
		{"not HTTP", hangUp("+PONG\r\n"), long, 0, "Service protocol error", "malformed HTTP", nil},
		{"not JSON", answers("<html>"), long, 0, "Service protocol error", "not JSON", nil},
		{"another JSON", answers(`{"scores":[1]}`), long, 0, "Service protocol error", "columns.score is missing", nil},
		{"too few values", answers(`{"columns":{"score":[1]}}`), long, 0, "Service protocol error", "columns.score has 1 values, must have 20", nil},
		{"too large", answers(strings.Repeat(" ", 5000)), long + "\nmax_answer_bytes = 4000", 0, "Service answer too large", "more than 4000 bytes", nil},
		{"a large request", answers(""), long + "\nmax_request_bytes = 10", 0, "Service answer too large", "the request has ", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newModelServer(t)
			s.overModels(t, c.policy, rankd.Options{}, func(t *testing.T, e *rankd.Engine) {
				for _, faulty := range []bool{true, false, true} {
					s.fault.Store(nil)
					if faulty {
						s.fault.Store(&c.fault)
					}
					_, err := e.Rank(t.Context(), rankd.Request{UserID: 1, Timeout: c.timeout, ID: "a"})
					if !faulty && !strings.Contains(c.policy, "max_request_bytes") && c.timeout == 0 && c.policy != short {
						require.NoError(t, err)
						continue
					}
					if !faulty {
						continue // A busy machine would exceed these bounds.
					}
					var failed *rankd.Error
					require.ErrorAs(t, err, &failed)
					if c.class != nil { // and the node that has run out of time
						require.ErrorIs(t, err, c.class)
					} else {
						assert.Equal(t, c.text, failed.Text)
						assert.Contains(t, failed.Detail, c.detail)
						assert.Equal(t, "scored", failed.Node)
						require.ErrorIs(t, err, rankd.ErrRemote)
						assert.Contains(t, failed.Detail, "endpoint ep_model (model): http "+s.Listener.Addr().String())
					}
					assert.NotContains(t, string(failed.AppendJSON(nil)), "c4n4ry")
				}
			})
		})
	}
}

// TestRemoteThatIsDown: nobody listens at the service's address.
func TestRemoteThatIsDown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	s := &modelServer{Server: &httptest.Server{Listener: l}}
	s.overModels(t, "", rankd.Options{}, func(t *testing.T, e *rankd.Engine) {
		_, err := e.Rank(t.Context(), rankd.Request{UserID: 1})
		var failed *rankd.Error
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, "Service connection failed", failed.Text)
		assert.Equal(t, "endpoint ep_find (find): http "+l.Addr().String()+": cannot connect: connect: connection refused", failed.Detail)
	})
}

// TestRemoteRequestsEnd: requests in flight end when their node times out or their engine is
// closed.
func TestRemoteRequestsEnd(t *testing.T) {
	begun, gone := make(chan struct{}, 10), make(chan struct{}, 10)
	fault := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-r.Context().Done()
		gone <- struct{}{}
	})
	s := newModelServer(t)
	s.fault.Store(&fault)
	s.overModels(t, "connect_timeout_ms = 30000\nrequest_timeout_ms = 30000", rankd.Options{}, func(t *testing.T, e *rankd.Engine) {
		for timeout := 100 * time.Millisecond; ; timeout *= 2 { // until there is time to ask the second service
			_, err := e.Rank(t.Context(), rankd.Request{UserID: 1, Timeout: timeout})
			require.ErrorIs(t, err, rankd.ErrTimeout)
			if len(begun) > 0 {
				break
			}
		}
		<-begun
		<-gone

		failed := make(chan error, 1)
		e.Submit(context.Background(), rankd.Request{UserID: 1}, func(_ *rankd.Answer, err error) { failed <- err })
		<-begun
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, e.Shutdown(ctx), context.Canceled)
		<-gone
		require.ErrorIs(t, <-failed, rankd.ErrClosed)
	})
}

// TestRemoteTrace: a trace has a track for the connections of each service, and says what a
// node waited for.
func TestRemoteTrace(t *testing.T) {
	s := newModelServer(t)
	s.overModels(t, "connect_timeout_ms = 30000\nrequest_timeout_ms = 30000", rankd.Options{AllowRequestTrace: true}, func(t *testing.T, e *rankd.Engine) {
		a, err := e.Rank(t.Context(), rankd.Request{UserID: 1, Trace: true})
		require.NoError(t, err)
		tr := a.Trace()
		require.NoError(t, tr.Check())
		tracks, flows := map[string]int{}, 0
		for _, track := range tr.Tracks {
			if track.Kind == trace.HTTPTrack {
				tracks[track.Name] = len(track.Slices)
				assert.NotZero(t, track.Slices[0].Received)
			}
		}
		assert.Equal(t, map[string]int{"ep_find #0": 1, "ep_model #0": 1}, tracks)
		for _, f := range tr.Flows {
			if f.Kind == trace.HTTPFlow {
				flows++
				assert.Len(t, f.Points, 4)
			}
		}
		assert.Equal(t, 2, flows)
		for _, n := range tr.Nodes[1:3] {
			require.Len(t, n.Awaits, 1)
			assert.Equal(t, trace.ForHTTP, n.Awaits[0].For)
		}
		doc, err := tr.MarshalJSON()
		require.NoError(t, err)
		read, err := trace.Decode(doc)
		require.NoError(t, err)
		assert.Equal(t, tr, read)
	})
}
