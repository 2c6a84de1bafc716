package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/caller"
	"github.com/rankd/rankd/bench/harness"
	"github.com/rankd/rankd/bench/internal/backend"
	"github.com/rankd/rankd/bench/internal/engines"
	"github.com/rankd/rankd/bench/internal/worker"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/internal/cmdline"
)

// fronts measures what the fronts of "rankd serve" cost over the engine in process: CPU a request of the serving process, throughput
// with many requests in flight, and latency with one. The callers are the engine's own process, which asks itself; the clients of
// bench/caller, in a process of their own; and programs that others wrote: redis-benchmark, wrk, ab. One goroutine.
type fronts struct {
	loads
	Plan string `json:"plan"`

	planDir     string
	clients     []string
	connections int

	callers         []frontCaller // the first is inProcess
	artifact, redis string
	engine          *worker.Process // asks itself
	client          *worker.Process // asks served
	served          server
	folder          string // of plans and of the files of foreign clients
	// rates are the requests per second that client has reached, by front and by number in flight.
	rates map[string]map[int]float64
}

// inProcess is the name of the caller that the others are compared with: the engine asks itself.
const inProcess = "in process"

// The requests in flight of the two measurements of a round.
const (
	many = 64
	one  = 1
)

// frontCaller is one way to ask the engine. Immutable.
type frontCaller struct {
	name string
	run  frontRun
}

// A frontRun asks with so many requests in flight. It returns what the caller saw, and the CPU time of the serving process.
type frontRun func(ctx context.Context, inFlight int) (seen caller.Seen, cpu time.Duration, err error)

const frontsLong = `Measure what the fronts of "rankd serve" cost over the engine in process. The command starts
"rankd serve" and calls its fronts, and it runs the same plan on an engine in a process that asks
itself. In each round all take turns, with 64 requests in flight and with one.

The clients of this program call from a process of their own: RESP with pipelined commands on a
few connections, HTTP on a keep-alive connection for each request in flight. Beside them run
redis-benchmark, wrk and ab where they are installed. CPU time is what the serving process used, by
its processor clock. All requests are for user 1, and no equal reads are shared.`

func (p *Program) frontsMode() mode {
	o := new(fronts)
	plan := engineRow("plan_name", &o.Plan)
	plan.Default = "concat_plan"
	return p.loading(mode{
		use: "serve", short: "Measure what the fronts of rankd serve cost", long: frontsLong,
		example: "  rankd bench serve\n  rankd bench serve --fronts resp --clients redis-benchmark --duration 5s",
		rows: []cmdline.Setting{
			plan,
			engineRow("plan_dir", &o.planDir),
			frontsRow(&o.fronts),
			{Name: "clients", To: &o.clients, Default: foreignPrograms(), Help: "`programs` to call them with, beside this program's own clients (default: those installed)"},
			{Name: "connections", To: &o.connections, Default: 4, Least: 1, Most: many, Help: "`number` of pipelined connections of the RESP client"},
			programRow(&o.program),
		},
		check: func(given *pflag.FlagSet) error {
			return errors.Join(o.check(given.Changed("clients")), o.readPlan(p.Own))
		},
	}, &o.loads, 2*time.Second, o.outlook(), o.start)
}

func (o *fronts) outlook() outlook {
	return outlook{
		title: "What the fronts of rankd serve cost", settings: o, table: &frontsTable,
		say: func(s harness.Sample) string {
			f := s.Figures
			return fmt.Sprintf("%d in flight: %.0f requests/s, %.1f µs CPU each, p50 %v; %d in flight: p50 %v",
				many, f["requests_per_second"], f["cpu_us"], harness.Micros(f["p50_us"]), one, harness.Micros(f["p50_at_one_us"]))
		},
	}
}

// frontBounds bound what the fronts add to the engine in process.
func frontBounds() (bounds []bound) {
	for _, b := range []struct {
		front    string
		cpu, p50 float64
	}{{caller.RESP, 2.5, 60}, {caller.HTTP, 6, 90}} {
		bounds = append(bounds,
			bound{fmt.Sprintf("CPU a request over %s, %d in flight", inProcess, many), "cpu_over_us", " µs", b.cpu, b.front},
			bound{fmt.Sprintf("p50 over %s, %d in flight", inProcess, one), "p50_over_us", " µs", b.p50, b.front})
	}
	return bounds
}

// foreignPrograms returns the names of the programs of foreign clients, each once.
func foreignPrograms() (names []string) {
	for _, f := range caller.Foreigners() {
		names = append(names, f.Program)
	}
	return slices.Compact(names)
}

// check reports all that is wrong with the flags at once, and completes them. Clients that the user has not named need not
// be installed.
func (o *fronts) check(clientsGiven bool) error {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	var installed []string
	for _, name := range o.clients {
		_, err := exec.LookPath(name)
		switch {
		case !slices.Contains(foreignPrograms(), name):
			problem("--clients is one of %s, not %q", strings.Join(foreignPrograms(), ", "), name)
		case err == nil:
			installed = append(installed, name)
		case clientsGiven:
			problem("--clients: %w", err)
		}
	}
	o.clients = installed
	return errors.Join(problems...)
}

func (o *fronts) readPlan(engine rankd.Options) error {
	engine.Env, engine.Model, engine.Plan = "dev", rankd.Sequential, o.Plan
	if err := cmdline.Folders(&engine, o.planDir, "", ""); err != nil {
		return err
	}
	name, artifact, err := soundPlan(engine, nil)
	o.Plan, o.artifact = name, string(artifact)
	return err
}

// String returns the settings as a line of text.
func (o *fronts) String() string {
	return fmt.Sprintf("plan %s for user %d, equal reads not shared, %d CPU workers, %d interleaved rounds of %v; medians, differences within each round",
		o.Plan, benchUser, o.CPUThreads, o.Rounds, o.Duration)
}

var frontsTable = harness.TableSpec{Figures: []harness.Figure{
	{Key: "requests_per_second", Head: fmt.Sprintf("%d in flight: requests/s", many), Text: harness.Whole, Spread: true},
	{Key: "p99_us", Head: "p99", Text: harness.Duration},
	{Key: "cpu_us", Head: "CPU each, µs", Text: harness.One, Spread: true},
	{Key: "cpu_over_us", Head: "over " + inProcess, Text: harness.Over, Fold: harness.Versus(0, "cpu_us", harness.Difference)},
	{Key: "p50_at_one_us", Head: fmt.Sprintf("%d in flight: p50", one), Text: harness.Duration, Spread: true},
	{Key: "p50_over_us", Head: "over " + inProcess, Text: func(e harness.Estimate) string { return fmt.Sprintf("%+.0f µs", e.Median) },
		Fold: harness.Versus(0, "p50_at_one_us", harness.Difference)},
	{Key: "p50_us"}, {Key: "requests_per_second_at_one"}, {Key: "cpu_at_one_us"}, {Key: "p99_at_one_us"},
}}

// start starts Redis, the server and the two workers.
func (o *fronts) start(r *rig) (err error) {
	if o.folder, err = r.folder(); err != nil {
		return err
	}
	if err := writePlans(o.folder, map[string]string{o.Plan: o.artifact}); err != nil {
		return err
	}
	redis, err := r.redis(backend.Options{Server: o.redisServer})
	if err != nil {
		return err
	}
	own := engines.Spec{Kind: engines.Reactor}
	workers, err := r.workers(&fleet{specs: []engines.Spec{own.Unshared(), own}, cpuThreads: o.CPUThreads, env: "dev"})
	if err != nil {
		return err
	}
	o.redis, o.engine, o.client = redis.Addr(0), workers[0], workers[1]
	served, stop, err := startServer(r.ctx, o.program, "--redis", o.redis, "--plan_dir", o.folder, "--plan_name", o.Plan,
		"--cpu_threads", strconv.Itoa(o.CPUThreads), "--coalesce_reads=false")
	if err != nil {
		return err
	}
	r.later(stop)
	o.served = served
	o.call(o.chosenCallers())
	return nil
}

// call has the callers take turns.
func (o *fronts) call(callers []frontCaller) {
	o.callers, o.of, o.round = callers, "caller", o.measure
	o.situations = []situation{{o.Plan, fmt.Sprintf("user %d", benchUser), frontBounds()}}
	for _, c := range callers {
		o.subjects = append(o.subjects, c.name)
	}
}

// chosenCallers returns the callers that the flags ask for.
func (o *fronts) chosenCallers() []frontCaller {
	callers := []frontCaller{
		{name: inProcess, run: o.askInProcess(false)},
		{name: inProcess + ", JSON", run: o.askInProcess(true)},
	}
	o.rates = map[string]map[int]float64{}
	for _, front := range o.fronts {
		o.rates[front] = map[int]float64{}
		callers = append(callers, frontCaller{name: front, run: o.askFront(front)})
	}
	for _, f := range caller.Foreigners() {
		if slices.Contains(o.clients, f.Program) && slices.Contains(o.fronts, f.Front) {
			callers = append(callers, frontCaller{name: f.Name, run: o.askForeign(&f)})
		}
	}
	return callers
}

// measure has a caller ask with many requests in flight, then with one.
func (o *fronts) measure(ctx context.Context, _, subject, _ int) (harness.Sample, error) {
	s := harness.Sample{Figures: map[string]float64{}}
	for i, suffix := range []string{"", "_at_one"} {
		inFlight := []int{many, one}[i]
		seen, cpu, err := o.callers[subject].run(ctx, inFlight)
		if err != nil {
			return s, fmt.Errorf("%d in flight: %w", inFlight, err)
		}
		s.Figures["requests_per_second"+suffix], s.Figures["p50"+suffix+"_us"] = seen.PerSecond, seen.P50
		s.Figures["cpu"+suffix+"_us"] = harness.InMicros(cpu) / float64(seen.Requests)
		if seen.P99 > 0 {
			s.Figures["p99"+suffix+"_us"] = seen.P99
		}
	}
	return s, nil
}

// closed returns a round that has so many requests in flight.
func (o *fronts) closed(inFlight int) worker.Round {
	return worker.Round{
		Setup: worker.Setup{Plan: o.Plan}, Load: load.Load{Users: []int64{benchUser}, Concurrency: inFlight, Duration: o.Duration}, Warmup: o.Warmup,
	}
}

// askInProcess has the engine ask itself, in JSON or not.
func (o *fronts) askInProcess(json bool) frontRun {
	return func(_ context.Context, inFlight int) (caller.Seen, time.Duration, error) {
		r := o.closed(inFlight)
		r.Redis, r.Artifact, r.JSON = o.redis, o.artifact, json
		report, err := sound(o.engine.Run(&r))
		if err != nil {
			return caller.Seen{}, 0, err
		}
		return seenBy(report), report.CPU, nil
	}
}

// askFront has this program's client ask a front.
func (o *fronts) askFront(front string) frontRun {
	return func(_ context.Context, inFlight int) (caller.Seen, time.Duration, error) {
		r := o.closed(inFlight)
		r.Front, r.Server, r.Connections, r.ServerPID = front, o.served.addr(front), min(o.connections, inFlight), o.served.pid
		if front == caller.HTTP {
			r.Connections = inFlight
		}
		report, err := sound(o.client.Run(&r))
		if err != nil {
			return caller.Seen{}, 0, err
		}
		o.rates[front][inFlight] = report.PerSecond()
		return seenBy(report), report.ServerCPU, nil
	}
}

// seenBy returns what a client of this program saw.
func seenBy(r *worker.Report) caller.Seen {
	return caller.Seen{
		Requests: r.Answered, PerSecond: r.PerSecond(),
		P50: r.Latency.Micros(50), P99: r.Latency.Micros(99),
	}
}

// askForeign has a foreign client ask its front.
func (o *fronts) askForeign(f *caller.Foreign) frontRun {
	return func(ctx context.Context, inFlight int) (seen caller.Seen, cpu time.Duration, err error) {
		before, err := load.ProcessCPU(o.served.pid)
		if err != nil {
			return seen, 0, err
		}
		seen, err = f.Run(ctx, &caller.Call{
			Addr: o.served.addr(f.Front), Plan: o.Plan, User: benchUser, InFlight: inFlight, Duration: o.Duration, Folder: o.folder,
			Requests: max(int64(o.rates[f.Front][inFlight]*o.Duration.Seconds()), 1),
		})
		if err != nil {
			return seen, 0, err
		}
		after, err := load.ProcessCPU(o.served.pid)
		return seen, after - before, err
	}
}
