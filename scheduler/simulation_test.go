package scheduler

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/outcome"
)

var (
	simSeed  = flag.Int64("seed", -1, "replay this one seed of the simulation; with -v the log is printed")
	simSeeds = flag.Int64("seeds", 400, "number of seeds of the simulation")
	simFirst = flag.Int64("first_seed", 0, "the first of these")
)

// TestSimulation plays the engine in simulated worlds, one per seed, and checks the invariants
// of each: see docs/simulation.md. A simulation in which nothing goes wrong proves nothing. So
// within a few hundred seeds each kind of answer must be given and each kind of trouble must be
// met.
func TestSimulation(t *testing.T) {
	if *simSeed >= 0 {
		replay(t, uint64(*simSeed))
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(1500)) // The simulation makes garbage and holds little.
	seen := &encounters{kinds: map[string]int{}}
	t.Run("seeds", func(t *testing.T) { playSeeds(t, seen) })
	if *simFirst == 0 && *simSeeds >= 400 && !t.Failed() {
		t.Log(seen.kinds, seen.mostWoken)
		seen.checkThatNothingIsMissing(t)
	}
}

// playSeeds plays the seeds, and some that once failed, on all processors.
func playSeeds(t *testing.T, seen *encounters) {
	t.Run("that once failed", func(t *testing.T) {
		t.Parallel()
		lab := openSimLab(t)
		for _, seed := range []uint64{82951, 607836, 842715, // a trace that held only the first events
			26776, // a node of a cluster that has left the map while its last replies are on their way
			6415,  // a place given back to the second of two flows to which one is owed
		} {
			assert.NoError(t, lab.run(seed, nil), "seed %d", seed)
		}
	})
	var next atomic.Int64
	next.Store(*simFirst)
	end := *simFirst + *simSeeds
	for shard := range runtime.GOMAXPROCS(0) {
		t.Run(fmt.Sprintf("shard %d", shard), func(t *testing.T) {
			t.Parallel()
			lab := openSimLab(t)
			for seed := next.Add(1) - 1; seed < end && !t.Failed(); seed = next.Add(1) - 1 {
				if err := lab.run(uint64(seed), nil); err != nil {
					next.Store(end) // one is enough
					t.Fatalf("seed %d: %v\nreplay: go test ./scheduler -run TestSimulation -v -seed=%d", seed, err, seed)
				}
				seen.add(lab.world)
			}
		})
	}
}

// replay plays one seed and prints its log.
func replay(t *testing.T, seed uint64) {
	lab := openSimLab(t)
	var log bytes.Buffer
	err := lab.run(seed, &log)
	if testing.Verbose() {
		_, _ = log.WriteTo(os.Stdout)
	}
	require.NoError(t, err)
}

func openSimLab(t testing.TB) *simLab {
	lab, err := newSimLab()
	require.NoError(t, err)
	t.Cleanup(lab.close)
	return lab
}

// withoutRaceDetector skips a test of the simulation itself, which does not look for races. CI
// also plays the simulation without the detector.
func withoutRaceDetector(t *testing.T) {
	if raceDetector {
		t.Skip("runs without -race")
	}
}

// TestSimulationIsDeterministic: a seed has one log, whatever was played before.
func TestSimulationIsDeterministic(t *testing.T) {
	withoutRaceDetector(t)
	first, second := openSimLab(t), openSimLab(t)
	for seed := range uint64(40) {
		var a, b bytes.Buffer
		require.NoError(t, first.run(seed, &a))
		require.NoError(t, second.run(seed+1000, nil)) // another past
		require.NoError(t, second.run(seed, &b))
		require.NotZero(t, a.Len())
		if !assert.Equal(t, a.String(), b.String(), "seed %d", seed) {
			return
		}
	}
}

// encounters counts what the seeds have met. Any goroutine.
type encounters struct {
	mu        sync.Mutex
	kinds     map[string]int
	mostWoken int // sleeps of orphans that have ended at one instant
}

// add counts what a world has met.
func (e *encounters) add(w *simWorld) {
	e.mu.Lock()
	defer e.mu.Unlock()
	seen := e.kinds
	for kind, n := range w.answers {
		seen["answer: "+kind] += n
	}
	counts := w.engine.counted()
	seen["late completions"] += int(counts.LateCompletions)
	seen["cancelled bodies"] += int(counts.Cancelled)
	seen["cancelled jobs"] += int(w.pool.Stats().Cancelled)
	seen["inline runs"] += w.inline
	seen["nodes played again"], seen["reads played again"] = seen["nodes played again"]+w.played, seen["reads played again"]+w.playedReads
	all, _ := w.engine.placementMetrics()
	seen["fused nodes"] += int(all.Fused)
	seen["selections"] += int(all.TopK)
	seen["deferred nodes"] += int(all.Deferred)
	seen["full queues"] += w.queueFull
	seen["computations of bodies on the loop"] += w.computed
	seen["late bodies on the loop"] += int(w.late)
	seen["stopped bodies on the loop"] += int(w.stopped)
	seen["further attempts"] += w.retries
	seen["sleeps begun after Close"] += w.lateSleeps
	seen["functions that nobody waits for"] += w.lateFunctions
	seen["calls given up before they have left"] += w.givenUp
	seen["exchanges with a service"] += w.service.carried
	seen["exchanges given up on their way"] += w.service.gaveUp
	seen["faults of a service"] += w.service.faults
	e.mostWoken = max(e.mostWoken, w.wokenMax)
	for what, n := range w.traces.seen {
		seen["traces: "+what] += n
	}
	for _, met := range []struct {
		who   string
		times map[string]int
	}{{"cluster", w.cluster.met}, {"sentinels", w.master.met}} {
		for what, n := range met.times {
			seen[met.who+": "+what] += n
		}
	}
	for _, c := range w.clients {
		s := c.Stats()
		seen["redirected commands"] += int(s.Redirected)
		seen["reconnects"] += int(s.Reconnects)
		seen["dropped replies"] += int(s.Dropped)
		seen["shared reads"] += int(s.Asked - s.Commands)
		seen["replies too large"] += int(s.TooLarge)
		seen["batches sent in parts"] += w.parts
	}
}

// checkThatNothingIsMissing fails the test if something has never been met.
func (e *encounters) checkThatNothingIsMissing(t *testing.T) {
	seen := e.kinds
	for _, kind := range answerKinds {
		assert.NotZero(t, seen["answer: "+kind.name], kind.name)
	}
	for _, status := range []outcome.NodeStatus{outcome.NodeOK, outcome.NodePartial, outcome.NodeFallback, outcome.NodeLate, outcome.NodeFailed} {
		assert.NotZero(t, seen["answer: node "+string(status)], status)
	}
	for _, what := range []string{"answer: of a fallback", "answer: in place of a fallback that failed", "answer: too few rows", "answer: below minimum", "late completions", "cancelled bodies", "cancelled jobs", "full queues", "reconnects",
		"nodes played again", "reads played again", "inline runs", "fused nodes", "selections", "deferred nodes", "dropped replies", "batches sent in parts", "late bodies on the loop", "stopped bodies on the loop", "further attempts",
		"sleeps begun after Close", "calls given up before they have left", "shared reads", "replies too large", "traces: dropped", "traces: timers", "traces: gaps", "traces: flows of redis", "traces: flows of offload",
		"traces: flows of timer", "traces: flows of http", "exchanges with a service", "exchanges given up on their way", "faults of a service", "traces: followers inline", "traces: followers pool", "traces: stretches on the loop",
		"redirected commands", "cluster: MOV", "cluster: ASK", "cluster: TRYAGAIN", "cluster: failovers", "cluster: strangers", "cluster: commands of a node that is down", "cluster: stale maps", "cluster: half maps",
		"sentinels: changes", "sentinels: named ones gone", "sentinels: votes", "sentinels: liars", "sentinels: liars that agree", "sentinels: old hands", "sentinels: old names", "sentinels: roles of an old master"} {
		assert.NotZero(t, seen[what], what)
	}
	assert.Greater(t, e.mostWoken, 1000, "sleeps of orphans that have ended at one instant")
}

// BenchmarkSimulation reports the cost of one seed.
func BenchmarkSimulation(b *testing.B) {
	lab := openSimLab(b)
	b.ReportAllocs()
	requests := 0
	for seed := uint64(0); b.Loop(); seed++ {
		require.NoError(b, lab.run(seed, nil))
		requests += len(lab.world.requests)
	}
	b.ReportMetric(float64(requests)/float64(b.N), "requests/op")
}
