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

	"github.com/rankd/rankd/bench/harness"
	"github.com/rankd/rankd/bench/internal/backend"
	"github.com/rankd/rankd/bench/internal/engines"
	"github.com/rankd/rankd/bench/internal/worker"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/registry"
)

// isolation measures what a large request costs its neighbours: small requests arrive at a share of the engine's capacity, and large
// ones come between them. Latency of the small ones counts from when they were due. One plan serves both kinds. The lists of its user
// decide which one a request is, so that an older build can run the same load. One goroutine.
type isolation struct {
	loads
	Large int     `json:"large"` // large requests in a round
	Share float64 `json:"share"` // of what an engine answers in a closed loop
	// Rate is the number of small requests per second for all engines, in place of a share. Zero: a share.
	Rate float64 `json:"rate,omitempty"`

	engines        string
	requestTimeout time.Duration
	specs          []engines.Spec
	redis          string
	kinds          []isolationScenario // of the situations
}

const isolationLong = `Measure what a large request costs its neighbours. Each round first finds what an engine answers
in a closed loop of small requests. Then small requests arrive at a share of that rate, alone and with
large ones between them, and the latency of the small ones counts from when they were due. An older
build (binary:/old/rankd) runs the same load; it counts the large requests among the small ones. The
command starts a redis-server of its own.
`

func (p *Program) isolationMode() mode {
	o := new(isolation)
	names, long := describe(isolationLong, isolationScenarios(), func(s isolationScenario) (string, string) {
		return s.name, fmt.Sprintf("%s (p99 at most %v)", s.doc, s.maxP99)
	})
	return p.loading(mode{
		use: "isolation", short: "Measure what a large request costs small ones beside it", long: long,
		example: "  rankd bench isolation\n  rankd bench isolation --engines binary:/old/rankd:reactor,reactor",
		rows: []cmdline.Setting{
			scenarioRow(&o.names, names),
			{Name: "engines", To: &o.engines, Default: "reactor", Help: "`engines` to measure, as in rankd bench compare; no peers"},
			{Name: "large", To: &o.Large, Default: 5, Least: 1, Most: 1000, Help: "`number` of large requests in a round, evenly spread"},
			{Name: "share", To: &o.Share, Default: 0.3, Help: "small requests arrive at this `share` of what an engine answers in a closed loop"},
			{Name: "rate", To: &o.Rate, Help: "small requests per second for all engines, in place of a share: rounds and builds then compare"},
			{Name: "request_timeout", To: &o.requestTimeout, Default: 10 * time.Second, Least: int64(time.Millisecond), Most: int64(time.Hour), Help: "the endpoint's request `timeout`; the built-in registry has 1s, in which many_rows may not end"},
		},
		check: func(*pflag.FlagSet) error { return o.check() },
	}, &o.loads, 10*time.Second, o.outlook(), o.start)
}

func (o *isolation) outlook() outlook {
	return outlook{
		title: "What large requests cost small ones", settings: o, table: &isolationTable, failed: "small_failed",
		say: func(s harness.Sample) string {
			f := s.Figures
			return fmt.Sprintf("at %.0f/s: p99 alone %v, beside large ones %v, %.0f failed", f["rate_rps"], harness.Micros(f["alone_p99_by_round_us"]),
				harness.Micros(f["p99_by_round_us"]), f["small_failed"])
		},
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
	o.choose(isolationScenarios())
	return errors.Join(problems...)
}

// choose has the situations be the scenarios that are named.
func (o *isolation) choose(all []isolationScenario) {
	for _, s := range all {
		if slices.Contains(o.names, s.name) {
			o.kinds = append(o.kinds, s)
			o.situations = append(o.situations, situation{s.name, s.doc, []bound{
				{aim: "small requests that failed or were turned away", key: "small_failed"},
				{aim: "p99 of small requests", key: "p99_by_round_us", unit: " µs", most: harness.InMicros(s.maxP99)},
			}})
		}
	}
}

// String returns the settings as a line of text.
func (o *isolation) String() string {
	load := fmt.Sprintf("at %g of what the engine answers in a closed loop", o.Share)
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
	{Key: "capacity_rps", Head: "capacity/s", Text: harness.Whole}, // small requests per second in a closed loop; absent if the rate was given
	{Key: "rate_rps", Head: "arrivals/s", Text: harness.Whole},
	{Key: "small_answered", Head: "small", Text: harness.Whole, Fold: harness.Sum}, // failures among them
	{Key: "small_errors", Head: "failed", Text: harness.Whole, Fold: harness.Sum},
	{Key: "small_failed", Fold: harness.Sum}, // or turned away
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
func (o *isolation) start(r *rig) error {
	tables, err := r.folder()
	if err != nil {
		return err
	}
	if err := writeRegistry(tables, o.requestTimeout); err != nil {
		return err
	}
	back, err := r.redis(backend.Options{Server: o.redisServer, Real: true, Data: func(ctx context.Context, server string) error {
		return loadIsolation(ctx, server, o.kinds)
	}})
	if err != nil {
		return err
	}
	workers, err := r.workers(&fleet{specs: o.specs, cpuThreads: o.CPUThreads, env: "dev", registryDir: tables})
	o.redis, o.run, o.round = back.Addr(0), workers.run, o.measure
	o.of, o.subjects = "engine", specNames(o.specs)
	return err
}

const (
	inFlight = 64      // of the closed loop
	backlog  = 1 << 16 // bounds the requests in flight of the open loop. An engine that stalls for a second has to hold them all.
)

// measure measures the small requests of an engine in a closed loop, then at a rate, alone and beside large ones.
func (o *isolation) measure(_ context.Context, scenario, engine, _ int) (sample harness.Sample, err error) {
	s, rate := &o.kinds[scenario], o.Rate
	sample = harness.Sample{Figures: map[string]float64{}, Latencies: map[string]load.Histogram{}, Errors: map[string]string{}}
	run := func(warmup time.Duration, l load.Load) (*worker.Report, error) {
		return o.run(engine, &worker.Round{Setup: worker.Setup{Redis: o.redis, Plan: s.name, Artifact: s.plan}, Load: l, Warmup: warmup})
	}
	if rate == 0 {
		closed, err := run(o.Warmup, load.Load{Users: s.users(smallUsers, 0), Concurrency: inFlight, Duration: max(1, o.Duration/4)})
		if err != nil {
			return sample, err
		}
		if failed := closed.Sound(); failed != nil {
			return harness.Sample{Failure: failed.Error()}, nil
		}
		rate = o.Share * closed.PerSecond()
		sample.Figures["capacity_rps"] = closed.PerSecond()
	}
	rate = min(rate, float64(arrivalsMax)/o.Duration.Seconds())
	arrivals := max(int(rate*o.Duration.Seconds()), 2*o.Large)
	arrive := func(n, large int) (*worker.Report, error) {
		return run(0, load.Load{Users: s.users(n, large), Heavy: []int64{s.heavy}, Concurrency: backlog, Rate: rate, Requests: int64(n)})
	}
	alone, err := arrive(arrivals/2, 0)
	if err != nil {
		return sample, err
	}
	beside, err := arrive(arrivals, o.Large)
	if err != nil {
		return sample, err
	}
	if failure := cmp.Or(alone.Failure, beside.Failure); failure != "" {
		return harness.Sample{Failure: failure}, nil
	}
	f := sample.Figures
	f["rate_rps"], f["shed"], f["small_failed"] = rate, float64(beside.Shed), float64(beside.Errors+beside.Shed)
	f["p99_by_round_us"], f["alone_p99_by_round_us"] = beside.Latency.Micros(99), alone.Latency.Micros(99)
	add := func(kind string, t *load.Tally) {
		f[kind+"_answered"], f[kind+"_errors"], sample.Latencies[kind] = float64(t.Answered), float64(t.Errors), t.Latency
		sample.Errors[kind+" request"] = t.FirstError
	}
	add("alone", &alone.Tally)
	add("small", &beside.Tally)
	if beside.Heavy != nil {
		add("large", beside.Heavy)
	}
	sample.Latencies["lag"] = beside.Lag
	return sample, nil
}
