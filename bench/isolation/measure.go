package isolation

import (
	"context"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rankd/rankd/bench/compare"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/bench/worker"
)

// Settings say how to measure. Immutable.
type Settings struct {
	Rounds   int           `json:"rounds"`
	Duration time.Duration `json:"duration_ns"` // of a round
	Large    int           `json:"large"`       // large requests in a round
	Share    float64       `json:"share"`       // of its capacity at which an engine is loaded
	// Rate is the number of small requests per second for all engines, in place of a share. Zero: a share.
	Rate float64 `json:"rate,omitempty"`
}

// backlog bounds the requests in flight of the open loop. An engine that stalls for a second has to hold them all.
const backlog = 1 << 16

// Run has an engine run one round. One goroutine at a time.
type Run func(ctx context.Context, engine int, r *worker.Round) (*worker.Report, error)

// Result is what the small requests of one engine met in one scenario. Counts are sums over the rounds.
// Times are µs. Immutable once built.
type Result struct {
	Scenario string  `json:"scenario"`
	Engine   string  `json:"engine"`
	Failure  string  `json:"failure,omitempty"` // why it was not measured
	Capacity float64 `json:"capacity_rps"`      // small requests per second that the engine bears; 0 if the rate was given
	Rate     float64 `json:"rate_rps"`          // of the arrivals

	Small Figures `json:"small"`
	// Alone is what small requests meet at the same rate without large ones, in rounds of half the duration.
	Alone Figures `json:"alone"`
	// Large is nil for an older build, which counts the large requests among the small ones.
	Large *Figures `json:"large"`
	Shed  int64    `json:"shed"`       // arrivals turned away
	Lag   float64  `json:"lag_p99_us"` // how late the driver sent arrivals, which counts as latency
	// P99 is the 99th percentile of the small requests, by round. The machine may pause for milliseconds: that
	// spoils a round, and the median of the rounds passes over it.
	P99      compare.Estimate `json:"p99_by_round_us"`
	AloneP99 compare.Estimate `json:"alone_p99_by_round_us"`

	SmallFail bool `json:"small_fail"` // a small one failed or was turned away
	Slow      bool `json:"slow"`       // the median of P99 exceeds the scenario's bound
}

// Figures describe some requests. Immutable once built.
type Figures struct {
	Answered   int64   `json:"answered"` // failures among them
	Errors     int64   `json:"errors"`
	FirstError string  `json:"first_error,omitempty"`
	P50        float64 `json:"p50_us"`
	P99        float64 `json:"p99_us"`
	Max        float64 `json:"max_us"`
}

// Measure runs a scenario on all engines, in interleaved rounds. An engine whose worker ends is an error;
// one that cannot run a round has a Failure.
func Measure(ctx context.Context, s *Scenario, engines []string, base worker.Setup, o Settings, run Run, progress func(string)) ([]Result, error) {
	base.Plan, base.Artifact = s.Name, s.Plan
	results := make([]Result, len(engines))
	samples := make([]sample, len(engines))
	for i, engine := range engines {
		r := &results[i]
		*r = Result{Scenario: s.Name, Engine: engine, Rate: o.Rate}
		if o.Rate == 0 {
			c := search{duration: o.Duration, run: func(r *worker.Round) (*worker.Report, error) {
				r.Setup, r.Users = base, s.users(SmallUsers, 0)
				return run(ctx, i, r)
			}}
			var err error
			if r.Capacity, err = c.capacity(); err != nil {
				return nil, err
			}
			if c.failure != nil {
				r.Failure = c.failure.Error()
				continue
			}
			r.Rate = o.Share * r.Capacity
			progress(fmt.Sprintf("%s: %s bears %.0f small requests/s", s.Name, engine, r.Capacity))
		}
		r.Rate = min(r.Rate, float64(arrivalsMax)/o.Duration.Seconds())
	}
	for round := range o.Rounds {
		for i := range engines {
			i = (i + round) % len(engines) // nobody is always the first
			r := &results[i]
			if r.Failure != "" {
				continue
			}
			arrivals := max(int(r.Rate*o.Duration.Seconds()), 2*o.Large)
			measure := func(arrivals, large int) (*load.Result, error) {
				report, err := run(ctx, i, &worker.Round{
					Setup: base, Users: s.users(arrivals, large), Heavy: []int64{s.Heavy},
					Concurrency: backlog, Rate: r.Rate, Requests: int64(arrivals),
				})
				if err != nil {
					return nil, err
				}
				result, err := report.Result()
				if err != nil {
					r.Failure = err.Error()
				}
				return result, nil
			}
			alone, err := measure(arrivals/2, 0)
			if err != nil {
				return nil, err
			}
			beside, err := measure(arrivals, o.Large)
			if err != nil {
				return nil, err
			}
			if r.Failure != "" {
				continue
			}
			samples[i].add(alone, beside)
			progress(fmt.Sprintf("%s, round %d of %d: %s at %.0f/s: p99 alone %v, beside large ones %v, %d failed", s.Name, round+1, o.Rounds, r.Engine, r.Rate,
				p99(alone), p99(beside), beside.Errors+beside.Shed))
		}
	}
	for i := range results {
		if results[i].Failure == "" {
			samples[i].fill(&results[i], s, o.Large*o.Rounds)
		}
	}
	return results, nil
}

// sample holds the rounds of one engine.
type sample struct {
	small, alone, large load.Tally
	apart               bool // large ones are not among small
	shed                int64
	lag                 *hdrhistogram.Histogram
	p99, aloneP99       []float64
}

func p99(r *load.Result) time.Duration {
	return time.Duration(r.Latency.ValueAtPercentile(99)).Round(time.Microsecond)
}

// add takes in the small requests of a round without large ones, and a round with them.
func (s *sample) add(alone, r *load.Result) {
	if s.lag == nil {
		s.lag = load.NewHistogram()
		s.small.Latency, s.alone.Latency, s.large.Latency = load.NewHistogram(), load.NewHistogram(), load.NewHistogram()
	}
	merge(&s.alone, tally(alone))
	merge(&s.small, tally(r))
	if r.Heavy != nil {
		s.apart = true
		merge(&s.large, r.Heavy)
	}
	s.shed += r.Shed
	s.lag.Merge(r.Lag)
	s.p99 = append(s.p99, micros(r.Latency.ValueAtPercentile(99)))
	s.aloneP99 = append(s.aloneP99, micros(alone.Latency.ValueAtPercentile(99)))
}

// fill computes the figures. large is the number of large requests in all rounds.
func (s *sample) fill(r *Result, scenario *Scenario, large int) {
	r.Small, r.Shed, r.Lag, r.Alone = figures(&s.small), s.shed, micros(s.lag.ValueAtPercentile(99)), figures(&s.alone)
	r.P99, r.AloneP99 = compare.EstimateOf(s.p99), compare.EstimateOf(s.aloneP99)
	failures := r.Small.Errors
	if s.apart {
		f := figures(&s.large)
		r.Large = &f
	} else {
		failures -= int64(large) // at most so many failures are of large ones
	}
	r.SmallFail = failures > 0 || s.shed > 0
	r.Slow = r.P99.Median >= micros(int64(scenario.MaxP99))
}

func tally(r *load.Result) *load.Tally {
	return &load.Tally{Answered: r.Answered, Errors: r.Errors, FirstError: r.FirstError, Latency: r.Latency}
}

func merge(into, from *load.Tally) {
	into.Answered += from.Answered
	into.Errors += from.Errors
	if into.FirstError == nil {
		into.FirstError = from.FirstError
	}
	into.Latency.Merge(from.Latency)
}

func figures(t *load.Tally) Figures {
	f := Figures{
		Answered: t.Answered, Errors: t.Errors,
		P50: micros(t.Latency.ValueAtPercentile(50)), P99: micros(t.Latency.ValueAtPercentile(99)), Max: micros(t.Latency.Max()),
	}
	if t.FirstError != nil {
		f.FirstError = t.FirstError.Error()
	}
	return f
}

func micros(ns int64) float64 { return float64(ns) / float64(time.Microsecond) }
