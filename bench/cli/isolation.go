package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/rankd/rankd/bench/backend"
	"github.com/rankd/rankd/bench/engines"
	"github.com/rankd/rankd/bench/harness"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/bench/worker"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/registry"
)

// isolation measures what a large request costs its neighbours: small requests arrive at a share of the engine's capacity, and large
// ones come between them. Latency of the small ones counts from when they were due. One plan serves both kinds. The lists of its user
// decide which one a request is, so that an older build can run the same load. One goroutine.
type isolation struct {
	Rounds   int           `json:"rounds"`
	Duration time.Duration `json:"duration_ns"` // of a round
	Large    int           `json:"large"`       // large requests in a round
	Share    float64       `json:"share"`       // of its capacity at which an engine is loaded
	// Rate is the number of small requests per second for all engines, in place of a share. Zero: a share.
	Rate float64 `json:"rate,omitempty"`

	names          []string // of scenarios
	engines        string
	redisServer    string
	cpuThreads     int
	requestTimeout time.Duration
	specs          []engines.Spec

	scenarios  []isolationScenario
	redis      string
	run        func(engine int, r *worker.Round) (*worker.Report, error)
	say        func(format string, args ...any)
	capacities []float64 // of the engines in this scenario; 0 if the rate was given
	rates      []float64 // of the arrivals
}

const isolationLong = `Measure what a large request costs its neighbours. Small requests arrive at a share of the
engine's capacity, large ones come between them, and the latency of the small ones counts from
when they were due. A verdict for each scenario and engine says whether no small one failed and
whether their p99 kept its bound. An older build (binary:/old/rankd) runs the same load; it counts
the large requests among the small ones. The command starts a redis-server of its own.
`

func (p *Program) isolationMode() mode {
	o := new(isolation)
	names, long := describe(isolationLong, isolationScenarios(), func(s isolationScenario) (string, string) {
		return s.name, fmt.Sprintf("%s (p99 below %v)", s.doc, s.maxP99)
	})
	return mode{
		use: "isolation", short: "Measure what a large request costs small ones beside it", long: long,
		example: "  rankd bench isolation\n  rankd bench isolation --engines binary:/old/rankd:reactor,reactor",
		rows: []cmdline.Setting{
			scenarioRow(&o.names, names),
			{Name: "engines", To: &o.engines, Default: "reactor", Help: "`engines` to measure, as in rankd bench compare; no peers"},
			roundsRow(&o.Rounds),
			{Name: "duration", To: &o.Duration, Default: 10 * time.Second, Least: 1, Most: int64(time.Hour), Help: "how `long` requests arrive in a round"},
			{Name: "large", To: &o.Large, Default: 5, Least: 1, Most: 1000, Help: "`number` of large requests in a round, evenly spread"},
			{Name: "share", To: &o.Share, Default: 0.5, Help: "the `share` of an engine's capacity at which small requests arrive"},
			{Name: "rate", To: &o.Rate, Help: "small requests per second for all engines, in place of a share of their capacities: rounds and builds then compare"},
			{Name: "request_timeout", To: &o.requestTimeout, Default: 10 * time.Second, Least: int64(time.Millisecond), Most: int64(time.Hour), Help: "the endpoint's request `timeout`; the built-in registry has 1s, in which many_rows may not end"},
			redisServerRow(&o.redisServer),
			engineRow("cpu_threads", &o.cpuThreads),
		},
		check:  func(*pflag.FlagSet) error { return o.check() },
		report: func(ctx context.Context) (*harness.Report, error) { return p.measure(ctx, o.start, o.report) },
	}
}

// check reports all that is wrong with the flags at once, and completes them.
func (o *isolation) check() error {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	var err error
	if o.specs, err = engines.ParseSpecs(o.engines); err != nil {
		problem("--engines: %w", err)
	}
	if slices.ContainsFunc(o.specs, isPeer) {
		problem("--engines: peers know none of the plans")
	}
	if slices.ContainsFunc(o.specs, func(s engines.Spec) bool { return s.Cluster > 0 }) {
		problem("--engines: the data is on one server, and on no Redis Cluster")
	}
	if !(o.Share > 0 && o.Share <= 10) {
		problem("--share is a number above 0 and up to 10, not %v", o.Share)
	}
	if !(o.Rate >= 0 && o.Rate <= 1e6) {
		problem("--rate is a number from 0 to 1e6, not %v", o.Rate)
	}
	o.scenarios = slices.DeleteFunc(isolationScenarios(), func(s isolationScenario) bool { return !slices.Contains(o.names, s.name) })
	return errors.Join(problems...)
}

// String returns the settings as a line of text.
func (o *isolation) String() string {
	load := fmt.Sprintf("at %g of the engine's capacity", o.Share)
	if o.Rate > 0 {
		load = fmt.Sprintf("at %g/s", o.Rate)
	}
	return fmt.Sprintf("%d interleaved rounds of %v, %d large requests in each; %d small users in turn, %s", o.Rounds, o.Duration, o.Large, smallUsers, load)
}

// timeoutField matches the request timeout in a table of endpoints.
var timeoutField = regexp.MustCompile(`(?m)^request_timeout_ms = \d+$`)

// writeRegistry writes the built-in tables with another request timeout into folder.
func writeRegistry(folder string, timeout time.Duration) error {
	tables := registry.DefaultTables()
	files, err := fs.Glob(tables, "*")
	for _, name := range files {
		text, readErr := fs.ReadFile(tables, name)
		text = timeoutField.ReplaceAll(text, fmt.Appendf(nil, "request_timeout_ms = %d", timeout.Milliseconds()))
		err = errors.Join(err, readErr, os.WriteFile(filepath.Join(folder, name), text, 0o600))
	}
	return err
}

var isolationTable = harness.TableSpec{Figures: []harness.Figure{
	{Key: "capacity_rps", Head: "capacity/s", Text: harness.Whole}, // small requests per second that the engine bears
	{Key: "rate_rps", Head: "arrivals/s", Text: harness.Whole},
	{Key: "small_answered", Head: "small", Text: harness.Whole, Fold: harness.Sum}, // failures among them
	{Key: "small_errors", Head: "failed", Text: harness.Whole, Fold: harness.Sum},
	{Key: "shed", Head: "turned away", Text: harness.Whole, Fold: harness.Sum},
	{Key: "small_p50_us", Head: "p50", Text: harness.Duration, Fold: harness.Quantile("small", 50)},
	{Key: "small_p99_us", Head: "p99 of all", Text: harness.Duration, Fold: harness.Quantile("small", 99)},
	// The machine may pause for milliseconds: that spoils a round, and the median of the rounds passes over it.
	{Key: "p99_by_round_us", Head: "p99 by round", Text: harness.Interval},
	{Key: "alone_p99_by_round_us", Head: "alone, by round", Text: harness.Interval}, // without large ones, in rounds of half the duration
	{Key: "small_max_us", Head: "max", Text: harness.Duration, Fold: harness.Quantile("small", 100)},
	{Key: "lag_p99_us", Head: "sent late, p99", Text: harness.Duration, Fold: harness.Quantile("lag", 99)},
	{Key: "large_answered", Head: "large", Text: harness.Whole, Fold: harness.Sum}, // absent for an older build, which counts them among the small ones
	{Key: "large_errors", Head: "failed", Text: harness.Whole, Fold: harness.Sum},
	{Key: "large_p50_us", Head: "p50", Text: harness.Duration, Fold: harness.Quantile("large", 50)},
	{Key: "large_max_us", Head: "max", Text: harness.Duration, Fold: harness.Quantile("large", 100)},
	{Key: "alone_answered", Fold: harness.Sum},
	{Key: "alone_errors", Fold: harness.Sum},
	{Key: "alone_p50_us", Fold: harness.Quantile("alone", 50)},
	{Key: "alone_p99_us", Fold: harness.Quantile("alone", 99)},
}}

// start starts the engines, and a Redis with the data of the scenarios.
func (o *isolation) start(r *rig) (*harness.Experiment, error) {
	tables, err := r.folder()
	if err != nil {
		return nil, err
	}
	if err := writeRegistry(tables, o.requestTimeout); err != nil {
		return nil, err
	}
	back, err := r.redis(backend.Options{Server: o.redisServer, Real: true, Data: func(ctx context.Context, server string) error {
		return loadIsolation(ctx, server, o.scenarios)
	}})
	if err != nil {
		return nil, err
	}
	workers, err := r.workers(&fleet{specs: o.specs, cpuThreads: o.cpuThreads, env: "dev", registryDir: tables})
	if err != nil {
		return nil, err
	}
	o.redis, o.run, o.say = back.Addr(0), workers.run, r.say
	return o.experiment(specNames(o.specs)), nil
}

// experiment returns the rounds to run. An engine that cannot run a round has a failure.
func (o *isolation) experiment(engines []string) *harness.Experiment {
	e := &harness.Experiment{
		Subjects: harness.Named("engine", "engine", engines...), Rounds: o.Rounds, Figures: isolationTable.Figures, Run: o.round,
		Prepare: func(_ context.Context, scenario int) (failures []string, stop func(), err error) {
			o.capacities, o.rates = make([]float64, len(engines)), make([]float64, len(engines))
			for i, engine := range engines {
				failure, err := o.findRate(scenario, i, engine)
				if err != nil {
					return nil, nil, err
				}
				failures = append(failures, failure)
			}
			return failures, nil, nil
		},
		Say: func(s harness.Sample) string {
			f := s.Figures
			return fmt.Sprintf("at %.0f/s: p99 alone %v, beside large ones %v, %.0f failed", f["rate_rps"], harness.Micros(f["alone_p99_by_round_us"]),
				harness.Micros(f["p99_by_round_us"]), f["small_errors"]+f["shed"])
		},
	}
	for _, s := range o.scenarios {
		e.Scenarios = append(e.Scenarios, harness.Named("scenario", "", s.name)...)
	}
	return e
}

// base returns the part that all rounds of a scenario have in common.
func (o *isolation) base(s *isolationScenario) worker.Setup {
	return worker.Setup{Redis: o.redis, Plan: s.name, Artifact: s.plan}
}

// findRate finds the rate of arrivals of an engine in a scenario.
func (o *isolation) findRate(scenario, engine int, name string) (failure string, err error) {
	s, rate := &o.scenarios[scenario], o.Rate
	if rate == 0 {
		c := search{duration: o.Duration, run: func(r *worker.Round) (*worker.Report, error) {
			r.Setup, r.Users = o.base(s), s.users(smallUsers, 0)
			return o.run(engine, r)
		}}
		capacity, err := c.capacity()
		if err != nil {
			return "", err
		}
		if c.failure != nil {
			return c.failure.Error(), nil
		}
		o.capacities[engine], rate = capacity, o.Share*capacity
		o.say("%s: %s bears %.0f small requests/s", s.name, name, capacity)
	}
	o.rates[engine] = min(rate, float64(arrivalsMax)/o.Duration.Seconds())
	return "", nil
}

// backlog bounds the requests in flight of the open loop. An engine that stalls for a second has to hold them all.
const backlog = 1 << 16

// round measures the small requests of an engine alone, then beside large ones.
func (o *isolation) round(_ context.Context, scenario, engine, _ int) (harness.Sample, error) {
	s, rate := &o.scenarios[scenario], o.rates[engine]
	arrivals := max(int(rate*o.Duration.Seconds()), 2*o.Large)
	measure := func(arrivals, large int) (*worker.Report, error) {
		return o.run(engine, &worker.Round{Setup: o.base(s), Load: load.Load{
			Users: s.users(arrivals, large), Heavy: []int64{s.heavy}, Concurrency: backlog, Rate: rate, Requests: int64(arrivals),
		}})
	}
	alone, err := measure(arrivals/2, 0)
	if err != nil {
		return harness.Sample{}, err
	}
	beside, err := measure(arrivals, o.Large)
	if err != nil {
		return harness.Sample{}, err
	}
	if failure := cmp.Or(alone.Failure, beside.Failure); failure != "" {
		return harness.Sample{Failure: failure}, nil
	}
	sample := harness.Sample{
		Figures: map[string]float64{
			"rate_rps": rate, "shed": float64(beside.Shed),
			"p99_by_round_us":       beside.Latency.Micros(99),
			"alone_p99_by_round_us": alone.Latency.Micros(99),
		},
		Latencies: map[string]load.Histogram{"lag": beside.Lag}, Errors: map[string]string{},
	}
	if capacity := o.capacities[engine]; capacity > 0 {
		sample.Figures["capacity_rps"] = capacity
	}
	add := func(kind string, t *load.Tally) {
		sample.Figures[kind+"_answered"], sample.Figures[kind+"_errors"], sample.Latencies[kind] = float64(t.Answered), float64(t.Errors), t.Latency
		sample.Errors[kind] = t.FirstError
	}
	add("alone", &alone.Tally)
	add("small", &beside.Tally)
	if beside.Heavy != nil {
		add("large", beside.Heavy)
	}
	return sample, nil
}

// report says for each scenario and engine whether the small requests keep the scenario's promise.
func (o *isolation) report(results [][]*harness.Result) *harness.Report {
	r := &harness.Report{Title: "What large requests cost small ones", Settings: o, Results: harness.Flatten(results)}
	for i := range results {
		s := &o.scenarios[i]
		section := harness.Section{Title: s.name + ": " + s.doc, Tables: []harness.Table{isolationTable.Table(results[i])}}
		for _, result := range results[i] {
			line, found := s.verdict(result, o.Large*o.Rounds)
			section.Lines = append(section.Lines, line)
			r.Failed = r.Failed || found < slow
			for _, kind := range []string{"small", "large"} {
				if text := result.Errors[kind]; text != "" {
					of := ""
					if kind == "small" {
						of = among(result)
					}
					r.Troubles = append(r.Troubles, fmt.Sprintf("%s: the first %s request that failed%s: %s", o.specs[result.Subject], kind, of, text))
				}
			}
		}
		r.Sections = append(r.Sections, section)
	}
	return r
}

// promise says how far small requests are isolated.
type promise int

const (
	notMeasured promise = iota
	failing             // a small one failed or was turned away
	slow                // the median of their p99 exceeds the scenario's bound
	kept
)

// verdict says whether the small requests of the engine keep the scenario's promise. large is the number of large requests in all rounds.
func (s *isolationScenario) verdict(r *harness.Result, large int) (text string, p promise) {
	name := fmt.Sprintf("%s, %s", s.name, r.Labels[len(r.Labels)-1].Value)
	if r.Failure != "" {
		return fmt.Sprintf("NOT MEASURED %s: %s", name, r.Failure), notMeasured
	}
	errors, shed := r.Value("small_errors"), r.Value("shed")
	failures := errors
	if among(r) != "" {
		failures -= float64(large) // at most so many failures are of large ones
	}
	p99 := r.Value("p99_by_round_us")
	switch {
	case failures > 0 || shed > 0:
		return fmt.Sprintf("MISSED %s: %.0f small requests failed and %.0f were turned away%s; none should", name, errors, shed, among(r)), failing
	case p99 >= harness.InMicros(s.maxP99):
		return fmt.Sprintf("MISSED %s: the p99 of the small requests is %v, and should be below %v", name, harness.Micros(p99), s.maxP99), slow
	default:
		return fmt.Sprintf("KEPT %s: no small request fails, and their p99 is %v, below %v", name, harness.Micros(p99), s.maxP99), kept
	}
}

// among says that an older build counts large requests among the small ones.
func among(r *harness.Result) string {
	if _, apart := r.Figures["large_answered"]; !apart {
		return " (the large ones among them)"
	}
	return ""
}

// search finds the rate of arrivals that an engine bears. A closed loop answers more: it needs no goroutine that sends,
// and always has as many requests in flight as an engine works on together. One goroutine.
type search struct {
	duration time.Duration // of a round of the scenario
	run      func(r *worker.Round) (*worker.Report, error)
	failure  error // why the engine cannot be measured
}

// inFlight is the concurrency of the closed loop from whose throughput the search goes down.
const inFlight = 64

// steps halve the interval in which the capacity is: it is then known to 1/64 of the closed loop's throughput.
const steps = 6

// bears is the median latency up to which an engine bears a rate. Beyond its capacity requests queue up: after a second
// of 1 % too many, half of them have waited for longer. A pause of the machine delays fewer than half.
const bears = 5 * time.Millisecond

// capacity returns the highest rate that the engine bears, at least 1/64 of what it answers in a closed loop. If it
// cannot be measured, capacity sets failure. The error is the end of its worker.
func (s *search) capacity() (rate float64, err error) {
	closed, err := s.measure(load.Load{Concurrency: inFlight, Duration: s.duration / 4}, s.duration/10)
	if err != nil || s.failure != nil {
		return 0, err
	}
	low, high := 0.0, closed.PerSecond()
	for range steps {
		rate := (low + high) / 2
		r, err := s.measure(load.Load{Concurrency: backlog, Rate: rate, Requests: max(1, int64(rate*s.duration.Seconds()/8))}, 0)
		if err != nil || s.failure != nil {
			return 0, err
		}
		if r.Shed == 0 && time.Duration(r.Latency.ValueAtPercentile(50)) <= bears {
			low = rate
		} else {
			high = rate
		}
	}
	return max(low, closed.PerSecond()/(1<<steps)), nil
}

// measure runs a round. An error of a request is a failure.
func (s *search) measure(l load.Load, warmup time.Duration) (*worker.Report, error) {
	report, err := s.run(&worker.Round{Load: l, Warmup: warmup})
	if err == nil {
		s.failure = report.Sound()
	}
	return report, err
}
