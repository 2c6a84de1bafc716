package rankd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/testing/enginetest"
	"github.com/rankd/rankd/internal/testing/registrytest"
)

// servedLine is a line of the log, as readers see it.
type servedLine struct {
	Version         int    `json:"served_log"`
	EngineRequestID string `json:"engine_request_id"`
	RequestID       string `json:"request_id"`
	UserID          any    `json:"user_id"`
	PlanVersion     struct {
		Plan, Digest string
		InsteadOf    string `json:"instead_of"`
	} `json:"plan_version"`
	Degraded    bool
	Delivered   bool
	Traffic     string
	Probability float64
	At          string
	Outputs     []struct {
		Name      string
		IDs       []any            `json:"ids"`
		Columns   map[string][]any `json:"columns"`
		Absent    []int
		AtDefault map[string][]int `json:"at_default"`
		Made      map[string][]any
	}
	Others *struct {
		IDs         []any            `json:"ids"`
		Columns     map[string][]any `json:"columns"`
		Pool        int
		Probability float64
	}
}

func servedLines(t *testing.T, text string) (lines []servedLine) {
	t.Helper()
	for line := range strings.Lines(text) {
		var l servedLine
		require.NoError(t, json.Unmarshal([]byte(line), &l), line)
		assert.Equal(t, 1, l.Version)
		lines = append(lines, l)
	}
	return lines
}

// servedPlan has ten rows with score = id, drops those below 3, overwrites score by 2*score behind "scored", and shows the best three.
func servedPlan(log string) fstest.MapFS {
	return fstest.MapFS{"p.plan.json": {Data: []byte(`{"schema_version": 1, "plan_name": "p", "outputs": ["best"], "capabilities_required": ["cap.rankd.served_log.v1"],` + log + `
		"nodes": [{"node_id": "rows", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 10}},
			{"node_id": "first", "op": "core::vm", "inputs": ["rows"], "params": {"out_key": 2001, "expr_id": "id"}},
			{"node_id": "kept", "op": "core::filter", "inputs": ["first"], "params": {"pred_id": "high"}},
			{"node_id": "again", "op": "core::vm", "inputs": ["kept"], "params": {"out_key": 2001, "expr_id": "twice"}},
			{"node_id": "sorted", "op": "core::sort", "inputs": ["again"], "params": {"by": 2001, "order": "desc"}},
			{"node_id": "best", "op": "core::take", "inputs": ["sorted"], "params": {"count": 3}}],
		"expr_table": {"id": {"op": "key_ref", "key_id": 1}, "twice": {"op": "mul", "a": {"op": "key_ref", "key_id": 2001}, "b": {"op": "const_number", "value": 2}}},
		"pred_table": {"high": {"op": "cmp", "cmp": ">=", "a": {"op": "key_ref", "key_id": 2001}, "b": {"op": "const_number", "value": 3}}}}`)}}
}

// TestServedLines: a line has what was scored, of the answer and of others, on each engine.
func TestServedLines(t *testing.T) {
	ids := func(n ...float64) (all []any) {
		for _, id := range n {
			all = append(all, id)
		}
		return all
	}
	for _, c := range []struct {
		name, log, at string
		scores, made  []any // of rows 10, 9 and 8
		pool          int
	}{
		{"the input of the last cut", ``, "sorted", ids(20, 18, 16), nil, 0},
		{"a node before the score is overwritten", `"log": {"at": "kept"},`, "kept", ids(10, 9, 8), ids(20, 18, 16), 0},
		{"others behind the filter", `"log": {"at": "kept", "others": 3},`, "kept", ids(10, 9, 8), ids(20, 18, 16), 5},
		{"others of a sort that a take follows", `"log": {"others": 20},`, "sorted", ids(20, 18, 16), nil, 5},
		{"others before the filter", `"log": {"at": "first", "others": 7},`, "first", ids(10, 9, 8), ids(20, 18, 16), 7},
		{"a column that at lacks", `"log": {"at": "rows", "columns": [2001]},`, "rows", nil, ids(20, 18, 16), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, model := range []rankd.Model{rankd.Reactor, rankd.Pool, rankd.Sequential} {
				var log enginetest.SyncBuffer
				e := enginetest.Open(t, rankd.Options{Plans: servedPlan(c.log), Plan: "p", Model: model, Served: &log})
				a, err := e.Rank(t.Context(), rankd.Request{UserID: 7, ID: "visit"})
				require.NoError(t, err)
				var shown struct {
					ID string `json:"engine_request_id"`
				}
				require.NoError(t, json.Unmarshal(a.AppendJSON(nil, rankd.FormatFlat), &shown))
				require.NoError(t, e.Close())
				assert.Equal(t, rankd.ServedLines{Written: 1}, e.ServedLines())

				lines := servedLines(t, log.String())
				require.Len(t, lines, 1)
				l := lines[0]
				assert.Equal(t, shown.ID, l.EngineRequestID)
				assert.Equal(t, "visit", l.RequestID)
				assert.Equal(t, 7.0, l.UserID)
				assert.Equal(t, "p", l.PlanVersion.Plan)
				assert.Equal(t, a.Version().Digest, l.PlanVersion.Digest)
				assert.Equal(t, []any{true, false, 1.0, ""}, []any{l.Delivered, l.Degraded, l.Probability, l.Traffic})
				assert.Equal(t, c.at, l.At)
				require.Len(t, l.Outputs, 1)
				assert.Equal(t, ids(10, 9, 8), l.Outputs[0].IDs)
				assert.Equal(t, c.scores, l.Outputs[0].Columns["final_score"], l.Outputs[0].Columns)
				assert.Equal(t, c.made, l.Outputs[0].Made["final_score"], l.Outputs[0].Made)
				assert.Empty(t, l.Outputs[0].Absent)
				if c.pool == 0 {
					assert.Nil(t, l.Others)
					continue
				}
				require.NotNil(t, l.Others)
				drawn := min(c.pool, map[string]int{"others behind the filter": 3}[c.name])
				if drawn == 0 {
					drawn = c.pool
				}
				assert.Len(t, l.Others.IDs, drawn)
				assert.Equal(t, c.pool, l.Others.Pool)
				assert.InDelta(t, float64(drawn)/float64(c.pool), l.Others.Probability, 1e-15)
				for i, id := range l.Others.IDs {
					assert.NotContains(t, l.Outputs[0].IDs, id)
					score := id.(float64)
					if c.at == "sorted" {
						score *= 2
					}
					assert.Equal(t, score, l.Others.Columns["final_score"][i])
					if c.at != "first" {
						assert.GreaterOrEqual(t, id, 3.0, "the filter has dropped it")
					}
				}
			}
		})
	}
}

// TestRowsOfAnotherWay: a line says which rows of an output did not come through the node of the log.
func TestRowsOfAnotherWay(t *testing.T) {
	for _, model := range []rankd.Model{rankd.Reactor, rankd.Pool, rankd.Sequential} {
		var log enginetest.SyncBuffer
		plans := servedPlan(`"log": {"at": "kept"},`)
		plans["p.plan.json"].Data = bytes.Replace(plans["p.plan.json"].Data, []byte(`"outputs": ["best"]`), []byte(`"outputs": ["kept", "first"]`), 1)
		e := enginetest.Open(t, rankd.Options{Plans: plans, Plan: "p", Model: model, Served: &log})
		_, err := e.Rank(t.Context(), rankd.Request{UserID: 7})
		require.NoError(t, err)
		require.NoError(t, e.Close())
		kept, first := servedLines(t, log.String())[0].Outputs[0], servedLines(t, log.String())[0].Outputs[1]
		assert.Equal(t, []any{3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0}, kept.Columns["final_score"])
		assert.Empty(t, kept.Absent)
		assert.Equal(t, []any{nil, nil, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0}, first.Columns["final_score"])
		assert.Equal(t, []int{0, 1}, first.Absent)
	}
}

// TestWhoHasNoLine: a user without consent, outside of the share, or whose request failed.
func TestWhoHasNoLine(t *testing.T) {
	var log enginetest.SyncBuffer
	e := enginetest.Open(t, rankd.Options{Plans: servedPlan(""), Plan: "p", Served: &log, ServedUsers: 10, AllowRequestTraffic: true})
	for user := range int64(1000) {
		_, err := e.Rank(t.Context(), rankd.Request{UserID: user + 1})
		require.NoError(t, err)
		_, err = e.Rank(t.Context(), rankd.Request{UserID: user + 1, NoConsent: true})
		require.NoError(t, err)
	}
	_, err := e.Rank(t.Context(), rankd.Request{UserID: 1, Plan: "none"})
	require.Error(t, err)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = e.Rank(gone, rankd.Request{UserID: 1})
	require.Error(t, err)
	require.NoError(t, e.Close())
	lines := servedLines(t, log.String())
	assert.InDelta(t, 100, len(lines), 40)
	for _, l := range lines {
		assert.Equal(t, 0.1, l.Probability)
	}
}

func TestTrafficNeedsPermission(t *testing.T) {
	for _, allowed := range []bool{true, false} {
		var log enginetest.SyncBuffer
		e := enginetest.Open(t, rankd.Options{Plans: servedPlan(""), Plan: "p", Served: &log, AllowRequestTraffic: allowed})
		_, err := e.Rank(t.Context(), rankd.Request{UserID: 1, Traffic: "bot"})
		_, bad := e.Rank(t.Context(), rankd.Request{UserID: 1, Traffic: "robot"})
		require.ErrorContains(t, bad, "test, bot, internal")
		require.NoError(t, e.Close())
		if !allowed {
			require.ErrorContains(t, err, `"traffic"`)
			assert.Empty(t, log.String())
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, "bot", servedLines(t, log.String())[0].Traffic)
	}
}

// brokenWriter takes so many bytes, and then fails.
type brokenWriter struct {
	bytes.Buffer
	left int
}

var errFull = errors.New("no space left on device")

func (w *brokenWriter) Write(p []byte) (int, error) {
	n := min(w.left, len(p))
	w.left -= n
	_, _ = w.Buffer.Write(p[:n])
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}

// TestLostLinesAreCounted: answers go on, and each that should have had a line is written or counted.
func TestLostLinesAreCounted(t *testing.T) {
	for _, left := range []int{0, 1000, 20_000, math.MaxInt} {
		log := &brokenWriter{left: left}
		e := enginetest.Open(t, rankd.Options{Plans: servedPlan(""), Plan: "p", Served: log})
		for range 100 {
			_, err := e.Rank(t.Context(), rankd.Request{UserID: 1})
			require.NoError(t, err)
		}
		require.NoError(t, e.Close())
		n := e.ServedLines()
		assert.EqualValues(t, 100, n.Written+n.Dropped+n.Failed, fmt.Sprint(left))
		whole := log.String()[:strings.LastIndexByte(log.String(), '\n')+1]
		assert.Len(t, servedLines(t, whole), int(n.Written))
	}
}

// stuckWriter takes nothing until it is released.
type stuckWriter struct{ released chan struct{} }

func (w stuckWriter) Write(p []byte) (int, error) { <-w.released; return len(p), nil }

func TestAWriterThatIsStuckDelaysNoAnswer(t *testing.T) {
	w := stuckWriter{make(chan struct{})}
	e := enginetest.Open(t, rankd.Options{Plans: servedPlan(""), Plan: "p", Served: w})
	for range 1000 {
		_, err := e.Rank(t.Context(), rankd.Request{UserID: 1})
		require.NoError(t, err)
	}
	require.NoError(t, e.Close(), "which does not wait for the writer")
	n := e.ServedLines()
	assert.Positive(t, n.Dropped)
	assert.EqualValues(t, 1000, n.Written+n.Dropped+n.Failed, "those that the writer has not taken are lost, too")
	close(w.released)
}

// TestOthersAreDrawnUniformly: over many answers each row of the pool is drawn about as often.
func TestOthersAreDrawnUniformly(t *testing.T) {
	var log enginetest.SyncBuffer
	e := enginetest.Open(t, rankd.Options{Plans: servedPlan(`"log": {"at": "kept", "others": 2},`), Plan: "p", Served: &log})
	const n = 2000
	for range n {
		_, err := e.Rank(t.Context(), rankd.Request{UserID: 1})
		require.NoError(t, err)
	}
	require.NoError(t, e.Close())
	drawn := make(map[any]int)
	for _, l := range servedLines(t, log.String()) {
		assert.Equal(t, []any{5, 0.4}, []any{l.Others.Pool, l.Others.Probability})
		for _, id := range l.Others.IDs {
			drawn[id]++
		}
	}
	assert.Len(t, drawn, 5)
	for id, count := range drawn {
		assert.InDelta(t, 0.4*n, count, 150, id) // seven standard deviations
	}
}

func TestServedOptionsAreChecked(t *testing.T) {
	for want, o := range map[string]rankd.Options{
		"ServedUsers must be 0 to 100": {ServedUsers: 101, Served: new(bytes.Buffer)}, "need Served": {ServedUsers: 5},
		"ServedUserKeys": {Served: new(bytes.Buffer), ServedUserKeys: "no/such/file"},
	} {
		_, err := rankd.Open(o)
		require.ErrorContains(t, err, want)
	}
}

// TestServedLinesOfAFallback: a line has the rows of the plan that has answered, and says in whose place.
func TestServedLinesOfAFallback(t *testing.T) {
	plans := fstest.MapFS{
		"q.plan.json": {Data: bytes.Replace(servedPlan(`"log": {"at": "kept", "others": 3},`)["p.plan.json"].Data, []byte(`"plan_name": "p"`), []byte(`"plan_name": "q"`), 1)},
		"p.plan.json": {Data: []byte(`{"schema_version": 1, "plan_name": "p", "outputs": ["rows"], "min_rows": [5], "below": "q", "lenient": {"answer_by": "50%"},
			"capabilities_required": ["cap.rankd.lenient.v1", "cap.rankd.min_rows.v1", "cap.rankd.served_log.v1"], "log": {"at": "rows", "others": 1},
			"nodes": [{"node_id": "rows", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 2}}]}`)},
		"bad.plan.json": {Data: []byte(`{"schema_version": 1, "plan_name": "bad", "outputs": ["b"], "nodes": [{"node_id": "a", "op": "test::fixed_source", "inputs": [],
			"params": {"row_count": 3}}, {"node_id": "b", "op": "test::sleep", "inputs": ["a"], "params": {"duration_ms": 0, "fail_after_sleep": true}}]}`)},
	}
	plans["r.plan.json"] = &fstest.MapFile{Data: bytes.ReplaceAll(bytes.ReplaceAll(plans["p.plan.json"].Data, []byte(`"q"`), []byte(`"bad"`)), []byte(`"p"`), []byte(`"r"`))}
	for _, model := range []rankd.Model{rankd.Reactor, rankd.Pool, rankd.Sequential} {
		var log enginetest.SyncBuffer
		e := enginetest.Open(t, rankd.Options{Plans: plans, Plan: "p", Model: model, Served: &log})
		for i := range 6 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			_, err := e.Rank(ctx, rankd.Request{UserID: 7, Plan: [...]string{"p", "r"}[i%2]})
			cancel()
			require.NoError(t, err)
		}
		require.NoError(t, e.Close())
		lines := servedLines(t, log.String())
		require.Len(t, lines, 6)
		answered := make(map[string]int)
		for _, l := range lines { // in the order in which they were made
			if answered[l.PlanVersion.Plan]++; l.PlanVersion.Plan == "r" { // The fallback has failed.
				assert.Empty(t, l.PlanVersion.InsteadOf)
				assert.Equal(t, "rows", l.At)
				require.Len(t, l.Outputs, 1)
				assert.Equal(t, []any{1.0, 2.0}, l.Outputs[0].IDs)
				continue
			}
			assert.Equal(t, "p", l.PlanVersion.InsteadOf)
			assert.Equal(t, "kept", l.At)
			require.Len(t, l.Outputs, 1)
			assert.Equal(t, []any{10.0, 9.0, 8.0}, l.Outputs[0].IDs)
			assert.Equal(t, []any{10.0, 9.0, 8.0}, l.Outputs[0].Columns["final_score"])
			assert.Equal(t, 5, l.Others.Pool)
		}
		assert.Equal(t, map[string]int{"q": 3, "r": 3}, answered)
	}
}

// TestPrivateColumnsAreLeftOut: what the registry marks is in a line only if the plan names it, wherever it comes from.
func TestPrivateColumnsAreLeftOut(t *testing.T) {
	tables := registrytest.Tables{Keys: registrytest.ID + registrytest.Key(2001, "final_score", "float", registrytest.Writable, "private = true"), Endpoints: registrytest.Redis}.FS()
	for text, shown := range map[string]bool{
		`"log": {"at": "kept"},`: false, `"log": {"at": "rows"},`: false, `"log": {"at": "first", "others": 2},`: false,
		`"log": {"at": "kept", "columns": [2001], "others": 2},`: true, `"log": {"at": "rows", "columns": [2001]},`: true,
	} {
		var log enginetest.SyncBuffer
		e := enginetest.Open(t, rankd.Options{Plans: servedPlan(text), Plan: "p", Served: &log, Registry: tables})
		_, err := e.Rank(t.Context(), rankd.Request{UserID: 7})
		require.NoError(t, err)
		require.NoError(t, e.Close())
		assert.Len(t, servedLines(t, log.String())[0].Outputs[0].IDs, 3)
		assert.Equal(t, shown, strings.Contains(log.String(), "final_score"), log.String())
	}
}

// TestALibraryThatHasGivenUpGetsAnUndeliveredLine: the context of the request ends before the answer is there for it.
func TestALibraryThatHasGivenUpGetsAnUndeliveredLine(t *testing.T) {
	for _, gone := range []bool{false, true} {
		var log enginetest.SyncBuffer
		e := enginetest.Open(t, rankd.Options{Plans: servedPlan(""), Plan: "p", Served: &log})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		e.Submit(ctx, rankd.Request{UserID: 7}, func(_ *rankd.Answer, err error) {
			if gone {
				cancel()
			}
			ended <- err
		})
		require.NoError(t, <-ended)
		require.NoError(t, e.Close())
		cancel()
		assert.Equal(t, !gone, servedLines(t, log.String())[0].Delivered)
	}
}

// TestDriftIsOfUsers: requests of tests, bots and those who look for a fault are not counted.
func TestDriftIsOfUsers(t *testing.T) {
	for _, c := range []struct {
		r     rankd.Request
		count int
	}{{rankd.Request{UserID: 7}, 1}, {rankd.Request{UserID: 7, Traffic: "bot"}, 0}, {rankd.Request{UserID: 7, Traffic: "test"}, 0}, {rankd.Request{UserID: 7, Trace: true}, 0}} {
		e := enginetest.Open(t, rankd.Options{Plans: servedPlan(""), Plan: "p", AllowRequestTraffic: true, AllowRequestTrace: true})
		_, err := e.Rank(t.Context(), c.r)
		require.NoError(t, err)
		require.NoError(t, e.Close())
		_, sampled := e.Drift()
		assert.Len(t, sampled, c.count, c.r)
	}
}
