package rankd_test

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

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

// TestTracesOfManyRequests: many requests side by side, some of which fail, have sound traces on each model and in each mode.
// No thread does two things at once, whichever requests they are for.
func TestTracesOfManyRequests(t *testing.T) {
	for _, mode := range []rankd.SchedulingMode{rankd.Adaptive, rankd.OffloadAll} {
		sink := new(keeper)
		forModels(t, rankd.Options{TraceSample: 1, TraceSink: sink, CPUThreads: 3, Scheduling: rankd.Scheduling{Mode: mode}}, func(t *testing.T, e *rankd.Engine) {
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
						continue // which requests share, or of which each has its own
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

// TestPartsAreNotGivenUp: a call of many commands leaves in several pieces, and its node goes on when the first is answered. The trace
// shows the others until they are answered, too.
func TestPartsAreNotGivenUp(t *testing.T) {
	e := open(t, rankd.Options{AllowRequestTrace: true, PlanFile: "parts.plan.json", PlanText: []byte(`{"schema_version": 1, "plan_name": "parts", "outputs": ["f"], "nodes": [
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
