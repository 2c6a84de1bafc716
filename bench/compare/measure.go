package compare

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/bench/worker"
)

// Conditions are what surrounds the engines while they are measured. Immutable; comparable.
type Conditions struct {
	RedisLatency  time.Duration `json:"redis_latency_ns"`         // added to each round trip to Redis
	ForeignWrites int           `json:"foreign_writes,omitempty"` // keys a second that somebody else writes
}

// String returns the conditions as text, such as "Redis +5ms, 100 foreign writes/s"; empty if there is nothing special.
func (c Conditions) String() string {
	var parts []string
	if c.RedisLatency > 0 {
		parts = append(parts, fmt.Sprintf("Redis +%v", c.RedisLatency))
	}
	if c.ForeignWrites > 0 {
		parts = append(parts, fmt.Sprintf("%d foreign writes/s", c.ForeignWrites))
	}
	return strings.Join(parts, ", ")
}

// Point is a load, and the conditions, at which engines are compared. Immutable.
type Point struct {
	Conditions
	Concurrency int     `json:"concurrency"`    // requests in flight; the bound in an open loop
	Rate        float64 `json:"rate,omitempty"` // arrivals per second; 0 means a closed loop
}

// String returns the point as text, such as "64 in flight, Redis +5ms".
func (p Point) String() string {
	text := fmt.Sprintf("%d in flight", p.Concurrency)
	if p.Rate > 0 {
		text = fmt.Sprintf("%g/s, at most %s", p.Rate, text)
	}
	if special := p.Conditions.String(); special != "" {
		text += ", " + special
	}
	return text
}

// Grid lists the measurements to make. Immutable.
type Grid struct {
	Engines []string // by name; ratios are to the first
	Modes   []Modes  // of the engines, in their order; nil means that they are unknown
	Points  []Point
	Rounds  int
	// Run has an engine run one round. An error ends the measurement; the report holds
	// failures within the round.
	Run func(ctx context.Context, engine int, at Point) (*worker.Report, error)
	// Ages has an engine run a further round, in which it measures the age of what it serves from memory; the rest of that round does not
	// count. It runs after the rounds of a point with foreign writes, for engines with a cache. Nil means that it does not.
	Ages func(ctx context.Context, engine int, at Point) (*worker.Report, error)
	// Write begins to write as many keys a second as the point says, beside a round. The returned call ends that, and returns how many it
	// wrote a second. Nil means that no point has foreign writes.
	Write func(ctx context.Context, at Point) (end func() (perSecond float64, err error))
	// Ceiling returns the commands per second of redis-benchmark. It runs once in each round; nil
	// means that it does not.
	Ceiling func(ctx context.Context, at Point) (float64, error)
	// Progress is called after each round. It may be nil.
	Progress func(Step)
}

// Step is one finished round. Immutable.
type Step struct {
	Done, All int // rounds
	Engine    string
	At        Point
	Report    *worker.Report
}

// Measure runs all rounds and returns one cell per point and engine: all engines at the
// first point, then at the second, and so on. If the grid asks for it, it returns one ceiling per
// point as well. The error names the engine and the point.
func Measure(ctx context.Context, g Grid) (cells []Cell, ceilings []Ceiling, err error) {
	done := 0
	for _, at := range g.Points {
		samples := make([]sample, len(g.Engines))
		ceiling := Ceiling{Point: at}
		for range g.Rounds {
			for i, engine := range g.Engines {
				if err := ctx.Err(); err != nil {
					return nil, nil, err
				}
				report, written, err := g.run(ctx, g.Run, i, at)
				if err != nil {
					return nil, nil, fmt.Errorf("%s, %s: %w", engine, at, err)
				}
				samples[i].written = append(samples[i].written, written)
				if err := samples[i].add(report); err != nil {
					return nil, nil, fmt.Errorf("%s, %s: %w", engine, at, err)
				}
				if done++; g.Progress != nil {
					g.Progress(Step{Done: done, All: len(g.Points) * g.Rounds * len(g.Engines), Engine: engine, At: at, Report: report})
				}
			}
			if g.Ceiling != nil {
				commands, err := g.Ceiling(ctx, at)
				if err != nil {
					return nil, nil, fmt.Errorf("%s, %s: %w", Yardstick, at, err)
				}
				ceiling.Rounds = append(ceiling.Rounds, commands)
			}
		}
		if g.Ceiling != nil {
			ceiling.Commands = EstimateOf(ceiling.Rounds)
			ceilings = append(ceilings, ceiling)
		}
		for i, engine := range g.Engines {
			cell := samples[i].cell(engine, at, &samples[0])
			if err := g.age(ctx, i, at, &cell); err != nil {
				return nil, nil, fmt.Errorf("%s, %s: %w", engine, at, err)
			}
			if g.Modes != nil {
				cell.Modes = g.Modes[i]
			}
			cells = append(cells, cell)
		}
	}
	return cells, ceilings, nil
}

// run runs one round, with foreign writes beside it, of which it returns how many a second there were.
func (g *Grid) run(ctx context.Context, round func(context.Context, int, Point) (*worker.Report, error), engine int, at Point) (report *worker.Report, written float64, err error) {
	if at.ForeignWrites == 0 {
		report, err = round(ctx, engine, at)
		return report, 0, err
	}
	end := g.Write(ctx, at)
	report, err = round(ctx, engine, at)
	written, failed := end()
	if failed != nil {
		err = errors.Join(err, fmt.Errorf("foreign writes: %w", failed))
	}
	return report, written, err
}

// age measures the age of what an engine serves from memory, if it keeps something that somebody else writes.
func (g *Grid) age(ctx context.Context, engine int, at Point, c *Cell) error {
	if g.Ages == nil || at.ForeignWrites == 0 || c.PerRequest.cache() == nil {
		return nil
	}
	report, _, err := g.run(ctx, g.Ages, engine, at)
	if err != nil {
		return err
	}
	if report.Failure != "" {
		c.Failure = report.Failure
		return nil
	}
	if report.Ages == nil {
		return nil
	}
	ages, err := report.Ages.Histogram()
	if err != nil {
		return err
	}
	c.Ages = &Ages{
		Answers: report.Ages.Answers, Stale: report.Ages.Stale,
		P50: micros(ages.ValueAtPercentile(50)), P99: micros(ages.ValueAtPercentile(99)), Max: micros(ages.Max()),
	}
	return nil
}

// Ages say how old answers from memory were, in microseconds since the writer of a newer value had its OK. Immutable.
type Ages struct {
	Answers int64   `json:"answers"`
	Stale   int64   `json:"stale"` // of the answers; the ages are theirs
	P50     float64 `json:"p50_us"`
	P99     float64 `json:"p99_us"`
	Max     float64 `json:"max_us"`
}

// Latencies summarizes the latencies of successful requests, in microseconds. Immutable.
type Latencies struct {
	Mean float64 `json:"mean_us"`
	P50  float64 `json:"p50_us"`
	P90  float64 `json:"p90_us"`
	P99  float64 `json:"p99_us"`
	P999 float64 `json:"p999_us"`
	Max  float64 `json:"max_us"`
}

func latencies(h *hdrhistogram.Histogram) Latencies {
	at := func(percent float64) float64 { return micros(h.ValueAtPercentile(percent)) }
	return Latencies{
		Mean: h.Mean() / float64(time.Microsecond),
		P50:  at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: micros(h.Max()),
	}
}

func micros[T int64 | time.Duration](ns T) float64 { return float64(ns) / float64(time.Microsecond) }

// Modes say how an engine runs nodes and sends reads, in the words of a table. Immutable.
type Modes struct {
	Placement string `json:"placement,omitempty"` // where nodes compute
	Reads     string `json:"reads,omitempty"`     // what becomes of equal reads
}

// Cell holds the figures of one engine at one point. Counters are sums over the rounds,
// figures per request are medians over them. Immutable once built.
type Cell struct {
	Engine string `json:"engine"`
	Modes
	Point

	// Failure says why a round could not run. All other figures are zero then.
	Failure string `json:"failure,omitempty"`

	Throughput Estimate  `json:"throughput_rps"` // successes per second
	Latency    Latencies `json:"latency"`        // of all rounds together
	// Ratios to the first engine of the grid, whose own ratios are 1.
	ThroughputRatio Estimate `json:"throughput_ratio"`
	P99Ratio        Estimate `json:"p99_ratio"`

	Requests   int64   `json:"requests"` // answered
	Errors     int64   `json:"errors"`   // answered with an error
	FirstError string  `json:"first_error,omitempty"`
	Shed       int64   `json:"shed"`                                // arrivals turned away
	LagP99     float64 `json:"lag_p99_us"`                          // how late arrivals were sent; open loop only
	Written    float64 `json:"foreign_writes_per_second,omitempty"` // the median of what Conditions.ForeignWrites reached

	PerRequest PerRequest `json:"per_request"`
	Ages       *Ages      `json:"ages,omitempty"` // nil if not measured
	RSSMB      float64    `json:"rss_mb"`
	LiveMB     float64    `json:"live_mb,omitempty"` // of the heap, after a garbage collection under load; 0 from a worker that does not tell

	Rounds []RoundFigures `json:"rounds"` // in the order in which they were run
}

// PerRequest is the cost of one request. Immutable.
type PerRequest struct {
	CPU        float64 `json:"cpu_us"`       // of the engine's process
	RedisCPU   float64 `json:"redis_cpu_us"` // of redis-server; 0 if unknown
	Allocs     float64 `json:"allocs"`
	AllocBytes float64 `json:"alloc_bytes"`
	// Traffic with Redis; nil if the engine does not count it.
	Traffic *TrafficPerRequest `json:"traffic"`
}

// TrafficPerRequest is the traffic between engine and Redis for one request. Requests in
// flight together may share round trips, so one request may need less than one. Immutable.
type TrafficPerRequest struct {
	RoundTrips float64 `json:"round_trips"`
	// Asked are the commands that the nodes asked for, and Commands those that were sent: fewer if
	// equal reads share a command. 0 means that the engine does not count what is asked.
	Asked         float64 `json:"commands_asked"`
	Commands      float64 `json:"commands"`
	BytesSent     float64 `json:"bytes_sent"`
	BytesReceived float64 `json:"bytes_received"`
	// Cache is what comes from memory; nil if the engine keeps nothing.
	Cache *CachePerRequest `json:"cache,omitempty"`
}

// CachePerRequest is what one request takes from the memory of its engine in place of reading it, and what becomes of that memory meanwhile.
// Immutable.
type CachePerRequest struct {
	Hits        float64 `json:"hits"` // values
	Misses      float64 `json:"misses"`
	Invalidated float64 `json:"invalidated"` // values that were dropped since their keys changed
	Evicted     float64 `json:"evicted"`     // values that left because others came
	MB          float64 `json:"mb"`          // that the tables take at the end of a round
	HitAge      float64 `json:"hit_age_s"`   // the mean of the hits
}

// RoundFigures are the figures of one round. Immutable.
type RoundFigures struct {
	Throughput float64   `json:"throughput_rps"`
	Commands   float64   `json:"commands_per_second"` // to Redis; 0 if the engine does not count them
	Latency    Latencies `json:"latency"`
}

// sample holds the rounds of one engine at one point.
type sample struct {
	failure string
	reports []*worker.Report
	results []*load.Result
	written []float64 // foreign writes a second
}

func (s *sample) add(r *worker.Report) error {
	if r.Failure != "" {
		s.failure = r.Failure
		return nil
	}
	result, err := r.Result()
	if err != nil {
		return err
	}
	s.reports, s.results = append(s.reports, r), append(s.results, result)
	return nil
}

// cell computes the figures; base is the sample of the first engine.
func (s *sample) cell(engine string, at Point, base *sample) Cell {
	c := Cell{Engine: engine, Point: at, Failure: s.failure, Written: median(s.written)}
	if s.failure != "" || len(s.results) == 0 {
		return c
	}
	all, lag := load.NewHistogram(), load.NewHistogram()
	for i, r := range s.results {
		all.Merge(r.Latency)
		if r.Lag != nil {
			lag.Merge(r.Lag)
		}
		c.Requests += r.Answered
		c.Errors += r.Errors
		c.Shed += r.Shed
		if c.FirstError == "" {
			c.FirstError = s.reports[i].FirstError
		}
		c.Rounds = append(c.Rounds, RoundFigures{Throughput: r.PerSecond(), Commands: commands(s.reports[i]), Latency: latencies(r.Latency)})
	}
	c.Latency = latencies(all)
	c.LagP99 = micros(lag.ValueAtPercentile(99))
	c.Throughput = EstimateOf(s.each(throughput))
	if base.failure == "" {
		c.ThroughputRatio = EstimateOf(ratios(s.each(throughput), base.each(throughput)))
		c.P99Ratio = EstimateOf(ratios(s.each(p99), base.each(p99)))
	}
	perRequest := func(of func(*worker.Report) float64) float64 {
		return median(s.each(func(i int, s *sample) float64 { return of(s.reports[i]) / float64(max(1, s.reports[i].Answered)) }))
	}
	c.PerRequest = PerRequest{
		CPU:        perRequest(func(r *worker.Report) float64 { return micros(r.CPU) }),
		RedisCPU:   perRequest(func(r *worker.Report) float64 { return micros(r.RedisCPU) }),
		Allocs:     perRequest(func(r *worker.Report) float64 { return float64(r.Allocs) }),
		AllocBytes: perRequest(func(r *worker.Report) float64 { return float64(r.AllocBytes) }),
	}
	if s.reports[0].Traffic != nil {
		c.PerRequest.Traffic = &TrafficPerRequest{
			RoundTrips:    perRequest(func(r *worker.Report) float64 { return float64(r.Traffic.RoundTrips) }),
			Asked:         perRequest(func(r *worker.Report) float64 { return float64(r.Traffic.Asked) }),
			Commands:      perRequest(func(r *worker.Report) float64 { return float64(r.Traffic.Commands) }),
			BytesSent:     perRequest(func(r *worker.Report) float64 { return float64(r.Traffic.BytesSent) }),
			BytesReceived: perRequest(func(r *worker.Report) float64 { return float64(r.Traffic.BytesReceived) }),
		}
		if s.reports[0].Traffic.Cache != nil {
			c.PerRequest.Traffic.Cache = &CachePerRequest{
				Hits:        perRequest(func(r *worker.Report) float64 { return float64(r.Traffic.Cache.Hits) }),
				Misses:      perRequest(func(r *worker.Report) float64 { return float64(r.Traffic.Cache.Misses) }),
				Invalidated: perRequest(func(r *worker.Report) float64 { return float64(r.Traffic.Cache.Invalidated) }),
				Evicted:     perRequest(func(r *worker.Report) float64 { return float64(r.Traffic.Cache.Evicted) }),
				MB:          median(s.each(func(i int, s *sample) float64 { return float64(s.reports[i].Traffic.Cache.Bytes) / (1 << 20) })),
				HitAge: median(s.each(func(i int, s *sample) float64 {
					cache := s.reports[i].Traffic.Cache
					return cache.HitAge / float64(max(1, cache.Hits))
				})),
			}
		}
	}
	c.RSSMB = median(s.each(func(i int, s *sample) float64 { return float64(s.reports[i].RSSBytes) / (1 << 20) }))
	c.LiveMB = median(s.each(func(i int, s *sample) float64 { return float64(s.reports[i].LiveBytes) / (1 << 20) }))
	return c
}

// each returns one value per round.
func (s *sample) each(of func(i int, s *sample) float64) []float64 {
	values := make([]float64, len(s.results))
	for i := range values {
		values[i] = of(i, s)
	}
	return values
}

func throughput(i int, s *sample) float64 { return s.results[i].PerSecond() }

// commands returns the commands per second that a round sent to Redis.
func commands(r *worker.Report) float64 {
	if r.Traffic == nil || r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Traffic.Commands) / r.Elapsed.Seconds()
}

func p99(i int, s *sample) float64 { return float64(s.results[i].Latency.ValueAtPercentile(99)) }

// ratios divides a by b, round by round. It skips rounds in which b is 0.
func ratios(a, b []float64) (r []float64) {
	for i := range min(len(a), len(b)) {
		if b[i] > 0 {
			r = append(r, a[i]/b[i])
		}
	}
	return r
}
