package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rankd/rankd/bench/harness"
	"github.com/rankd/rankd/bench/internal/placement"
	"github.com/rankd/rankd/bench/internal/worker"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/internal/cmdline"
)

// placing measures the scheduling modes of the reactor on the scenarios of package placement. One goroutine.
type placing struct {
	Rounds     int           `json:"rounds"`
	Duration   time.Duration `json:"duration_ns"` // of a round
	Warmup     time.Duration `json:"warmup_ns"`   // before each round
	CPUThreads int           `json:"cpu_threads"`

	names     []string
	writeTo   string
	base      string
	cores     []int // virtual
	scenarios []placement.Scenario
	variants  []placement.Variant
	run       func(variant int, r *worker.Round) (*worker.Report, error)
}

const placementLong = "Measure where nodes should run: each scenario with --scheduling offload_all, with adaptive,\n" +
	"with adaptive that runs nothing inline, and with inline_all, in interleaved rounds, each in a process of its own.\n" +
	"It judges each aim: met, not met, or not decided if the interval contains the bound.\n" +
	"With --virtual_cores it runs dag_50 and dag_500 in virtual time instead, on so many cores that nobody else uses.\n"

func (p *Program) placementMode() mode {
	o := new(placing)
	names, long := describe(placementLong, placement.Scenarios(), func(s placement.Scenario) (string, string) { return s.Name, s.Doc })
	// What neither writing plans nor virtual time reads.
	idle := func(row cmdline.Setting) cmdline.Setting {
		row.Idle = func() string {
			return cmp.Or(when(o.cores != nil, "with --virtual_cores"), when(o.writeTo != "", "with --write_plans"))
		}
		return row
	}
	unwritten := func() string { return when(o.writeTo != "", "with --write_plans") }
	return mode{
		use: "placement", short: "Compare the scheduling modes on cheap, heavy and waiting nodes", long: long,
		example: "  rankd bench placement\n  rankd bench placement --scenario five_nodes,mix --duration 5s",
		rows: []cmdline.Setting{
			scenarioRow(&o.names, names),
			idle(roundsRow(&o.Rounds)),
			{Name: "duration", To: &o.Duration, Default: time.Second, Least: 1, Most: int64(24 * time.Hour), Idle: unwritten, Help: "how `long` a round measures"},
			idle(cmdline.Setting{Name: "warmup", To: &o.Warmup, Default: 300 * time.Millisecond, Least: 1, Most: int64(24 * time.Hour), Help: "how `long` a round warms up first"}),
			idle(engineRow("cpu_threads", &o.CPUThreads)),
			idle(cmdline.Setting{Name: "base", To: &o.base, Help: "measure the reactor of this `program`, too, another build of rankd, where a scenario has one plan"}),
			{Name: "write_plans", To: &o.writeTo, Idle: func() string { return when(o.cores != nil, "with --virtual_cores") },
				Help: "write the plans of the scenarios into this `folder`, for rankd bench compare --plan, and exit"},
			{Name: "virtual_cores", To: &o.cores, Least: 1, Most: 1 << 10, Help: "run the scenarios of random plans in virtual time instead, on machines of so many `cores`, --duration of it each"},
		},
		check: func(given *pflag.FlagSet) error {
			o.scenarios = slices.DeleteFunc(placement.Scenarios(), func(s placement.Scenario) bool { return !slices.Contains(o.names, s.Name) })
			o.variants = placement.Variants(o.base)
			if o.cores != nil && !slices.ContainsFunc(o.scenarios, func(s placement.Scenario) bool { return s.Costed }) {
				return errors.New("--virtual_cores needs dag_50 or dag_500 in --scenario: the nodes of the others have no known cost")
			}
			written := cmdline.IdleFlags{Given: given}
			if o.writeTo != "" {
				written.Add("json", "with --write_plans")
				written.Add("html", "with --write_plans")
			}
			return written.Problems()
		},
		report: func(ctx context.Context) (*harness.Report, error) {
			switch {
			case o.cores != nil:
				return o.simulate()
			case o.writeTo != "":
				return nil, o.writePlans()
			default:
				return p.measure(ctx, o.start, o.report)
			}
		},
	}
}

// String returns the settings as a line of text.
func (o *placing) String() string {
	if o.cores != nil {
		return fmt.Sprintf("%v of virtual time on each number of cores", o.Duration)
	}
	return fmt.Sprintf("%d CPU workers, %d interleaved rounds of %v after %v of warm-up each; medians with 95 %% intervals", o.CPUThreads, o.Rounds, o.Duration, o.Warmup)
}

// writePlans writes the plans of the scenarios as files.
func (o *placing) writePlans() error {
	for _, s := range o.scenarios {
		folder := s.Folder()
		for name := range folder {
			text, err := fs.ReadFile(folder, name)
			if err == nil {
				err = os.WriteFile(filepath.Join(o.writeTo, name), placement.WithBuiltins(text), 0o644)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// The figures that a simulation tells as well. Times are µs.
var (
	startFigures = []harness.Figure{
		{Key: "queue_delay_p50_us", Head: "queue p50", Text: harness.One},
		{Key: "start_delay_mean_us", Head: "start mean", Text: harness.One}, // from ready to start, of all nodes
		{Key: "start_delay_p99_us", Head: "p99", Text: harness.One},
	}
	speedFigures = []harness.Figure{
		{Key: "requests_per_second", Head: "requests/s", Text: harness.Whole},
		{Key: p50, Head: "p50 µs", Text: harness.One},
		{Key: p99, Head: "p99 µs", Text: harness.One},
		{Key: "cpu_us", Head: "CPU µs", Text: harness.One}, // processor time of the engine's process per request
	}
)

var simulatedTable = harness.TableSpec{Figures: slices.Concat(speedFigures, startFigures, []harness.Figure{
	{Key: "idle", Head: "idle", Text: harness.Percent},           // share of the cores' time that nobody used
	{Key: "loop_busy", Head: "loop busy", Text: harness.Percent}, // share of the time in which the loop computed or waited for a core
})}

// The metrics of the engine count the warm-up, too. Another build does not tell them.
var placementTable = harness.TableSpec{Figures: slices.Concat(speedFigures, []harness.Figure{
	{Key: "cheap_p99_us", Head: "cheap p99", Text: harness.Whole}, // of the requests for the plan "cheap"; unknown without one
	// How many times better than offload_all, and than the other build, the scenario's figure is.
	{Key: "better", Head: "better by", Text: harness.Factor, Fold: harness.Versus(placement.OffloadAll, "merit", harness.Ratio)},
	{Key: "better_than_base", Fold: harness.Versus(placement.Base, "merit", harness.Ratio)},
	{Key: "inline_rate", Head: "inline", Text: harness.Percent},
	{Key: "offload_rate"},
	{Key: "fused_rate", Head: "fused", Text: harness.Percent},
}, startFigures, []harness.Figure{
	{Key: "offload_round_trip_p50_us", Head: "hop p50", Text: harness.One},
	{Key: "loop_callback_p50_us", Head: "callback p50", Text: harness.One},
	{Key: "loop_callback_p99_us", Head: "p99", Text: harness.One},
	{Key: "loop_callback_p999_us", Head: "p99.9", Text: harness.One},
	{Key: "loop_callback_max_us", Head: "max", Text: harness.Whole},
	{Key: "loop_callback_cpu_p99_us", Head: "its CPU p99", Text: harness.One}, // processor time
	{Key: "loop_callback_cpu_p999_us", Head: "p99.9", Text: harness.One},
})}

// simulate runs the scenarios in virtual time. Nothing but their code decides the figures.
func (o *placing) simulate() (*harness.Report, error) {
	r := &harness.Report{Title: "The scheduling modes on virtual cores", Facts: harness.ReadFacts(), Settings: o}
	for _, s := range o.scenarios {
		if !s.Costed {
			continue
		}
		of, err := placement.Simulate(&s, o.cores, o.Duration)
		if err != nil {
			return nil, err
		}
		for _, x := range of {
			r.Results = append(r.Results, harness.NewResult(simulatedTable.Figures, x.Figures,
				harness.Label{Key: "scenario", Value: s.Name, Head: "scenario"}, harness.Label{Key: "variant", Value: x.Variant, Head: "variant"},
				harness.Label{Key: "virtual_cores", Value: x.Cores, Head: "cores"}, harness.Label{Key: "workers", Value: x.Workers, Head: "workers"}))
		}
	}
	r.Sections = []harness.Section{{Tables: []harness.Table{simulatedTable.Table(r.Results)}}}
	return r, nil
}

// start starts a process per variant.
func (o *placing) start(r *rig) (*harness.Experiment, error) {
	f := fleet{cpuThreads: o.CPUThreads, env: "test"} // whose tasks the plans use
	for _, v := range o.variants {
		f.specs = append(f.specs, v.Engine)
	}
	workers, err := r.workers(&f)
	o.run = workers.run
	return o.experiment(), err
}

// experiment returns the rounds to run: of each scenario on each variant. A scenario of several plans leaves another build out, since
// that build can only be told one plan.
func (o *placing) experiment() *harness.Experiment {
	e := &harness.Experiment{
		Rounds: o.Rounds, Figures: placementTable.Figures,
		Takes: func(scenario, variant int) bool {
			return variant < placement.Base || len(o.scenarios[scenario].Order) == 1
		},
		Run: func(_ context.Context, scenario, variant, round int) (harness.Sample, error) {
			return o.round(&o.scenarios[scenario], variant, round)
		},
		Say: func(s harness.Sample) string {
			return fmt.Sprintf("%.0f requests/s, p50 %v", s.Figures["requests_per_second"], harness.Micros(s.Figures[p50]))
		},
	}
	for _, s := range o.scenarios {
		e.Scenarios = append(e.Scenarios, harness.Named("scenario", "scenario", s.Name)...)
	}
	for _, v := range o.variants {
		e.Subjects = append(e.Subjects, harness.Named("variant", "variant", v.Name)...)
	}
	return e
}

// noRedis is the address of the Redis that no plan of a scenario asks.
const noRedis = "127.0.0.1:1"

// round runs one round, on an engine of its own. Only another build keeps its engine.
func (o *placing) round(s *placement.Scenario, variant, round int) (harness.Sample, error) {
	r := worker.Round{
		Setup:  worker.Setup{Redis: noRedis, Plan: s.Order[0], Scenario: s.Name, Serial: round + 1},
		Load:   load.Load{Concurrency: s.Concurrency, Rate: s.Rate, Duration: o.Duration},
		Warmup: o.Warmup,
	}
	if len(s.Order) == 1 {
		text, err := s.Folder().ReadFile(s.Order[0] + ".plan.json")
		if err != nil {
			return harness.Sample{}, err
		}
		r.Artifact = string(text) // another build reads it, and knows nothing of scenarios
	}
	for i := range s.Order {
		r.Users = append(r.Users, int64(i+1))
	}
	report, err := sound(o.run(variant, &r))
	if err != nil {
		return harness.Sample{}, err
	}
	sample := sampleOf(report)
	f := sample.Figures
	f["requests_per_second"] = f[throughput]
	delete(f, throughput)
	if report.Figures != nil {
		err = json.Unmarshal(report.Figures, &f)
	}
	switch s.Key { // more is better
	case placement.PerSecond:
		f["merit"] = f["requests_per_second"]
	case placement.CheapP99:
		f["merit"] = 1 / f["cheap_p99_us"]
	default:
		f["merit"] = 1 / f[p50]
	}
	for key, value := range f { // what was not seen at all is unknown
		if unseen := value == 0 && strings.HasSuffix(key, "_us"); unseen || key == "cheap_p99_us" && len(s.Order) == 1 {
			delete(f, key)
		}
	}
	return sample, err
}

// report says in one sentence how adaptive compares with offload_all in each scenario, and with the other build if there was
// one, and which aims of the scenarios are met.
func (o *placing) report(results [][]*harness.Result) *harness.Report {
	r := &harness.Report{Title: "The scheduling modes compared", Settings: o, Results: harness.Flatten(results)}
	r.Sections = []harness.Section{{Tables: []harness.Table{placementTable.Table(r.Results)}}}
	var parts, base []string
	for i, s := range o.scenarios {
		found := results[i][placement.Adaptive].Figures
		parts = append(parts, fmt.Sprintf("%s %s at %s", s.Name, found["better"].Factor(), s.Key))
		if than, ok := found["better_than_base"]; ok {
			base = append(base, fmt.Sprintf("%s %s", s.Name, than.Factor()))
		}
		for _, aim := range s.Aims {
			v := harness.Verdict{Bound: aim.Bound, Unit: " µs"}
			switch aim.Of {
			case placement.Ratio:
				v.Aim, v.Unit, v.Estimate = fmt.Sprintf("%s: adaptive better than offload_all at %s", s.Name, s.Key), "×", found["better"]
			case placement.Median:
				v.Aim, v.Estimate = s.Name+": p50 of adaptive", found[p50]
			case placement.Callback:
				v.Aim, v.Estimate = s.Name+": p99.9 of a loop callback's processor time", found["loop_callback_cpu_p999_us"]
			}
			r.Verdicts = append(r.Verdicts, v)
		}
	}
	r.Answer = "Against offload_all, adaptive is better by: " + strings.Join(parts, "; ") + "."
	if len(base) > 0 {
		r.Answer += " Against the other build: " + strings.Join(base, "; ") + "."
	}
	return r
}
