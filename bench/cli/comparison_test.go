package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/bench/harness"
	"github.com/rankd/rankd/bench/internal/engines"
	"github.com/rankd/rankd/bench/internal/worker"
	"github.com/rankd/rankd/bench/load"
)

type figures = map[string]harness.Estimate

// estimate is an estimate with an interval.
func estimate(low, median, high float64) harness.Estimate {
	return harness.Estimate{Median: median, Low: &low, High: &high}
}

func cellOf(engine string, at point, f figures) cell {
	labels := append(at.item().Labels, harness.Label{Key: "engine", Value: engine, Head: "engine"},
		harness.Label{Key: "placement", Value: "", Head: "placement"}, harness.Label{Key: "reads", Value: "shared", Head: "reads"})
	return cell{at, engine, &harness.Result{Labels: labels, Figures: f}}
}

// closed is a cell of a closed loop. ratio compares its throughput with the first engine's.
func closed(engine string, inFlight int, x float64, ratio harness.Estimate) cell {
	return cellOf(engine, point{concurrency: inFlight}, figures{throughput: estimate(0.98*x, x, 1.01*x), p99: {Median: 1340}, "throughput_ratio": ratio})
}

// openLoop is a cell of an open loop. ratio compares its p99 with the first engine's.
func openLoop(engine string, rate float64, ratio harness.Estimate) cell {
	return cellOf(engine, point{concurrency: 1024, rate: rate}, figures{
		throughput: estimate(rate, rate, rate), "throughput_ratio": estimate(1, 1, 1), "p99_ratio": ratio,
	})
}

func later(c cell, redis time.Duration) cell {
	c.latency = redis
	return c
}

func failed(c cell) cell {
	c.Result = &harness.Result{Labels: c.Labels, Failure: "out of descriptors"}
	return c
}

// comparisonOf has the cells, in the order of the points and engines that they name.
func comparisonOf(cells ...cell) *comparison {
	c := new(comparison)
	for _, cell := range cells {
		if !slices.Contains(c.points, cell.point) {
			c.points = append(c.points, cell.point)
		}
		if !slices.Contains(c.engines, cell.engine) {
			c.engines = append(c.engines, cell.engine)
		}
	}
	for _, at := range c.points {
		row := make([]*harness.Result, len(c.engines))
		for _, cell := range cells {
			if cell.point == at {
				row[slices.Index(c.engines, cell.engine)] = cell.Result
			}
		}
		c.results = append(c.results, row)
	}
	return c
}

func TestAnswer(t *testing.T) {
	same := estimate(1, 1, 1)
	reactor := func(inFlight int) cell { return closed("reactor", inFlight, 64_000, same) }
	pool := func(inFlight int, low, median, high float64) cell {
		return closed("pool", inFlight, 64_000*median, estimate(low, median, high))
	}
	var out strings.Builder
	for _, tc := range []struct {
		name  string
		cells []cell
	}{
		{"ahead, level at 1", []cell{reactor(64), pool(64, 1/30.0, 1/27.0, 1/24.0), reactor(1), pool(1, 0.97, 1.01, 1.04)}},
		{"ahead at every point", []cell{reactor(64), pool(64, 0.1, 0.11, 0.12), reactor(8), pool(8, 0.2, 0.21, 0.22), reactor(1), pool(1, 0.5, 0.51, 0.52)}},
		{"ahead at the only point", []cell{reactor(64), pool(64, 0.1, 0.11, 0.12)}},
		{"ahead, level at 16, behind at 1", []cell{
			reactor(1), pool(1, 1.3, 1.4, 1.5), reactor(16), pool(16, 0.9, 1, 1.1), reactor(64), pool(64, 0.1, 0.11, 0.12)}},
		{"behind", []cell{reactor(64), pool(64, 1.4, 1.5, 1.6)}},
		{"level", []cell{reactor(64), pool(64, 0.95, 0.99, 1.02)}},
		{"level, ahead at 1", []cell{reactor(64), pool(64, 0.95, 0.99, 1.02), reactor(1), pool(1, 0.4, 0.5, 0.6)}},
		{"level at every point", []cell{reactor(64), pool(64, 0.95, 0.99, 1.02), reactor(1), pool(1, 0.9, 1, 1.1)}},
		{"a lead that the digits do not show", []cell{reactor(64), pool(64, 0.997, 0.998, 0.999)}},
		{"a lag that the digits do not show", []cell{reactor(64), pool(64, 1.001, 1.002, 1.003)}},
		{"interval ends at 1", []cell{reactor(64), pool(64, 0.8, 0.9, 1)}},
		{"one round", []cell{reactor(64), closed("pool", 64, 6400, harness.Estimate{Median: 0.1}), reactor(1), closed("pool", 1, 9000, harness.Estimate{Median: 1})}},
		{"interval from 0", []cell{reactor(64), pool(64, 0, 0.5, 1.2)}},
		{"three engines", []cell{
			reactor(64), pool(64, 0.1, 0.11, 0.12), closed("peer:rueidis", 64, 64_000, estimate(1.1, 1.2, 1.3)),
			reactor(1), pool(1, 0.9, 1, 1.1), closed("peer:rueidis", 1, 64_000, estimate(1.1, 1.15, 1.2))}},
		{"Redis latencies", []cell{
			reactor(64), pool(64, 0.1, 0.11, 0.12), later(reactor(64), 5*time.Millisecond), later(pool(64, 0.98, 1, 1.01), 5*time.Millisecond)}},
		{"first Redis latency failed", []cell{
			failed(reactor(64)), pool(64, 0, 0, 0), later(reactor(64), 5*time.Millisecond), later(pool(64, 0.1, 0.11, 0.12), 5*time.Millisecond)}},
		{"the other failed at the highest loads", []cell{
			reactor(8), pool(8, 0.1, 0.11, 0.12), reactor(64), failed(pool(64, 0, 0, 0)), reactor(256), failed(pool(256, 0, 0, 0))}},
		{"the other answered nothing", []cell{reactor(64), cellOf("pool", point{concurrency: 64}, nil)}},
		{"the first failed", []cell{failed(reactor(64)), closed("pool", 64, 6400, harness.Estimate{})}},
		{"the other failed", []cell{reactor(64), failed(pool(64, 0, 0, 0))}},
		{"all failed", []cell{failed(reactor(64)), failed(pool(64, 0, 0, 0)), failed(reactor(1)), failed(pool(1, 0, 0, 0))}},
		{"one engine", []cell{reactor(1), reactor(64)}},
		{"one engine, one round", []cell{cellOf("reactor", point{concurrency: 64}, figures{throughput: {Median: 5000}})}},
		{"one engine failed", []cell{failed(reactor(64))}},
		{"nothing", nil},
		{"open loop, ahead", []cell{
			openLoop("reactor", 20_000, same), openLoop("pool", 20_000, estimate(4, 5, 6)), openLoop("reactor", 100, same), openLoop("pool", 100, estimate(0.9, 1, 1.1))}},
		{"open loop, behind", []cell{openLoop("reactor", 20_000, same), openLoop("pool", 20_000, estimate(0.4, 0.5, 0.6))}},
		{"open loop, level", []cell{openLoop("reactor", 20_000, same), openLoop("pool", 20_000, estimate(0.8, 1, 1.2))}},
		{"open loop, one round", []cell{openLoop("reactor", 20_000, harness.Estimate{Median: 1}), openLoop("pool", 20_000, harness.Estimate{Median: 3})}},
	} {
		fmt.Fprintf(&out, "%s:\n\t%s\n", tc.name, comparisonOf(tc.cells...).answer())
	}
	want, err := os.ReadFile("testdata/answers.txt")
	require.NoError(t, err)
	assert.Equal(t, string(want), out.String())
}

func TestParseWant(t *testing.T) {
	for text, expected := range map[string]want{
		"requests reactor >= 1.3 reactor:scheduling=offload_all at 64": {"requests", "reactor", harness.AtLeast(1.3), "reactor:scheduling=offload_all", []float64{64}},
		"p99  reactor <= 1 peer:rueidis":                               {"p99", "reactor", harness.AtMost(1), "peer:rueidis", nil},
		"p50 a <= 0.5 b at 1,16,2000.5":                                {"p50", "a", harness.AtMost(0.5), "b", []float64{1, 16, 2000.5}},
		"commands reactor >= .9 redis-benchmark":                       {"commands", "reactor", harness.AtLeast(0.9), yardstick, nil},
	} {
		got, err := parseWant(text)
		require.NoError(t, err, text)
		assert.Equal(t, expected, got, text)
	}
	for text, want := range map[string]string{
		"":                                "is written FIGURE ENGINE",
		"p99 a <= 1":                      "is written FIGURE ENGINE",
		"p99 a <= 1 b at":                 "is written FIGURE ENGINE",
		"p99 a <= 1 b on 3":               "is written FIGURE ENGINE",
		"p75 a <= 1 b":                    `not "p75"`,
		"p99 a < 1 b":                     `not "<"`,
		"p99 a <= x b":                    `the factor is a positive number, not "x"`,
		"p99 a <= 0 b":                    `not "0"`,
		"p99 a <= NaN b":                  `not "NaN"`,
		"p99 a <= 1 b at 1,,2":            `the load is a positive number, not ""`,
		"requests a >= 1 redis-benchmark": "redis-benchmark tells commands only",
	} {
		_, err := parseWant(text)
		assert.ErrorContains(t, err, want, text)
	}
}

func FuzzParseWant(f *testing.F) {
	f.Add("p99 reactor <= 1 peer:rueidis at 1,64")
	f.Add("commands a >= 0.9 redis-benchmark")
	f.Fuzz(func(t *testing.T, text string) {
		w, err := parseWant(text)
		if err != nil {
			return
		}
		assert.Positive(t, w.bound.Value)
		for _, v := range comparisonOf(closed(w.engine, 1, 1, harness.Estimate{})).judge([]want{w}) {
			assert.Equal(t, harness.Undecided, v.Outcome(), "nothing was measured")
		}
	})
}

// An engine may be written in any of its forms. The aim has its full name.
func TestWantsNameEngines(t *testing.T) {
	specs, err := engines.ParseSpecs("reactor,binary:/old/rankd,pool:redis_pool=2,io_threads=3")
	require.NoError(t, err)
	o := compareOptions{fleet: fleet{specs: specs}, concurrency: []int{1, 64}, latencies: []time.Duration{0}, writes: []int{0},
		wantTexts: []string{"p99 reactor <= 1 binary:/old/rankd at 64", "p50 pool:io_threads=3,redis_pool=2 <= 2 reactor"}}
	require.NoError(t, o.parseWants())
	assert.Equal(t, []want{
		{figure: "p99", engine: "reactor", bound: harness.AtMost(1), to: "binary:/old/rankd:reactor", at: []float64{64}},
		{figure: "p50", engine: "pool:redis_pool=2,io_threads=3", bound: harness.AtMost(2), to: "reactor"},
	}, o.wants)
}

// reportOf is a round of so many requests.
func reportOf(elapsed time.Duration, answered int64, took load.Histogram) *worker.Report {
	return &worker.Report{Result: load.Result{
		Elapsed: elapsed, Tally: load.Tally{Answered: answered, Latency: took}, Lag: latencies(time.Microsecond),
	}}
}

// costly is a round of a second in which each latency was measured once, with all that it cost.
func costly(all ...time.Duration) *worker.Report {
	n := int64(len(all))
	r := reportOf(time.Second, n, latencies(all...))
	r.Usage = load.Usage{CPU: time.Duration(n) * 20 * time.Microsecond, Allocs: uint64(n) * 30, AllocBytes: uint64(n) * 1500, RSSBytes: 64 << 20, LiveBytes: 24 << 20}
	r.RedisCPU = time.Duration(n) * 5 * time.Microsecond
	r.Traffic = &load.Traffic{RoundTrips: uint64(n) * 3, Asked: uint64(n) * 22, Commands: uint64(n) * 11, BytesSent: uint64(n) * 374, BytesReceived: uint64(n) * 519,
		Cache: &load.Cache{Hits: uint64(n) * 9, Misses: uint64(n), Invalidated: uint64(n) * 2, Evicted: uint64(n) * 3, Bytes: 32 << 20, HitAge: float64(n) * 4.5}}
	return r
}

func latencies(all ...time.Duration) load.Histogram {
	h := load.NewHistogram()
	for _, l := range all {
		h.Record(l)
	}
	return h
}

func TestSampleOf(t *testing.T) {
	s := sampleOf(costly(time.Millisecond, time.Millisecond))
	want := map[string]float64{
		throughput: 2, "requests": 2, "errors": 0, "shed": 0, perSecond: 22, "cpu_us": 20, "redis_cpu_us": 5, "allocs": 30, "alloc_bytes": 1500,
		"rss_mb": 64, "live_mb": 24, "round_trips": 3, "commands_asked": 22, "commands": 11, "bytes_sent": 374, "bytes_received": 519,
		"cache_hits": 9, "cache_misses": 1, "cache_hit_ratio": 0.9, "cache_invalidated": 2, "cache_evicted": 3, "cache_mb": 32, "cache_hit_age_s": 0.5,
	}
	for key, value := range want {
		assert.Equal(t, value, s.Figures[key], key)
	}
	assert.Len(t, s.Figures, len(want)+2, "and two percentiles")
	known := map[string]bool{}
	for _, f := range compareFigures() {
		known[f.Key] = true
	}
	for key := range s.Figures {
		assert.True(t, known[key], "%s has a figure", key)
	}
	assert.Equal(t, harness.Sample{Failure: "no such plan"}, sampleOf(&worker.Report{Failure: "no such plan"}))
}

func TestAges(t *testing.T) {
	sample := func() harness.Sample { return sampleOf(costly(time.Millisecond)) }
	s := withAges(sample(), &worker.Report{Ages: &worker.Ages{Answers: 70, Stale: 5, Ages: latencies(time.Millisecond, 2*time.Millisecond)}})
	assert.Equal(t, [2]float64{70, 5}, [2]float64{s.Figures["answers_asked"], s.Figures["answers_stale"]})
	assert.EqualValues(t, 2, s.Latencies["ages"].TotalCount())
	s = withAges(sample(), &worker.Report{Ages: &worker.Ages{Answers: 70, Ages: latencies()}})
	assert.NotContains(t, s.Latencies, "ages", "nothing was stale")
	s = withAges(sample(), &worker.Report{Failure: "no versions"})
	assert.Equal(t, "no versions", s.Failure)
	s = withAges(sample(), &worker.Report{}) // from a build that cannot tell
	assert.NotContains(t, s.Figures, "answers_asked")
}

// fixed is a possible comparison: two Redis latencies, a cache, failures, sheds,
// redis-benchmark.
func fixed(t *testing.T) *comparison {
	c := &comparison{engines: []string{"reactor", "pool"}, ceiling: "redis-benchmark 7.0.15 -P 64 -c 4 HGETALL"}
	e := harness.Experiment{Rounds: 6, Figures: compareFigures(), Subjects: harness.Named("engine", "engine", "reactor", "pool", yardstick)}
	for _, latency := range []time.Duration{0, 5 * time.Millisecond} {
		for _, inFlight := range []int{1, 64} {
			at := point{conditions{latency: latency}, inFlight, 0}
			c.points = append(c.points, at)
			e.Scenarios = append(e.Scenarios, at.item())
		}
	}
	e.Run = func(_ context.Context, scenario, subject, round int) (harness.Sample, error) {
		at := c.points[scenario]
		if subject == 2 {
			return harness.Sample{Figures: map[string]float64{perSecond: 1e6}}, nil
		}
		if subject == 1 && at.latency > 0 && at.concurrency > 1 {
			return harness.Sample{Failure: "out of <memory>"}, nil
		}
		r := costly(slices.Repeat([]time.Duration{time.Millisecond*time.Duration(1+subject) + at.latency}, (10-5*subject)*at.concurrency+round)...)
		if subject == 1 {
			r.Traffic.Cache, r.Errors, r.FirstError, r.Shed = nil, 1, "redis: timeout", 5
			r.Lag = latencies(450 * time.Microsecond)
		}
		return sampleOf(r), nil
	}
	var err error
	c.results, err = e.Measure(t.Context())
	require.NoError(t, err)
	return c
}

func fixedReport(t *testing.T) *harness.Report {
	wants := []want{
		{figure: "requests", engine: "reactor", bound: harness.AtLeast(1.5), to: "pool", at: []float64{64}},
		{figure: "commands", engine: "reactor", bound: harness.AtLeast(0.9), to: yardstick, at: []float64{64}},
	}
	r := fixed(t).report(wants)
	r.Title = "Engines compared: <concat_plan>"
	r.Settings = settings{Scenario: "s", Plan: "concat_plan", Fanout: 100, Users: load.Users{Spec: "1-3", Different: 3}, Rounds: 6, Duration: 2 * time.Second, Unshared: true}
	return r
}

func TestComparisonReport(t *testing.T) {
	r := fixedReport(t)
	assert.True(t, r.Failed, "a cell failed, and requests")
	var out bytes.Buffer
	require.NoError(t, r.WriteText(&out))
	_, text, _ := strings.Cut(out.String(), "commit") // after the machine
	_, text, _ = strings.Cut(text, "\n")
	assertGolden(t, "comparison.txt", r.Answer+"\n"+text)

	out.Reset()
	require.NoError(t, r.WriteJSON(&out))
	var back struct {
		Results []struct {
			Engine, Failure string
			Concurrency     int
			Latency         time.Duration    `json:"redis_latency_ns"`
			Throughput      harness.Estimate `json:"throughput_rps"`
			Errors          float64
			Rounds          []map[string]float64
		}
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &back))
	require.Len(t, back.Results, 4*3)
	first := back.Results[3]
	assert.Equal(t, "reactor", first.Engine)
	assert.Equal(t, 64, first.Concurrency)
	assert.Equal(t, 642.5, first.Throughput.Median)
	assert.Len(t, first.Rounds, 6)
	assert.Equal(t, 6.0, back.Results[1].Errors)
	assert.Equal(t, "out of <memory>", back.Results[10].Failure)
}

func TestComparisonPage(t *testing.T) {
	r := fixedReport(t)
	var titles []string
	for _, s := range r.Sections {
		for _, c := range s.Charts {
			titles = append(titles, c.Title)
		}
	}
	section := []string{"Throughput", "Latency: p99, and p50 dashed", "CPU time per request", "Round trips to Redis per request"}
	assert.Equal(t, slices.Concat([]string{"Throughput by conditions, 64 in flight", "p99 by conditions, 64 in flight"}, section, section), titles)
	var out bytes.Buffer
	require.NoError(t, r.WriteHTML(&out))
	text := html.UnescapeString(out.String())
	for _, want := range []string{"Redis latency +5ms", "not measured: out of <memory>", "<td>keeps nothing</td>", "<td>9.0</td><td>1.0</td><td>0.900</td>"} {
		assert.Contains(t, text, want)
	}
	one := fixed(t)
	one.points, one.results = one.points[:2], one.results[:2]
	assert.Nil(t, one.overview(), "of a single condition")
}

func TestOpenLoop(t *testing.T) {
	c := comparisonOf(cellOf("reactor", point{concurrency: 1024, rate: 20_000}, figures{
		throughput: {Median: 19_000}, p99: {Median: 900}, "lag_p99_us": {Median: 450}, "requests": {Median: 95}, "shed": {Median: 5},
	}))
	assert.Equal(t, []string{
		"reactor, 20000/s, at most 1024 in flight: 5 of 100 arrivals were shed, with 1024 in flight",
		"reactor, 20000/s, at most 1024 in flight: arrivals were sent up to 450µs late (p99), which counts as latency",
	}, c.troubles())
	axis, name := c.axis(conditions{})
	assert.Equal(t, []string{"20000/s"}, axis)
	assert.Equal(t, "arrivals per second", name)
}

// Each section says whether it has a writer, if one of them does.
func TestForeignWritesInTitles(t *testing.T) {
	c := comparisonOf(closed("reactor", 1, 1, harness.Estimate{}),
		cellOf("reactor", point{conditions{writes: 100}, 1, 0}, figures{"foreign_writes_per_second": {Median: 95}}),
		cellOf("pool", point{conditions{writes: 100}, 1, 0}, figures{"foreign_writes_per_second": {Median: 98}}), closed("pool", 1, 1, harness.Estimate{}))
	var titles []string
	for _, s := range c.report(nil).Sections[1:] {
		titles = append(titles, s.Title)
	}
	assert.Equal(t, []string{"Redis as it is; nobody else writes", "Redis as it is; somebody else writes 100 keys a second (reached: 95 to 98)"}, titles)
	assert.Equal(t, "Redis +1s, 100 foreign writes/s", conditions{time.Second, 100}.String())
}

// assertGolden compares got with a file of testdata. RANKD_UPDATE_GOLDEN=1 writes the file.
func assertGolden(t *testing.T, name, got string) {
	t.Helper()
	golden := "testdata/" + name
	if os.Getenv("RANKD_UPDATE_GOLDEN") == "1" {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

var errLuck = errors.New("no luck")
