package placement

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rankd/rankd/bench/compare"
	"github.com/rankd/rankd/bench/worker"
)

// Settings are common to all rounds. Immutable.
type Settings struct {
	Rounds   int
	Duration time.Duration // of a round
	Warmup   time.Duration // before each round
}

// Result is the measurement of one scenario with one variant: medians over rounds. Times are
// in µs. Figures that only this build tells are zero for another one. Immutable.
type Result struct {
	Scenario  string           `json:"scenario"`
	Variant   string           `json:"variant"`
	PerSecond compare.Estimate `json:"requests_per_second"`
	P50       compare.Estimate `json:"p50_us"`
	P99       compare.Estimate `json:"p99_us"`
	// CheapP99 is the 99th percentile of the requests for the plan "cheap"; zero without one.
	CheapP99 compare.Estimate `json:"cheap_p99_us"`
	CPU      compare.Estimate `json:"cpu_us"` // processor time of the engine's process per request
	// Better is how many times better than offload_all the scenario's figure is, and BetterThanBase
	// how many times better than the other build's.
	Better         compare.Estimate `json:"better"`
	BetterThanBase compare.Estimate `json:"better_than_base"`

	// The metrics of the engine, the warm-up included.
	InlineRate   compare.Estimate `json:"inline_rate"`
	OffloadRate  compare.Estimate `json:"offload_rate"`
	FusedRate    compare.Estimate `json:"fused_rate"`
	QueueDelay   compare.Estimate `json:"queue_delay_p50_us"`
	StartMean    compare.Estimate `json:"start_delay_mean_us"` // from ready to start, of all nodes
	StartP99     compare.Estimate `json:"start_delay_p99_us"`
	RoundTrip    compare.Estimate `json:"offload_round_trip_p50_us"`
	CallbackP50  compare.Estimate `json:"loop_callback_p50_us"`
	CallbackP99  compare.Estimate `json:"loop_callback_p99_us"`
	CallbackP999 compare.Estimate `json:"loop_callback_p999_us"`
	CallbackMax  compare.Estimate `json:"loop_callback_max_us"`
	// CallbackCPU99 and CallbackCPU are the 99th and the 99.9th percentile of the processor time of
	// a callback.
	CallbackCPU99 compare.Estimate `json:"loop_callback_cpu_p99_us"`
	CallbackCPU   compare.Estimate `json:"loop_callback_cpu_p999_us"`
}

// sample is one round.
type sample struct {
	perSecond, p50, p99, cpu float64
	figures
}

// Measure runs the scenario on each variant, in rounds that take turns. run has the variant of that
// index run a round. A scenario of several plans leaves another build out, since that build can only
// be told one plan. progress is told of each round.
func Measure(ctx context.Context, s *Scenario, variants []Variant, o Settings, run func(variant int, r *worker.Round) (*worker.Report, error),
	progress func(round int, v Variant)) ([]Result, error) {
	if len(s.Plans) > 1 {
		variants = variants[:min(len(variants), base)]
	}
	samples := make([][]sample, len(variants))
	for round := range o.Rounds {
		for i := range variants {
			i = (i + round) % len(variants) // nobody is always the first
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			progress(round, variants[i])
			one, err := measure(s, o, round, func(r *worker.Round) (*worker.Report, error) { return run(i, r) })
			if err != nil {
				if ctx.Err() != nil {
					err = ctx.Err() // the worker was stopped; its own error is not the reason
				}
				return nil, fmt.Errorf("%s, %s: %w", s.Name, variants[i].Name, err)
			}
			samples[i] = append(samples[i], one)
		}
	}
	results := make([]Result, len(variants))
	for i, v := range variants {
		results[i] = result(samples[i])
		results[i].Scenario, results[i].Variant = s.Name, v.Name
		results[i].Better = s.better(samples[i], samples[offloadAll])
		if len(samples) > base {
			results[i].BetterThanBase = s.better(samples[i], samples[base])
		}
	}
	return results, nil
}

func result(samples []sample) Result {
	of := func(figure func(*sample) float64) compare.Estimate {
		var values []float64
		for j := range samples {
			values = append(values, figure(&samples[j]))
		}
		return compare.EstimateOf(values)
	}
	return Result{
		PerSecond: of(func(s *sample) float64 { return s.perSecond }),
		P50:       of(func(s *sample) float64 { return s.p50 }), P99: of(func(s *sample) float64 { return s.p99 }),
		CheapP99:   of(func(s *sample) float64 { return s.CheapP99 }),
		InlineRate: of(func(s *sample) float64 { return s.InlineRate }), OffloadRate: of(func(s *sample) float64 { return s.OffloadRate }),
		CPU:       of(func(s *sample) float64 { return s.cpu }),
		StartMean: of(func(s *sample) float64 { return s.StartMean }), StartP99: of(func(s *sample) float64 { return s.StartP99 }),
		FusedRate:  of(func(s *sample) float64 { return s.FusedRate }),
		QueueDelay: of(func(s *sample) float64 { return s.QueueDelay }), RoundTrip: of(func(s *sample) float64 { return s.RoundTrip }),
		CallbackP50: of(func(s *sample) float64 { return s.figures.CallbackP50 }), CallbackP99: of(func(s *sample) float64 { return s.figures.CallbackP99 }),
		CallbackP999: of(func(s *sample) float64 { return s.CallbackP999 }), CallbackMax: of(func(s *sample) float64 { return s.CallbackMax }),
		CallbackCPU99: of(func(s *sample) float64 { return s.CallbackCPU99 }), CallbackCPU: of(func(s *sample) float64 { return s.CallbackCPU }),
	}
}

// better returns how many times better rounds are than other ones, by the scenario's key figure.
func (s *Scenario) better(a, than []sample) compare.Estimate {
	var ratios []float64
	for i := range min(len(a), len(than)) {
		switch s.Key {
		case PerSecond:
			ratios = append(ratios, a[i].perSecond/than[i].perSecond)
		case CheapP99:
			ratios = append(ratios, than[i].CheapP99/a[i].CheapP99)
		default:
			ratios = append(ratios, than[i].p50/a[i].p50)
		}
	}
	return compare.EstimateOf(ratios)
}

// noRedis is the address of the Redis that no plan of a scenario asks.
const noRedis = "127.0.0.1:1"

// measure runs one round, on an engine of its own. Only another build keeps its engine.
func measure(s *Scenario, o Settings, round int, run func(*worker.Round) (*worker.Report, error)) (sample, error) {
	r := worker.Round{
		Setup:       worker.Setup{Redis: noRedis, Plan: s.Order[0], Scenario: s.Name, Serial: round + 1},
		Concurrency: s.Concurrency, Rate: s.Rate, Duration: o.Duration, Warmup: o.Warmup,
	}
	if len(s.Plans) == 1 {
		text, err := s.Folder().ReadFile(s.Order[0] + ".plan.json")
		if err != nil {
			return sample{}, err
		}
		r.Artifact = string(text) // another build reads it, and knows nothing of scenarios
	}
	for i := range s.Order {
		r.Users = append(r.Users, int64(i+1))
	}
	report, err := run(&r)
	if err != nil {
		return sample{}, err
	}
	result, err := report.Result()
	switch {
	case err != nil:
		return sample{}, err
	case result.FirstError != nil:
		return sample{}, result.FirstError
	case result.Answered == 0:
		return sample{}, errors.New("no request was answered")
	}
	us := func(percent float64) float64 {
		return float64(result.Latency.ValueAtPercentile(percent)) / float64(time.Microsecond)
	}
	one := sample{perSecond: result.PerSecond(), p50: us(50), p99: us(99),
		cpu: float64(report.CPU) / float64(time.Microsecond) / float64(result.Answered)}
	if report.Figures != nil {
		err = json.Unmarshal(report.Figures, &one.figures)
	}
	return one, err
}
