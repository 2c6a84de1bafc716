package placement

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/compare"
	"github.com/rankd/rankd/bench/load"
)

// Settings are common to all rounds. Immutable.
type Settings struct {
	Rounds     int
	Duration   time.Duration // of a round
	Warmup     time.Duration // before each round
	CPUThreads int
}

// Result is the measurement of one scenario with one variant: medians over rounds. Times are
// in µs. Immutable.
type Result struct {
	Scenario  string           `json:"scenario"`
	Variant   string           `json:"variant"`
	PerSecond compare.Estimate `json:"requests_per_second"`
	P50       compare.Estimate `json:"p50_us"`
	P99       compare.Estimate `json:"p99_us"`
	// CheapP99 is the 99th percentile of the requests for the plan "cheap"; zero without one.
	CheapP99 compare.Estimate `json:"cheap_p99_us"`
	// Better is how many times better than the first variant the scenario's figure is.
	Better compare.Estimate `json:"better"`

	// The metrics of the engine, the warm-up included.
	InlineRate  compare.Estimate `json:"inline_rate"`
	FusedRate   compare.Estimate `json:"fused_rate"`
	QueueDelay  compare.Estimate `json:"queue_delay_p50_us"`
	RoundTrip   compare.Estimate `json:"offload_round_trip_p50_us"`
	CallbackP99 compare.Estimate `json:"loop_callback_p99_us"`
	// Callback is the 99.9th percentile of the wall time of a callback on the loop.
	Callback compare.Estimate `json:"loop_callback_p999_us"`
}

// sample is one round.
type sample struct {
	perSecond, p50, p99, cheapP99                                      float64
	inlineRate, fusedRate, queueDelay, roundTrip, callback99, callback float64
}

// Measure runs the scenario on each variant, in rounds that take turns. progress is told of each
// round.
func Measure(ctx context.Context, s *Scenario, variants []Variant, o Settings, progress func(round int, v Variant)) ([]Result, error) {
	samples := make([][]sample, len(variants))
	for round := range o.Rounds {
		for i := range variants {
			i = (i + round) % len(variants) // nobody is always the first
			progress(round, variants[i])
			one, err := run(ctx, s, variants[i], o)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", s.Name, variants[i].Name, err)
			}
			samples[i] = append(samples[i], one)
		}
	}
	results := make([]Result, len(variants))
	for i, v := range variants {
		of := func(figure func(*sample) float64) compare.Estimate {
			var values []float64
			for j := range samples[i] {
				values = append(values, figure(&samples[i][j]))
			}
			return compare.EstimateOf(values)
		}
		var better []float64
		for j := range samples[i] {
			better = append(better, s.better(&samples[i][j], &samples[0][j]))
		}
		results[i] = Result{
			Scenario: s.Name, Variant: v.Name, Better: compare.EstimateOf(better),
			PerSecond: of(func(s *sample) float64 { return s.perSecond }), P50: of(func(s *sample) float64 { return s.p50 }),
			P99: of(func(s *sample) float64 { return s.p99 }), CheapP99: of(func(s *sample) float64 { return s.cheapP99 }),
			InlineRate: of(func(s *sample) float64 { return s.inlineRate }), FusedRate: of(func(s *sample) float64 { return s.fusedRate }),
			QueueDelay: of(func(s *sample) float64 { return s.queueDelay }), RoundTrip: of(func(s *sample) float64 { return s.roundTrip }),
			CallbackP99: of(func(s *sample) float64 { return s.callback99 }), Callback: of(func(s *sample) float64 { return s.callback }),
		}
	}
	return results, nil
}

// better returns how many times better a round is than another one.
func (s *Scenario) better(a, than *sample) float64 {
	switch s.Key {
	case PerSecond:
		return a.perSecond / than.perSecond
	case CheapP99:
		return than.cheapP99 / a.cheapP99
	default:
		return than.p50 / a.p50
	}
}

// run measures one round, on an engine of its own.
func run(ctx context.Context, s *Scenario, v Variant, o Settings) (sample, error) {
	e, err := rankd.Open(rankd.Options{Env: "test", Plans: s.Folder(), CPUThreads: o.CPUThreads, Scheduling: v.Scheduling})
	if err != nil {
		return sample{}, err
	}
	t := &target{engine: e, order: s.Order, cheap: load.NewHistogram()}
	defer t.Close()
	l := load.Load{Concurrency: s.Concurrency, Rate: s.Rate, Duration: o.Warmup}
	for i := range s.Order {
		l.Users = append(l.Users, int64(i+1))
	}
	if _, err := (load.Driver{}).Run(ctx, t, l); err != nil {
		return sample{}, err
	}
	t.cheap.Reset()
	l.Duration = o.Duration
	r, err := load.Driver{}.Run(ctx, t, l)
	switch {
	case err != nil:
		return sample{}, err
	case r.FirstError != nil:
		return sample{}, r.FirstError
	case ctx.Err() != nil:
		return sample{}, ctx.Err()
	}
	m := e.Metrics()
	us := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
	nodes := float64(max(m.Placement.Inline+m.Placement.Offloaded, 1))
	return sample{
		perSecond: r.PerSecond(), p50: us(time.Duration(r.Latency.ValueAtPercentile(50))), p99: us(time.Duration(r.Latency.ValueAtPercentile(99))),
		cheapP99:   us(time.Duration(t.cheap.ValueAtPercentile(99))),
		inlineRate: float64(m.Placement.Inline) / nodes, fusedRate: float64(m.Placement.Fused) / nodes,
		queueDelay: us(m.Placement.QueueDelay.P50), roundTrip: us(m.Placement.OffloadRoundTrip.P50),
		callback99: us(m.Loop.CallbackTime.P99), callback: us(m.Loop.CallbackTime.P999),
	}, nil
}

// target sends user n's requests to the n-th plan of the order. Any goroutine.
type target struct {
	engine *rankd.Engine
	order  []string

	mu    sync.Mutex
	cheap *hdrhistogram.Histogram // latencies of the plan cheap, ns
}

// NewClient implements load.Target.
func (t *target) NewClient(answered func(err error)) load.Client {
	c := &client{target: t, answered: answered}
	c.done = c.finished
	return c
}

// Close implements load.Target.
func (t *target) Close() { _ = t.engine.Close() } // fails only inside a callback

// client keeps the callback, so that sending allocates nothing of its own.
type client struct {
	target   *target
	answered func(err error)
	done     func(*rankd.Answer, error)
}

// Send implements load.Client.
func (c *client) Send(user int64) {
	c.target.engine.Submit(rankd.Request{UserID: user, Plan: c.target.order[user-1]}, c.done)
}

func (c *client) finished(a *rankd.Answer, err error) {
	if err == nil && a.Plan == cheap {
		c.target.mu.Lock()
		_ = c.target.cheap.RecordValue(int64(a.Elapsed)) // fails only out of range: minutes
		c.target.mu.Unlock()
	}
	c.answered(err)
}
