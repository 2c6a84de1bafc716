package server

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/process"
)

// reloadsFor is the length of TestReloadsUnderLoad. .ci/long asks for ten minutes.
var reloadsFor = flag.Duration("reloads", 3*time.Second, "how long TestReloadsUnderLoad changes plans")

// TestReloadsUnderLoad changes a plan each second, and every second time also breaks another
// one. Meanwhile clients of both fronts send requests for it, at half of the server's capacity.
// No request fails, and each answer has one version. No connection sees an older version than
// before, and the server does not hold more memory afterwards. At last SIGTERM comes in the
// middle of a reload. The log has p99 without and with reloads.
func TestReloadsUnderLoad(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	c := &changing{t: t, dir: t.TempDir()}
	c.change(1, false)
	c.server = serve(t, programs.plain.get(t, false), nil, "--plan_dir", c.dir)
	c.fronts = frontsOf(c.server.RESP, c.server.HTTP)

	c.load(*reloadsFor/6, 0)
	capacity := float64(len(c.took())) / (*reloadsFor / 6).Seconds()
	c.load(*reloadsFor/3, capacity/2)
	quiet := c.took()
	warm := lookAfterRest(t, c.server, nil)

	every := min(time.Second, *reloadsFor/10)
	ctx, end := context.WithCancel(t.Context())
	var changes sync.WaitGroup
	changes.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for version := int64(2); ; version++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			c.change(version, version%2 == 0)
			assert.Equal(t, map[bool]int{true: http.StatusUnprocessableEntity, false: http.StatusOK}[version%2 == 0], c.reload(ctx), "version %d", version)
		}
	})
	c.load(*reloadsFor, capacity/2)
	end()
	changes.Wait()
	changed := c.took()
	rested := lookAfterRest(t, c.server, &warm)
	t.Logf("capacity %.0f requests/s; p99 %v without reloads (%d requests), %v with one each %v (%d requests, %d versions); warm: %v; at the end: %v",
		capacity, p99(quiet), len(quiet), p99(changed), every, len(changed), c.written.Load(), warm, rested)
	assert.True(t, rested.flat(&warm), "warm: %v; at the end: %v", warm, rested)
	assert.Greater(t, c.seen.Load(), int64(1), "the plan has changed")

	c.ending.Store(true)
	var last sync.WaitGroup
	last.Go(func() { c.load(patience, capacity/2) })
	for version := c.written.Load() + 1; version < c.written.Load()+20; version++ {
		last.Go(func() { c.reload(t.Context()) })
	}
	require.NoError(t, c.server.Signal(syscall.SIGTERM))
	last.Wait() // until the server has closed the connections
	select {
	case <-c.server.Ended():
		assert.NoError(t, c.server.Err(), c.server.Log())
	case <-time.After(patience):
		assert.Fail(t, "SIGTERM in the middle of a reload", c.server.Log())
	}
}

// changing is a server whose plan changes, and its clients. Any goroutine.
type changing struct {
	t       *testing.T
	dir     string
	server  *process.Replica
	fronts  []front
	written atomic.Int64 // the version that was written last
	seen    atomic.Int64 // the highest version that was answered
	ending  atomic.Bool  // connections may end

	mu      sync.Mutex
	latency []time.Duration // guarded by mu
}

// change writes a version of the plan. Two nodes write the version into two columns of each
// row.
func (c *changing) change(version int64, broken bool) {
	c.written.Store(version)
	c.write("page", fmt.Sprintf(`{"schema_version": 1, "plan_name": "page", "outputs": ["out"], "expr_table": {"v": {"op": "const_number", "value": %d}}, "nodes": [
		{"node_id": "me", "op": "core::viewer", "inputs": [], "params": {"endpoint": "ep_0001"}},
		{"node_id": "rows", "op": "core::follow", "inputs": ["me"], "params": {"endpoint": "ep_0001", "fanout": 10}},
		{"node_id": "score", "op": "core::vm", "inputs": ["rows"], "params": {"out_key": 2001, "expr_id": "v"}},
		{"node_id": "out", "op": "core::vm", "inputs": ["score"], "params": {"out_key": 2002, "expr_id": "v"}}]}`, version))
	other := `{"schema_version": 1, "plan_name": "other", "nodes": [{"node_id": "n", "op": "fixed_source", "inputs": []}], "outputs": ["n"]}`
	if broken {
		other = "{"
	}
	c.write("other", other)
}

func (c *changing) write(plan, text string) {
	path := filepath.Join(c.dir, plan+".plan.json")
	assert.NoError(c.t, os.WriteFile(path+"~", []byte(text), 0o644))
	assert.NoError(c.t, os.Rename(path+"~", path))
}

// reload asks the server to read its plans, and returns the status; 0: there was no answer.
func (c *changing) reload(ctx context.Context) int {
	request, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodPost, "http://"+c.server.Admin+"/reload", nil)
	require.NoError(c.t, err)
	request.Close = true // so that the connection does not count at the next look
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// load has eight clients send that many requests a second together, for that long. With 0, each
// sends one request after another.
func (c *changing) load(d time.Duration, rate float64) {
	ctx, cancel := context.WithTimeout(c.t.Context(), d)
	defer cancel()
	const each = 4
	var clients sync.WaitGroup
	for i := range c.fronts {
		for n := range each {
			clients.Go(func() { c.client(ctx, &c.fronts[i], n+1, rate/float64(each*len(c.fronts))) })
		}
	}
	clients.Wait()
}

// client sends requests for a user until ctx ends.
func (c *changing) client(ctx context.Context, f *front, user int, rate float64) {
	w, err := dialWire(f.addr)
	if err != nil {
		assert.True(c.t, c.ending.Load(), err)
		return
	}
	defer w.Close()
	due := make(<-chan time.Time)
	if rate > 0 {
		tick := time.NewTicker(time.Duration(float64(time.Second) / rate))
		defer tick.Stop()
		due = tick.C
	}
	var took []time.Duration
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.latency = append(c.latency, took...)
	}()
	for last := int64(0); ctx.Err() == nil; {
		if rate > 0 {
			select {
			case <-due:
			case <-ctx.Done():
				return
			}
		}
		asked, least := time.Now(), c.written.Load()
		_, err := w.Write(f.ask("page", user, "r"))
		var r reply
		if err == nil {
			r, err = f.read(w)
		}
		if err != nil || r.code != "" {
			assert.True(c.t, c.ending.Load(), "%v %v (version %d was written)", err, r, least)
			return
		}
		took = append(took, time.Since(asked))
		version, err := versionOf(r.text)
		if !assert.NoError(c.t, err) || !assert.GreaterOrEqual(c.t, version, last, "an older version") || !assert.LessOrEqual(c.t, version, c.written.Load()) {
			return
		}
		for seen := c.seen.Load(); seen < version && !c.seen.CompareAndSwap(seen, version); seen = c.seen.Load() {
		}
		last = version
	}
}

// versionOf returns the version in an answer, which all rows have in both columns.
func versionOf(text string) (int64, error) {
	var answer struct {
		Candidates []struct {
			First  float64 `json:"final_score"`
			Second float64 `json:"score"`
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || len(answer.Candidates) == 0 {
		return 0, fmt.Errorf("answer %s: %w", text, err)
	}
	first := answer.Candidates[0].First
	for _, row := range answer.Candidates {
		if row.First != first || row.Second != first {
			return 0, fmt.Errorf("an answer of two versions: %s", text)
		}
	}
	return int64(first), nil
}

// took returns how long the requests took since the last call.
func (c *changing) took() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	took := c.latency
	c.latency = nil
	return took
}

func p99(took []time.Duration) time.Duration {
	slices.Sort(took)
	if len(took) == 0 {
		return 0
	}
	return took[len(took)*99/100]
}
