package compare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/bench/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reportOf is a round of a second in which each latency was measured once.
func reportOf(t testing.TB, latencies ...time.Duration) *worker.Report {
	h := load.NewHistogram()
	for _, l := range latencies {
		require.NoError(t, h.RecordValue(int64(l)))
	}
	encoded, err := h.EncodeV2()
	require.NoError(t, err)
	n := int64(len(latencies))
	return &worker.Report{
		Elapsed: time.Second, Answered: n, Latency: string(encoded),
		CPU: time.Duration(n) * 20 * time.Microsecond, RedisCPU: time.Duration(n) * 5 * time.Microsecond,
		Allocs: uint64(n) * 30, AllocBytes: uint64(n) * 1500, RSSBytes: 64 << 20, LiveBytes: 24 << 20,
		Traffic: &load.Traffic{RoundTrips: uint64(n) * 3, Asked: uint64(n) * 22, Commands: uint64(n) * 11, BytesSent: uint64(n) * 374, BytesReceived: uint64(n) * 519,
			Cache: &load.Cache{Hits: uint64(n) * 9, Misses: uint64(n), Invalidated: uint64(n) * 2, Evicted: uint64(n) * 3, Bytes: 32 << 20, HitAge: float64(n) * 4.5}},
	}
}

// spread returns n latencies from base on, rising by a hundredth of it each.
func spread(n int, base time.Duration) (l []time.Duration) {
	for i := range n {
		l = append(l, base+time.Duration(i)*base/100)
	}
	return l
}

func TestMeasureInterleaves(t *testing.T) {
	var order []string
	var steps []Step
	cells, _, err := Measure(t.Context(), Grid{
		Engines: []string{"a", "b"}, Modes: []Modes{{Placement: "adaptive"}, {Reads: "shared"}},
		Points: []Point{{Concurrency: 1}, {Concurrency: 2}}, Rounds: 2,
		Run: func(_ context.Context, engine int, at Point) (*worker.Report, error) {
			order = append(order, fmt.Sprintf("%c%d", 'a'+engine, at.Concurrency))
			return reportOf(t, time.Millisecond), nil
		},
		Progress: func(s Step) { steps = append(steps, s) },
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"a1", "b1", "a1", "b1", "a2", "b2", "a2", "b2"}, order)
	var got []string
	for _, c := range cells {
		got = append(got, fmt.Sprint(c.Engine, c.Concurrency, c.Placement, c.Reads))
	}
	assert.Equal(t, []string{"a1adaptive", "b1shared", "a2adaptive", "b2shared"}, got)
	require.Len(t, steps, 8)
	assert.Equal(t, Step{Done: 8, All: 8, Engine: "b", At: Point{Concurrency: 2}, Report: steps[7].Report}, steps[7])
}

// TestCell computes the figures of a known measurement: b has half the throughput of a in
// each round, and twice the latency, while both drift.
func TestCell(t *testing.T) {
	round := -1
	cells, _, err := Measure(t.Context(), Grid{
		Engines: []string{"a", "b"}, Points: []Point{{Concurrency: 4}}, Rounds: 6,
		Run: func(_ context.Context, engine int, _ Point) (*worker.Report, error) {
			if engine == 0 {
				round++
				return reportOf(t, spread(100+10*round, time.Millisecond)...), nil
			}
			return reportOf(t, spread(50+5*round, 4*time.Millisecond)...), nil
		},
	})
	require.NoError(t, err)
	a, b := cells[0], cells[1]
	assert.Equal(t, 125.0, a.Throughput.Median)
	assert.Equal(t, 100.0, *a.Throughput.Low)
	assert.Equal(t, 150.0, *a.Throughput.High)
	assert.Equal(t, "±20%", a.Throughput.Spread())
	assert.Equal(t, "1.00× (1.00–1.00)", a.ThroughputRatio.Factor())
	assert.Equal(t, "0.500× (0.500–0.500)", b.ThroughputRatio.Factor(), "drift cancels out")
	assert.Greater(t, b.P99Ratio.Median, 2.5)
	assert.EqualValues(t, 750, a.Requests)
	assert.InEpsilon(t, 2490, a.Latency.Max, 0.001, "of all rounds")
	assert.InEpsilon(t, 1000+10*62, a.Latency.P50, 0.02, "of all rounds together")
	require.Len(t, a.Rounds, 6)
	assert.Equal(t, 150.0, a.Rounds[5].Throughput)
	assert.Equal(t, PerRequest{
		CPU: 20, RedisCPU: 5, Allocs: 30, AllocBytes: 1500,
		Traffic: &TrafficPerRequest{RoundTrips: 3, Asked: 22, Commands: 11, BytesSent: 374, BytesReceived: 519,
			Cache: &CachePerRequest{Hits: 9, Misses: 1, Invalidated: 2, Evicted: 3, MB: 32, HitAge: 0.5}},
	}, a.PerRequest)
	assert.Equal(t, [2]float64{64, 24}, [2]float64{a.RSSMB, a.LiveMB})
}

func TestAFailedRoundFailsItsCellOnly(t *testing.T) {
	cells, _, err := Measure(t.Context(), Grid{
		Engines: []string{"a", "b"}, Points: []Point{{Concurrency: 1}}, Rounds: 2,
		Run: func(_ context.Context, engine int, _ Point) (*worker.Report, error) {
			if engine == 0 {
				return &worker.Report{Failure: "no such plan"}, nil
			}
			return reportOf(t, time.Millisecond), nil
		},
	})
	require.NoError(t, err)
	assert.Equal(t, "no such plan", cells[0].Failure)
	assert.Equal(t, 1.0, cells[1].Throughput.Median)
	assert.Zero(t, cells[1].ThroughputRatio.Median, "to nothing there is no ratio")
}

func TestMeasureErrors(t *testing.T) {
	broken := errors.New("broken")
	g := Grid{Engines: []string{"a"}, Points: []Point{{Conditions: Conditions{RedisLatency: time.Millisecond}, Concurrency: 1}}, Rounds: 1}
	g.Run = func(context.Context, int, Point) (*worker.Report, error) { return nil, broken }
	_, _, err := Measure(t.Context(), g)
	assert.ErrorIs(t, err, broken)
	assert.ErrorContains(t, err, "a, 1 in flight, Redis +1ms")
	g.Run = func(context.Context, int, Point) (*worker.Report, error) { return &worker.Report{Latency: "?"}, nil }
	_, _, err = Measure(t.Context(), g)
	assert.ErrorContains(t, err, "latencies")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = Measure(ctx, g)
	assert.ErrorIs(t, err, context.Canceled)
}

// Foreign writes begin before a round, end after it, and are counted for each engine.
func TestForeignWrites(t *testing.T) {
	var log []string
	said := func(text string) { log = append(log, text) }
	broken := error(nil)
	g := Grid{
		Engines: []string{"a", "b"}, Rounds: 1,
		Points: []Point{{Concurrency: 1}, {Conditions: Conditions{ForeignWrites: 100}, Concurrency: 1}},
		Run: func(_ context.Context, engine int, at Point) (*worker.Report, error) {
			said(fmt.Sprintf("run %d, %s", engine, at))
			return reportOf(t, time.Millisecond), nil
		},
		Write: func(_ context.Context, at Point) func() (float64, error) {
			said(fmt.Sprintf("begin %d", at.ForeignWrites))
			return func() (float64, error) { said("end"); return 90 + float64(len(log)), broken }
		},
	}
	cells, _, err := Measure(t.Context(), g)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"run 0, 1 in flight", "run 1, 1 in flight", "begin 100", "run 0, 1 in flight, 100 foreign writes/s", "end",
		"begin 100", "run 1, 1 in flight, 100 foreign writes/s", "end",
	}, log)
	assert.Equal(t, []float64{0, 0, 95, 98}, []float64{cells[0].Written, cells[1].Written, cells[2].Written, cells[3].Written})

	c := &Comparison{Cells: cells}
	var out bytes.Buffer
	require.NoError(t, c.WriteText(&out))
	assert.Regexp(t, `(?s)nobody else writes\n.* 1 +a.* 1 +b.*somebody else writes 100 keys a second \(reached: 95 to 98\)\n.* 1 +a.* 1 +b`, out.String())
	assert.NotContains(t, out.String(), "round trip to Redis:")
	c.Cells[2].RedisLatency, c.Cells[3].RedisLatency = time.Second, time.Second
	assert.Equal(t, "Redis +1s, 100 foreign writes/s", c.Cells[2].Conditions.String())

	// Whoever keeps values has their age measured in a round of its own, with the writes beside it.
	log = nil
	kept := reportOf(t, time.Millisecond)
	kept.Traffic = &load.Traffic{Cache: &load.Cache{Hits: 9}}
	g.Run = func(_ context.Context, engine int, _ Point) (*worker.Report, error) {
		report := *kept
		if engine == 0 {
			report.Traffic = nil
		}
		return &report, nil
	}
	ages := load.NewHistogram()
	for _, ms := range []int{1, 2, 2, 2, 40} {
		require.NoError(t, ages.RecordValue(int64(ms)*int64(time.Millisecond)))
	}
	text, err := ages.EncodeV2()
	require.NoError(t, err)
	aged := &worker.Report{Ages: &worker.Ages{Answers: 70, Stale: 5, Ages: string(text)}}
	g.Ages = func(_ context.Context, engine int, at Point) (*worker.Report, error) {
		said(fmt.Sprintf("ages of %d, %s", engine, at))
		return aged, nil
	}
	cells, _, err = Measure(t.Context(), g)
	require.NoError(t, err)
	assert.Equal(t, []string{"begin 100", "end", "begin 100", "end", "begin 100", "ages of 1, 1 in flight, 100 foreign writes/s", "end"}, log)
	require.NotNil(t, cells[3].Ages)
	assert.Equal(t, [2]int64{70, 5}, [2]int64{cells[3].Ages.Answers, cells[3].Ages.Stale})
	assert.InEpsilon(t, 2000, cells[3].Ages.P50, 0.01)
	assert.InEpsilon(t, 40_000, cells[3].Ages.Max, 0.01)
	assert.Equal(t, []*Ages{nil, nil, nil}, []*Ages{cells[0].Ages, cells[1].Ages, cells[2].Ages})
	assert.Regexp(t, `5 of 70 2ms 40.*ms 40.*ms$`, strings.Join(cells[3].CacheRow(), " "))
	assert.Regexp(t, `– – – –$`, strings.Join(cells[1].CacheRow(), " "))
	cells[3].Ages = &Ages{Answers: 70}
	assert.Regexp(t, `0 of 70 – – –$`, strings.Join(cells[3].CacheRow(), " "))
	aged = &worker.Report{Failure: "no versions"}
	cells, _, err = Measure(t.Context(), g)
	require.NoError(t, err)
	assert.Equal(t, "no versions", cells[3].Failure)
	aged = &worker.Report{} // from a build that cannot tell
	cells, _, err = Measure(t.Context(), g)
	require.NoError(t, err)
	assert.Nil(t, cells[3].Ages)
	aged = &worker.Report{Ages: &worker.Ages{Ages: "?"}}
	_, _, err = Measure(t.Context(), g)
	assert.ErrorContains(t, err, "decode ages")

	broken = errors.New("no room")
	_, _, err = Measure(t.Context(), g)
	assert.ErrorIs(t, err, broken)
	assert.ErrorContains(t, err, "a, 1 in flight, 100 foreign writes/s: foreign writes: no room")
}

func TestEstimate(t *testing.T) {
	few := EstimateOf([]float64{3, 1, 2})
	assert.Equal(t, 2.0, few.Median)
	assert.Nil(t, few.Low)
	assert.Equal(t, "±∞", few.Spread())
	assert.Equal(t, "2.00× (±∞)", few.Factor())
	values := []float64{6, 5, 4, 3, 2, 1}
	enough := EstimateOf(values)
	assert.Equal(t, []float64{6, 5, 4, 3, 2, 1}, values, "left as they are")
	assert.Equal(t, 3.5, enough.Median)
	assert.Equal(t, []float64{1, 6}, []float64{*enough.Low, *enough.High}, "six values: the least and the greatest")
	for n, bounds := range map[int][]float64{9: {2, 8}, 12: {3, 10}, 20: {6, 15}} { // of 95 %, by the binomial distribution
		values = values[:0]
		for i := range n {
			values = append(values, float64(i+1))
		}
		e := EstimateOf(values)
		assert.Equal(t, bounds, []float64{*e.Low, *e.High}, n)
		assert.Equal(t, float64(n+1)/2, e.Median, n)
	}
	assert.Equal(t, between(1./8, 1./4, 1./2), between(2, 4, 8).inverse())
	assert.Equal(t, "±50%", between(5, 8, 12).Spread())
	assert.Equal(t, "±75%", between(1, 4, 5).Spread())
	assert.Equal(t, Estimate{}, EstimateOf(nil))
	assert.Equal(t, []float64{2}, ratios([]float64{1, 4, 9}, []float64{0, 2}))
}

// sweepOf has one cell per concurrency 1, 2, 4 … with these throughputs and p99s.
func sweepOf(throughputs, p99s []float64) (cells []Cell) {
	for i, x := range throughputs {
		cells = append(cells, Cell{
			Engine: "e", Point: Point{Concurrency: 1 << i},
			Throughput: Estimate{Median: x}, Latency: Latencies{P99: p99s[i]},
		})
	}
	return cells
}

func TestFindKnee(t *testing.T) {
	for _, tc := range []struct {
		name              string
		throughputs, p99s []float64
		at                int
		found             bool
		says              string
	}{
		{"Flattens", []float64{100, 190, 300, 320, 325}, []float64{10, 11, 14, 30, 61}, 4, true,
			"e: the knee is at 4 in flight with 300 requests/s and a p99 of 14µs; at 16 in flight it is +8 % throughput for 4.4 times the p99 (61µs)"},
		{"JustBelowNineTenths", []float64{100, 190, 292, 325}, []float64{1, 1, 1, 1}, 8, false, ""},
		{"AtNineTenths", []float64{100, 180, 200}, []float64{1, 1, 1}, 2, true, ""},
		{"Collapses", []float64{100, 300, 200, 50}, []float64{10, 12, 900, 5000}, 2, true,
			"e: the knee is at 2 in flight with 300 requests/s and a p99 of 12µs; at 8 in flight it is -83 % throughput for 416.7 times the p99 (5ms)"},
		{"StillRises", []float64{100, 200, 400}, []float64{10, 10, 11}, 4, false,
			"e: no knee up to 4 in flight: throughput still rises, to 400 requests/s with a p99 of 11µs there"},
		{"FlatFromTheStart", []float64{100, 101, 99}, []float64{10, 20, 2_500_000}, 1, true,
			"e: the knee is at 1 in flight with 100 requests/s and a p99 of 10µs; at 4 in flight it is -1 % throughput for 250000.0 times the p99 (2.5s)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k, ok := FindKnee(sweepOf(tc.throughputs, tc.p99s))
			require.True(t, ok)
			assert.Equal(t, tc.at, k.At)
			assert.Equal(t, tc.found, k.Found)
			if tc.says != "" {
				assert.Equal(t, tc.says, k.String())
			}
		})
	}
	failed := sweepOf([]float64{100, 300, 310}, []float64{1, 2, 4})
	failed[2].Failure = "out of memory"
	k, ok := FindKnee(failed)
	assert.True(t, ok)
	assert.False(t, k.Found, "a failed point does not end the rise")
	_, ok = FindKnee(nil)
	assert.False(t, ok)
}

// fixedComparison is a comparison as it may come out: two Redis latencies, failures, sheds.
func fixedComparison() *Comparison {
	low, high := 1.0, 4.0
	estimate := func(v float64) Estimate { l, h := v*0.97, v*1.02; return Estimate{v, &l, &h} }
	cell := func(engine string, c int, latency time.Duration, x, p99, first float64) Cell {
		return Cell{
			Engine: engine, Point: Point{Conditions: Conditions{RedisLatency: latency}, Concurrency: c}, Throughput: estimate(x),
			Latency:         Latencies{Mean: p99 / 2, P50: p99 / 2.5, P90: p99 / 1.5, P99: p99, P999: p99 * 2, Max: p99 * 4},
			ThroughputRatio: estimate(x / first), P99Ratio: Estimate{2, &low, &high}, Requests: int64(x) * 12,
			PerRequest: PerRequest{CPU: 18.25, RedisCPU: 6.5, Allocs: 31.4, AllocBytes: 1503,
				Traffic: &TrafficPerRequest{RoundTrips: 0.28, Asked: 22, Commands: 11, BytesSent: 374, BytesReceived: 519}},
			RSSMB: 43.2, LiveMB: 21.4,
		}
	}
	c := &Comparison{
		Title: "Engines compared: <concat_plan>",
		Facts: Facts{
			Command: "rankd bench compare --plan_name concat_plan", Time: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC),
			Version: "v1.2.3", Commit: "0123abc", Go: "go1.26", OS: "linux/amd64 6.18", CPU: "Some CPU", Cores: 2, Redis: "redis-server 7.0.15", Embedded: true,
		},
		Settings: Settings{Plan: "concat_plan", Fanout: 100, Users: load.Users{Spec: "1-3", Different: 3}, Rounds: 6, Duration: 2 * time.Second, Warmup: 300 * time.Millisecond},
		Cells: []Cell{
			cell("reactor", 16, 0, 50_000, 420, 50_000), cell("pool", 16, 0, 6_200, 6100, 50_000),
			cell("reactor", 64, 0, 64_000, 1340, 64_000), cell("pool", 64, 0, 6_100, 24_500, 64_000),
			cell("reactor", 16, 5*time.Millisecond, 980, 16_900, 980), cell("pool", 16, 5*time.Millisecond, 40, 410_000, 980),
			cell("reactor", 64, 5*time.Millisecond, 3900, 17_300, 3900), {Engine: "pool", Point: Point{Conditions: Conditions{RedisLatency: 5 * time.Millisecond}, Concurrency: 64}, Failure: "out of descriptors"},
		},
	}
	c.Cells[0].Modes = Modes{Placement: "adaptive", Reads: "shared"}
	c.Cells[1].Modes = Modes{Placement: "two pools", Reads: "each sent"}
	kept := *c.Cells[0].PerRequest.Traffic
	kept.Cache = &CachePerRequest{Hits: 287, Misses: 13, Invalidated: 0.25, Evicted: 1.5, MB: 63.9, HitAge: 3.01}
	c.Cells[0].PerRequest.Traffic = &kept
	c.Cells[1].Errors, c.Cells[1].FirstError = 7, "redis: timeout"
	c.Cells[3].PerRequest.Traffic, c.Cells[3].PerRequest.RedisCPU = nil, 0
	c.Settings.Ceiling = "redis-benchmark 7.0.15 -P 64 -c 4 HGETALL"
	for i := range 4 {
		at := c.Cells[i].Point
		for round := range 6 {
			x := c.Cells[i].Throughput.Median * (0.97 + 0.01*float64(round))
			c.Cells[i].Rounds = append(c.Cells[i].Rounds, RoundFigures{Throughput: x, Commands: 11 * x, Latency: Latencies{P50: 30, P99: 50}})
		}
		if i%2 == 0 {
			c.Ceilings = append(c.Ceilings, Ceiling{at, estimate(1e6), []float64{1e6, 1e6, 1e6, 1e6, 1e6, 1e6}})
		}
	}
	c.Judge([]Want{
		{Figure: "requests", Engine: "reactor", Bound: AtLeast(8), To: "pool", At: []float64{64}},
		{Figure: "commands", Engine: "reactor", Bound: AtLeast(0.9), To: Yardstick, At: []float64{64}},
		{Figure: "p99", Engine: "reactor", Bound: AtMost(1), To: "pool"},
	})
	c.FindKnees()
	return c
}

func TestText(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, fixedComparison().WriteText(&out))
	assertGolden(t, "comparison.txt", out.String())
	assert.Error(t, fixedComparison().WriteText(brokenWriter{}))
}

// assertGolden compares got with a file of testdata. RANKD_UPDATE_GOLDEN=1 writes the file.
func assertGolden(t *testing.T, name, got string) {
	t.Helper()
	golden := filepath.Join("testdata", name)
	if os.Getenv("RANKD_UPDATE_GOLDEN") == "1" {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken") }

func TestOpenLoopText(t *testing.T) {
	c := &Comparison{Cells: []Cell{{
		Engine: "reactor", Point: Point{Concurrency: 1024, Rate: 20_000}, Throughput: Estimate{Median: 19_000},
		Latency: Latencies{P99: 900}, LagP99: 450, Requests: 95, Shed: 5,
	}}}
	assert.Equal(t, []string{
		"reactor, 20000/s, at most 1024 in flight: 5 of 100 arrivals were shed, with 1024 in flight",
		"reactor, 20000/s, at most 1024 in flight: arrivals were sent up to 450µs late (p99), which counts as latency",
	}, c.Troubles())
	assert.Equal(t, "20000/s", c.Cells[0].SpeedRow()[0])
	c.FindKnees()
	assert.Empty(t, c.Knees, "rates have no knee")
}

// TestJSON: what encoding/json cannot write, such as an infinity, is nowhere in it.
func TestJSON(t *testing.T) {
	c := fixedComparison()
	c.Cells[0].Throughput = EstimateOf([]float64{1, 2})
	text, err := json.Marshal(c)
	require.NoError(t, err)
	var back Comparison
	require.NoError(t, json.Unmarshal(text, &back))
	assert.Equal(t, c, &back)
	assert.True(t, bytes.HasPrefix(text, []byte(`{"answer":"reactor answers `)), "the answer comes first")
	assert.False(t, math.IsInf(c.Cells[0].Throughput.Median, 0))
}

func TestFacts(t *testing.T) {
	f := ReadFacts()
	assert.Positive(t, f.Cores)
	for _, text := range []string{f.Version, f.Commit, f.Go, f.OS, f.CPU} {
		assert.NotEmpty(t, text)
	}
	assert.Equal(t, "Fast CPU @ 3 GHz", parseCPUModel("processor\t: 0\nmodel name\t: Fast CPU @ 3 GHz\nflags: x\n"))
	assert.Equal(t, "unknown", parseCPUModel("CPU implementer : 0x41\n"))
	assert.Empty(t, firstLine("/nowhere"))
}
