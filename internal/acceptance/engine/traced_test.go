package engine_test

import (
	"cmp"
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rankd/rankd/internal/testing/enginetest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/trace"
)

// keeper is a sink that keeps all recordings. Any goroutine.
type keeper struct {
	mu   sync.Mutex
	kept []*trace.Recording
}

func (k *keeper) Take(r *trace.Recording) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept = append(k.kept, r.Keep())
}

// TestTracesOfManyRequests: of many requests at the same time, some fail. All have sound traces
// on each model and in each mode. No thread does two things at once, for whatever requests.
func TestTracesOfManyRequests(t *testing.T) {
	for _, mode := range []rankd.SchedulingMode{rankd.Adaptive, rankd.OffloadAll} {
		sink := new(keeper)
		enginetest.ForModels(t, rankd.Options{TraceSample: 1, TraceSink: sink, CPUThreads: 3, Scheduling: rankd.Scheduling{Mode: mode}}, func(t *testing.T, e *rankd.Engine) {
			sink.kept = nil
			plans, err := e.Plans()
			require.NoError(t, err)
			rng := rand.New(rand.NewPCG(1, 2))
			const requests = 150
			var answered sync.WaitGroup
			for i := range requests {
				r := rankd.Request{Plan: plans[rng.IntN(len(plans))].Name, UserID: 1 + rng.Int64N(1000), ID: strconv.Itoa(i)}
				if rng.IntN(4) == 0 {
					r.Timeout = time.Duration(1 + rng.IntN(int(20*time.Millisecond)))
				}
				answered.Add(1)
				e.Submit(context.Background(), r, func(*rankd.Answer, error) { answered.Done() })
			}
			answered.Wait()
			require.NoError(t, e.Close())
			require.Len(t, sink.kept, requests)

			type stretch struct {
				start, end time.Duration
				request    string
			}
			threads := map[string][]stretch{} // by name of the track
			ok := 0
			for _, r := range sink.kept {
				tr := r.Trace()
				require.NoError(t, tr.Check(), tr.Plan)
				assert.Equal(t, r.Err != nil, tr.Request.Error != "")
				if r.Err == nil {
					ok++
				}
				for _, n := range tr.Nodes {
					assert.True(t, r.Err != nil || n.Status == trace.OK, "%s of %s is %s", n.ID, tr.Plan, n.Status)
				}
				for _, track := range tr.Tracks {
					if track.Kind == trace.RedisTrack || track.Kind == trace.RequestTrack {
						continue // which requests share, or of which each request has its own
					}
					for _, s := range track.Slices {
						if s.End > s.Start && !s.GivenUp {
							at := time.Duration(r.Arrived)
							threads[track.Name] = append(threads[track.Name], stretch{at + s.Start, at + s.End, tr.RequestID})
						}
					}
				}
			}
			assert.NotZero(t, ok)
			for name, busy := range threads {
				slices.SortFunc(busy, func(a, b stretch) int { return cmp.Compare(a.start, b.start) })
				for i := 1; i < len(busy); i++ {
					require.LessOrEqual(t, busy[i-1].end, busy[i].start, "%s ran requests %s and %s at once", name, busy[i-1].request, busy[i].request)
				}
			}
		})
	}
}

// TestPartsAreNotGivenUp: a call of many commands leaves in several parts. Its node goes on
// when the first part is answered. The trace shows the other parts until they are answered,
// too.
func TestPartsAreNotGivenUp(t *testing.T) {
	e := enginetest.Open(t, rankd.Options{AllowRequestTrace: true, PlanFile: "parts.plan.json", PlanText: []byte(`{"schema_version": 1, "plan_name": "parts", "outputs": ["f"], "nodes": [
		{"node_id": "s", "op": "fixed_source", "inputs": [], "params": {"row_count": 400}},
		{"node_id": "f", "op": "follow", "inputs": ["s"], "params": {"endpoint": "ep_0001", "fanout": 2}}]}`)})
	a, err := e.Rank(t.Context(), rankd.Request{UserID: 1, Trace: true})
	require.NoError(t, err)
	commands, pieces := 0, 0
	for _, track := range a.Trace().Tracks {
		for _, s := range track.Slices {
			if s.Kind == trace.CallSlice {
				pieces, commands = pieces+1, commands+s.Commands
				assert.False(t, s.GivenUp, "%+v", s)
			}
		}
	}
	assert.Greater(t, pieces, 3)
	assert.Equal(t, 400+800, commands, "of lists and of users")
}

// TestExplanation: the answer is the same except for the explanation, on each model, in JSON
// and in Go.
func TestExplanation(t *testing.T) {
	enginetest.ForModels(t, rankd.Options{AllowRequestExplain: true}, func(t *testing.T, e *rankd.Engine) {
		plain, err := e.Rank(t.Context(), rankd.Request{Plan: "complex_dag", UserID: 1, ID: "a"})
		require.NoError(t, err)
		assert.Nil(t, plain.Explanation())
		want := enginetest.WithoutEngineID(t, plain.AppendJSON(nil, rankd.FormatFlat))
		for _, asked := range []string{`true`, `[139959, 42]`} {
			r, err := e.ParseRequest([]byte(`{"user_id": 1, "plan": "complex_dag", "request_id": "a", "explain": ` + asked + `}`))
			require.NoError(t, err)
			a, err := e.Rank(t.Context(), r)
			require.NoError(t, err)
			got := enginetest.WithoutEngineID(t, a.AppendJSON(nil, rankd.FormatFlat))
			why := got["explain"].(map[string]any)
			delete(got, "explain")
			assert.Equal(t, want, got)
			rows := why["rows"].([]any)
			if asked == "true" {
				assert.Len(t, rows, 50)
				continue
			}
			require.Len(t, rows, 1)
			assert.Equal(t, float64(139959), rows[0].(map[string]any)["id"])
			assert.Equal(t, "never_a_candidate", why["missing"].([]any)[0].(map[string]any)["kind"])
			doc, err := json.Marshal(a.Explanation())
			require.NoError(t, err)
			shown, err := json.Marshal(why)
			require.NoError(t, err)
			assert.JSONEq(t, string(shown), string(doc))
		}
		// An explanation may be about 100 ids at most.
		_, err = e.Rank(t.Context(), rankd.Request{Plan: "complex_dag", UserID: 1, Explain: rankd.Explain{IDs: make([]int64, 101)}})
		require.ErrorIs(t, err, rankd.ErrInvalidRequest)
	})
}

// TestExplanationMustBePermitted: an engine that permits none refuses the request.
func TestExplanationMustBePermitted(t *testing.T) {
	e := enginetest.Open(t, rankd.Options{})
	_, err := e.ParseRequest([]byte(`{"user_id": 1, "explain": true}`))
	require.ErrorIs(t, err, rankd.ErrInvalidRequest)
	assert.ErrorContains(t, err, `this engine does not allow "explain" in requests`)
	_, err = e.Rank(t.Context(), rankd.Request{Plan: "diamond", UserID: 1, Explain: rankd.Explain{All: true}})
	require.ErrorIs(t, err, rankd.ErrInvalidRequest)
	_, err = e.ParseRequest([]byte(`{"user_id": 1, "explain": false}`))
	require.NoError(t, err)
}

// TestSizeIsAboutThatOfTheJSON checks the estimate on each model, for plans of one node and of
// ten. The estimate of traces and explanations is at least half of what their JSON takes, and
// that of traces at most three times as much.
func TestSizeIsAboutThatOfTheJSON(t *testing.T) {
	enginetest.ForModels(t, rankd.Options{AllowRequestTrace: true, AllowRequestExplain: true}, func(t *testing.T, e *rankd.Engine) {
		plans, err := e.Plans()
		require.NoError(t, err)
		for _, p := range plans {
			plain := rankd.Request{Plan: p.Name, UserID: 7}
			traced, explained := plain, plain
			traced.Trace, explained.Explain.All = true, true
			_, err := e.Rank(context.Background(), plain) // Of the first one drift is counted, so it keeps all rows.
			require.NoError(t, err)
			var first [2]int // of the plain answer: its size, and that of its JSON
			for i, r := range []rankd.Request{plain, traced, explained} {
				a, err := e.Rank(context.Background(), r)
				require.NoError(t, err)
				size, json := a.Size(), len(a.AppendJSON(nil, rankd.FormatFlat))
				if i == 0 {
					first = [2]int{size, json}
				}
				assert.GreaterOrEqual(t, 2*(size-first[0]), json-first[1], "%s, request %d", p.Name, i)
				if r.Trace {
					assert.LessOrEqual(t, size-first[0], 3*(json-first[1]), "%s, request %d", p.Name, i)
				}
			}
		}
	})
}

// TestSizeOfAnErrorHasItsTrace does the same for a request that fails.
func TestSizeOfAnErrorHasItsTrace(t *testing.T) {
	e := enginetest.Open(t, rankd.Options{AllowRequestTrace: true, Plans: enginetest.Plans(map[string]string{
		"late": `{"node_id": "src", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 1}},
			{"node_id": "out", "op": "test::sleep", "inputs": ["src"], "params": {"duration_ms": 60000}}`,
	})})
	for _, traced := range []bool{false, true} {
		_, err := e.Rank(context.Background(), rankd.Request{Plan: "late", UserID: 7, Trace: traced, Timeout: 10 * time.Millisecond})
		var failed *rankd.Error
		require.ErrorAs(t, err, &failed)
		assert.InEpsilon(t, len(failed.AppendJSON(nil)), failed.Size(), 0.8)
		assert.Equal(t, traced, failed.Size() > 500)
	}
}
