package overload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rankd/rankd/bench/caller"
	"github.com/rankd/rankd/bench/compare"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/bench/worker"
)

// Settings say how to measure. Immutable.
type Settings struct {
	Rounds   int
	Duration time.Duration // of the arrivals of a round; capacity and refusals take half of it each
	Warmup   time.Duration // before each measurement
	Times    float64       // the capacity at which requests arrive
}

// Server is a server under load. Immutable.
type Server struct {
	RESP, HTTP string // addresses of its fronts
	PID        int
}

func (s *Server) addr(front string) string {
	if front == caller.HTTP {
		return s.HTTP
	}
	return s.RESP
}

// Run has the process of clients run a round. One goroutine at a time.
type Run func(*worker.Round) (*worker.Report, error)

// Result is the measurement of one front in one scenario. Counts are sums over the rounds, estimates medians. Times
// are µs. Immutable once built.
type Result struct {
	Scenario string `json:"scenario"`
	Front    string `json:"front"`

	Capacity compare.Estimate `json:"capacity_rps"` // with MaxInflight requests in flight
	Rate     compare.Estimate `json:"arrivals_rps"`
	Goodput  compare.Estimate `json:"goodput_rps"` // answers within the deadline
	// Share is the goodput as a share of the capacity, within each round.
	Share compare.Estimate `json:"goodput_share"`

	RefusalP50 compare.Estimate `json:"refusal_p50_us"` // from when the request was due
	RefusalP99 compare.Estimate `json:"refusal_p99_us"`
	AnswerP50  compare.Estimate `json:"answer_p50_us"` // likewise
	AnswerP99  compare.Estimate `json:"answer_p99_us"`
	AnswerMax  float64          `json:"answer_max_us"`
	Lag        compare.Estimate `json:"lag_p99_us"` // how late the client sent arrivals, which counts as latency

	CPUAnswer  compare.Estimate `json:"cpu_answer_us"`  // of the server, at capacity
	CPURefusal compare.Estimate `json:"cpu_refusal_us"` // of a server that refuses all
	CPUBusy    compare.Estimate `json:"cpu_cores"`      // that the server used while overloaded

	Answered   int64  `json:"answered"`
	Late       int64  `json:"late"` // answered after the deadline
	Refused    int64  `json:"refused"`
	Errors     int64  `json:"errors"` // most of them deadlines that the server has noticed
	FirstError string `json:"first_error,omitempty"`
	Unsent     int64  `json:"unsent"` // arrivals that found no free connection
}

// round is the measurement of one round.
type round struct {
	capacity, cpuAnswer, cpuRefusal float64
	rate, cores                     float64
	overload                        *load.Result
}

// Measure runs a scenario on all fronts of a server, in rounds in which they take turns. full is a server that
// refuses everything. The error names the front.
func Measure(ctx context.Context, s *Scenario, fronts []string, server, full Server, o Settings, run Run, progress func(string)) ([]Result, error) {
	rounds := make([][]round, len(fronts))
	for n := range o.Rounds {
		for i := range fronts {
			i = (i + n) % len(fronts) // nobody is always the first
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			m := measurement{scenario: s, front: fronts[i], settings: o, run: run}
			one, err := m.round(server, full)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", s.Name, fronts[i], err)
			}
			rounds[i] = append(rounds[i], one)
			progress(fmt.Sprintf("%s, round %d of %d: %s answers %.0f/s; at %.0f/s it answers %.0f/s and refuses %d", s.Name, n+1, o.Rounds, fronts[i],
				one.capacity, one.rate, good(one.overload, s.Deadline), refused(one.overload)))
		}
	}
	results := make([]Result, len(fronts))
	for i, front := range fronts {
		results[i] = s.result(rounds[i])
		results[i].Scenario, results[i].Front = s.Name, front
	}
	return results, nil
}

// measurement is the part that all loads of a round have in common. Immutable.
type measurement struct {
	scenario *Scenario
	front    string
	settings Settings
	run      Run
}

// base returns a round with so many requests in flight.
func (m *measurement) base(s Server, inFlight int) *worker.Round {
	connections := inFlight
	if m.front == caller.RESP && m.scenario.Pipelined > 0 {
		connections = min(connections, m.scenario.Pipelined)
	}
	return &worker.Round{
		Setup: worker.Setup{
			Plan: m.scenario.Name, Front: m.front, Server: s.addr(m.front), Connections: connections, Deadline: m.scenario.Deadline,
		},
		Users: []int64{1}, Concurrency: inFlight, Duration: m.settings.Duration / 2, Warmup: m.settings.Warmup, ServerPID: s.PID,
	}
}

func (m *measurement) round(server, full Server) (one round, err error) {
	atCapacity := m.base(server, m.scenario.MaxInflight)
	atCapacity.Deadline = 0 // the capacity is what the server can do, in time or not
	report, result, err := m.load(atCapacity)
	switch {
	case err != nil:
		return one, err
	case result.FirstError != nil:
		return one, fmt.Errorf("at capacity: %w", result.FirstError)
	case result.Refused != nil || result.Answered == 0:
		return one, fmt.Errorf("at capacity: %d answers, and %d refusals", result.Answered, refused(result))
	}
	one.capacity = result.PerSecond()
	one.cpuAnswer = micros(int64(report.ServerCPU)) / float64(result.Answered)

	above := m.base(server, m.scenario.Arrivals)
	one.rate = m.settings.Times * one.capacity
	above.Rate, above.Duration = one.rate, m.settings.Duration
	if report, one.overload, err = m.load(above); err != nil {
		return one, err
	}
	one.cores = float64(report.ServerCPU) / float64(one.overload.Elapsed)

	if report, result, err = m.load(m.base(full, m.scenario.MaxInflight)); err != nil {
		return one, err
	}
	if result.Answered > 0 || refused(result) == 0 {
		return one, errors.Join(fmt.Errorf("the server that refuses all has given %d answers, and %d refusals", result.Answered, refused(result)), result.FirstError)
	}
	one.cpuRefusal = micros(int64(report.ServerCPU)) / float64(refused(result))
	return one, nil
}

func (m *measurement) load(r *worker.Round) (*worker.Report, *load.Result, error) {
	report, err := m.run(r)
	if err != nil {
		return nil, nil, err
	}
	result, err := report.Result()
	return report, result, err
}

// result computes the figures of a front.
func (s *Scenario) result(rounds []round) Result {
	of := func(figure func(*round) float64) compare.Estimate {
		var values []float64
		for i := range rounds {
			values = append(values, figure(&rounds[i]))
		}
		return compare.EstimateOf(values)
	}
	quantile := func(percent float64, of func(*load.Result) *hdrhistogram.Histogram) func(*round) float64 {
		return func(r *round) float64 { return micros(of(r.overload).ValueAtPercentile(percent)) }
	}
	answers := func(r *load.Result) *hdrhistogram.Histogram { return r.Latency }
	lags := func(r *load.Result) *hdrhistogram.Histogram { return r.Lag }
	result := Result{
		Capacity: of(func(r *round) float64 { return r.capacity }), Rate: of(func(r *round) float64 { return r.rate }),
		Goodput:    of(func(r *round) float64 { return good(r.overload, s.Deadline) }),
		Share:      of(func(r *round) float64 { return good(r.overload, s.Deadline) / r.capacity }),
		RefusalP50: of(quantile(50, refusals)), RefusalP99: of(quantile(99, refusals)),
		AnswerP50: of(quantile(50, answers)), AnswerP99: of(quantile(99, answers)), Lag: of(quantile(99, lags)),
		CPUAnswer:  of(func(r *round) float64 { return r.cpuAnswer }),
		CPURefusal: of(func(r *round) float64 { return r.cpuRefusal }),
		CPUBusy:    of(func(r *round) float64 { return r.cores }),
	}
	for _, r := range rounds {
		o := r.overload
		result.Answered += o.Answered - o.Errors
		result.Late += late(o, s.Deadline)
		result.Refused += refused(o)
		result.Errors += o.Errors
		result.Unsent += o.Shed
		result.AnswerMax = max(result.AnswerMax, micros(o.Latency.Max()))
		if o.FirstError != nil && result.FirstError == "" {
			result.FirstError = o.FirstError.Error()
		}
	}
	return result
}

// refusals returns the latencies of refusals; none if there were none.
func refusals(r *load.Result) *hdrhistogram.Histogram {
	if r.Refused == nil {
		return load.NewHistogram()
	}
	return r.Refused.Latency
}

func refused(r *load.Result) int64 { return refusals(r).TotalCount() }

// late returns the number of answers that came after the deadline.
func late(r *load.Result, deadline time.Duration) (n int64) {
	for _, bar := range r.Latency.Distribution() {
		if bar.From > int64(deadline) {
			n += bar.Count
		}
	}
	return n
}

// good returns the answers per second that came within the deadline.
func good(r *load.Result, deadline time.Duration) float64 {
	return float64(r.Latency.TotalCount()-late(r, deadline)) / r.Elapsed.Seconds()
}

func micros(ns int64) float64 { return float64(ns) / float64(time.Microsecond) }
