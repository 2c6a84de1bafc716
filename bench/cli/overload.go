package cli

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/backend"
	"github.com/rankd/rankd/bench/caller"
	"github.com/rankd/rankd/bench/engines"
	"github.com/rankd/rankd/bench/harness"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/bench/worker"
	"github.com/rankd/rankd/internal/cmdline"
)

// overload measures a server that is asked for more than it can do. Requests arrive in an open loop at several times the capacity that
// a closed loop has found just before. It reports how soon a refusal comes, counted from when the request was due, whether admitted
// requests answer within their deadline, and how much of the capacity is left for them. A refusal's own CPU time comes from a second
// server, which refuses everything: one request holds its only place. One goroutine.
type overload struct {
	Rounds     int           `json:"rounds"`
	Duration   time.Duration `json:"duration_ns"` // of the arrivals of a round; capacity and refusals take half of it each
	Warmup     time.Duration `json:"warmup_ns"`   // before each measurement
	Times      float64       `json:"times"`       // the capacity at which requests arrive
	CPUThreads int           `json:"cpu_threads"`

	names, fronts        []string
	redisServer, program string

	scenarios    []overloadScenario
	server, full server
	run          func(*worker.Round) (*worker.Report, error)
}

// overloadScenario is a plan, and a server that bounds what it admits. Immutable.
type overloadScenario struct {
	name, doc string
	// artifact is the plan. Its name is the scenario's. Empty means the example of that name.
	artifact              string
	maxInflight, maxQueue int
	deadline              time.Duration // of each request
	// arrivals bounds the requests in flight of the open loop.
	arrivals int
	// pipelined is the number of RESP connections that the requests share. Zero gives each request a connection of its own, so
	// that a refusal does not wait for the answer before it. HTTP always does.
	pipelined int
	// refusalP50 and refusalP99 bound the time until a refusal. Zero bounds nothing.
	refusalP50, refusalP99 time.Duration
}

// overloadScenarios returns all scenarios, in the order in which they run.
func overloadScenarios() []overloadScenario {
	return []overloadScenario{
		{
			name: "busy", doc: "a node that keeps a CPU worker busy for 2 ms",
			maxInflight: 8, maxQueue: 32, deadline: 100 * time.Millisecond, arrivals: 256,
			refusalP50: time.Millisecond, refusalP99: 10 * time.Millisecond,
			artifact: `{"schema_version": 1, "plan_name": "busy", "nodes": [
    {"node_id": "rows", "op": "fixed_source", "inputs": [], "params": {"row_count": 10}},
    {"node_id": "burn", "op": "busy_cpu", "inputs": ["rows"], "params": {"busy_wait_ms": 2}}
], "outputs": ["burn"]}`,
		},
		{
			name: "concat_plan", doc: "five nodes, three waves of reads",
			maxInflight: 64, maxQueue: 256, deadline: 100 * time.Millisecond, arrivals: 1024, pipelined: 16,
		},
	}
}

// holdPlan is the plan whose request holds the only place of a server that is to refuse all others: an hour of sleep.
const (
	holdPlan     = "hold"
	holdArtifact = `{"schema_version": 1, "plan_name": "hold", "nodes": [
    {"node_id": "rows", "op": "fixed_source", "inputs": [], "params": {"row_count": 1}},
    {"node_id": "sleep", "op": "sleep", "inputs": ["rows"], "params": {"duration_ms": 3600000}}
], "outputs": ["sleep"]}`
)

const overloadLong = `Measure "rankd serve" while it is asked for more than it can do. Each round first finds the
capacity of a front in a closed loop. Then requests arrive at several times that rate, whatever the
server does. Latencies count from when a request was due. A verdict says whether refusals came soon,
and whether the requests that were admitted answered within their deadline.
`

func (p *Program) overloadMode() mode {
	o := new(overload)
	names, long := describe(overloadLong, overloadScenarios(), func(s overloadScenario) (string, string) { return s.name, s.doc })
	return mode{
		use: "overload", short: "Measure rankd serve beyond its capacity", long: long,
		example: "  rankd bench overload\n  rankd bench overload --scenario busy --fronts http --times 10",
		rows: []cmdline.Setting{
			scenarioRow(&o.names, names),
			frontsRow(&o.fronts),
			{Name: "times", To: &o.Times, Default: 3.0, Help: "the `factor` of the capacity at which requests arrive"},
			roundsRow(&o.Rounds),
			{Name: "duration", To: &o.Duration, Default: 3 * time.Second, Least: 1, Most: int64(time.Hour), Help: "how `long` requests arrive in a round"},
			{Name: "warmup", To: &o.Warmup, Default: 300 * time.Millisecond, Most: int64(time.Hour), Help: "how `long` each load runs before it is measured"},
			engineRow("cpu_threads", &o.CPUThreads),
			redisServerRow(&o.redisServer),
			programRow(&o.program),
		},
		check: func(*pflag.FlagSet) error {
			o.scenarios = slices.DeleteFunc(overloadScenarios(), func(s overloadScenario) bool { return !slices.Contains(o.names, s.name) })
			if !(o.Times > 0 && o.Times <= 100) {
				return fmt.Errorf("--times is a number above 0 and up to 100, not %v", o.Times)
			}
			return nil
		},
		report: func(ctx context.Context) (*harness.Report, error) { return p.measure(ctx, o.start, o.report) },
	}
}

// String returns the settings as a line of text.
func (o *overload) String() string {
	return fmt.Sprintf("%d CPU workers, %d interleaved rounds of %v at %g times the capacity; equal reads not shared", o.CPUThreads, o.Rounds, o.Duration, o.Times)
}

var overloadTable = harness.TableSpec{Figures: []harness.Figure{
	{Key: "capacity_rps", Head: "capacity/s", Text: harness.Whole}, // with maxInflight requests in flight
	{Key: "arrivals_rps", Head: "arrivals/s", Text: harness.Whole},
	{Key: "goodput_rps", Head: "goodput/s", Text: harness.Whole}, // answers within the deadline
	{Key: "goodput_share"}, // of the capacity, within each round
	{Key: "refused", Head: "refused", Text: harness.Whole, Fold: harness.Sum},
	{Key: "refusal_p50_us", Head: "refusal p50", Text: harness.Duration}, // from when the request was due
	{Key: "refusal_p99_us", Head: "p99", Text: harness.Duration},
	{Key: "answered", Head: "answered", Text: harness.Whole, Fold: harness.Sum},
	{Key: "late", Head: "late", Text: harness.Whole, Fold: harness.Sum},     // answered after the deadline
	{Key: "errors", Head: "failed", Text: harness.Whole, Fold: harness.Sum}, // most of them deadlines that the server has noticed
	{Key: "answer_p50_us", Head: "p50", Text: harness.Duration},             // likewise
	{Key: "answer_p99_us", Head: "p99", Text: harness.Duration},
	{Key: "answer_max_us", Head: "max", Text: harness.Duration, Fold: harness.Quantile("answers", 100)},
	{Key: "cpu_cores", Head: "cores", Text: harness.Two}, // that the server used while overloaded
	{Key: "lag_p99_us", Head: "sent late, p99", Text: harness.Duration},
	{Key: "unsent", Head: "not sent", Text: harness.Whole, Fold: harness.Sum}, // arrivals that found no free connection
	{Key: "cpu_answer_us"},  // of the server, at capacity
	{Key: "cpu_refusal_us"}, // of a server that refuses all
}}

// start starts Redis, the caller, and the server that refuses all. Each scenario has a server of its own.
func (o *overload) start(r *rig) (*harness.Experiment, error) {
	folder, err := r.folder()
	if err != nil {
		return nil, err
	}
	plans := map[string]string{holdPlan: holdArtifact}
	for _, s := range o.scenarios {
		plans[s.name] = s.artifact
		if s.artifact == "" {
			_, text, err := soundPlan(rankd.Options{Env: "dev", Model: rankd.Sequential, Plan: s.name}, nil)
			if err != nil {
				return nil, err
			}
			plans[s.name] = string(text)
		}
	}
	if err := writePlans(folder, plans); err != nil {
		return nil, err
	}
	redis, err := r.redis(backend.Options{Server: o.redisServer})
	if err != nil {
		return nil, err
	}
	workers, err := r.workers(&fleet{specs: []engines.Spec{{Kind: engines.Reactor}}, cpuThreads: o.CPUThreads, env: "dev"})
	if err != nil {
		return nil, err
	}
	start := func(maxInflight, maxQueue int) (server, func(), error) {
		return startServer(r.ctx, o.program, "--redis", redis.Addr(0), "--plan_dir", folder, "--env", "test", "--coalesce_reads=false", // test has the plans' tasks
			"--cpu_threads", strconv.Itoa(o.CPUThreads), "--max_inflight", strconv.Itoa(maxInflight), "--max_queue", strconv.Itoa(maxQueue))
	}
	full, stop, err := start(1, 0)
	if err != nil {
		return nil, err
	}
	r.later(stop)
	held, err := hold(full.resp)
	if err != nil {
		return nil, err
	}
	r.later(func() { _ = held.Close() })
	o.full, o.run = full, workers[0].Run
	e := o.experiment()
	e.Prepare = func(_ context.Context, scenario int) (failures []string, stop func(), err error) {
		o.server, stop, err = start(o.scenarios[scenario].maxInflight, o.scenarios[scenario].maxQueue)
		return nil, stop, err
	}
	return e, nil
}

// hold takes the only place of a server, for as long as the connection stays.
func hold(addr string) (net.Conn, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	command := redcon.AppendArray(nil, 3)
	for _, word := range []string{"RANK", holdPlan, "1"} {
		command = redcon.AppendBulkString(command, word)
	}
	if _, err := conn.Write(command); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// experiment returns the rounds to run, on all fronts of the server.
func (o *overload) experiment() *harness.Experiment {
	e := &harness.Experiment{
		Subjects: harness.Named("front", "front", o.fronts...), Rounds: o.Rounds, Figures: overloadTable.Figures,
		Run: func(_ context.Context, scenario, subject, _ int) (harness.Sample, error) {
			m := overloading{o, &o.scenarios[scenario], o.fronts[subject]}
			return m.round()
		},
		Say: func(s harness.Sample) string {
			f := s.Figures
			return fmt.Sprintf("answers %.0f/s; at %.0f/s it answers %.0f/s and refuses %.0f", f["capacity_rps"], f["arrivals_rps"], f["goodput_rps"], f["refused"])
		},
	}
	for _, s := range o.scenarios {
		e.Scenarios = append(e.Scenarios, harness.Named("scenario", "", s.name)...)
	}
	return e
}

// overloading is what all loads of a round have in common. Immutable.
type overloading struct {
	*overload
	scenario *overloadScenario
	front    string
}

// base returns a round with so many requests in flight.
func (m *overloading) base(s server, inFlight int) *worker.Round {
	connections := inFlight
	if m.front == caller.RESP && m.scenario.pipelined > 0 {
		connections = min(connections, m.scenario.pipelined)
	}
	return &worker.Round{
		Setup: worker.Setup{
			Plan: m.scenario.name, Front: m.front, Server: s.addr(m.front), Connections: connections, Deadline: m.scenario.deadline,
		},
		Load:   load.Load{Users: []int64{benchUser}, Concurrency: inFlight, Duration: m.Duration / 2},
		Warmup: m.Warmup, ServerPID: s.pid,
	}
}

func (m *overloading) round() (s harness.Sample, err error) {
	atCapacity := m.base(m.server, m.scenario.maxInflight)
	atCapacity.Deadline = 0 // the capacity is what the server can do, in time or not
	at, err := sound(m.run(atCapacity))
	if err != nil {
		return s, fmt.Errorf("at capacity: %w", err)
	}
	above := m.base(m.server, m.scenario.arrivals)
	above.Rate, above.Duration = m.Times*at.PerSecond(), m.Duration
	over, err := measured(m.run(above))
	if err != nil {
		return s, err
	}
	full, err := measured(m.run(m.base(m.full, m.scenario.maxInflight)))
	if err != nil {
		return s, err
	}
	if full.Answered > 0 || full.Refused == nil {
		return s, fmt.Errorf("the server that refuses all has given %d answers, and %d refusals; %s", full.Answered, refused(full), full.FirstError)
	}
	late := late(over, m.scenario.deadline)
	good := float64(over.Latency.TotalCount()-late) / over.Elapsed.Seconds()
	s = harness.Sample{
		Figures: map[string]float64{
			"capacity_rps": at.PerSecond(), "arrivals_rps": above.Rate, "goodput_rps": good, "goodput_share": good / at.PerSecond(),
			"refused": float64(refused(over)), "answered": float64(over.Answered - over.Errors), "late": float64(late), "errors": float64(over.Errors),
			"unsent": float64(over.Shed), "cpu_cores": float64(over.ServerCPU) / float64(over.Elapsed),
			"cpu_answer_us":  harness.InMicros(at.ServerCPU) / float64(at.Answered),
			"cpu_refusal_us": harness.InMicros(full.ServerCPU) / float64(full.Refused.Answered),
		},
		Latencies: map[string]load.Histogram{"answers": over.Latency}, Errors: map[string]string{"request": over.FirstError},
	}
	quantiles := func(of string, h load.Histogram) {
		s.Figures[of+"_p50_us"], s.Figures[of+"_p99_us"] = h.Micros(50), h.Micros(99)
	}
	quantiles("answer", over.Latency)
	quantiles("lag", over.Lag)
	if over.Refused != nil {
		quantiles("refusal", over.Refused.Latency)
	}
	return s, nil
}

func refused(r *worker.Report) int64 {
	if r.Refused == nil {
		return 0
	}
	return r.Refused.Answered
}

// late returns the number of answers that came after the deadline.
func late(r *worker.Report, deadline time.Duration) (n int64) {
	for _, bar := range r.Latency.Distribution() {
		if bar.From > int64(deadline) {
			n += bar.Count
		}
	}
	return n
}

// report says how soon refusals came, and whether each request that was let in answered within its deadline.
func (o *overload) report(results [][]*harness.Result) *harness.Report {
	r := &harness.Report{Title: "rankd serve beyond its capacity", Settings: o, Results: harness.Flatten(results)}
	for i := range results {
		s := &o.scenarios[i]
		section := harness.Section{
			Title:  fmt.Sprintf("%s: %s; %d run, %d wait, deadline %v", s.name, s.doc, s.maxInflight, s.maxQueue, s.deadline),
			Tables: []harness.Table{overloadTable.Table(results[i])},
		}
		for j, result := range results[i] {
			v, front := result.Value, o.fronts[j]
			section.Lines = append(section.Lines, fmt.Sprintf(
				"%s: goodput %.0f/s at %.0f arrivals/s, %.0f%% of the capacity of %.0f/s; a refusal takes %.1f µs of CPU time, an answer %.1f µs", front,
				v("goodput_rps"), v("arrivals_rps"), 100*v("goodput_share"), v("capacity_rps"), v("cpu_refusal_us"), v("cpu_answer_us")), s.inTime(front, result))
			for _, aim := range []struct {
				name, key string
				bound     time.Duration
			}{{"p50", "refusal_p50_us", s.refusalP50}, {"p99", "refusal_p99_us", s.refusalP99}} {
				if aim.bound > 0 {
					r.Verdicts = append(r.Verdicts, harness.Verdict{
						Aim:  fmt.Sprintf("%s of a refusal, %s, %s", aim.name, s.name, front),
						Unit: " µs", Estimate: result.Figures[aim.key], Bound: harness.AtMost(harness.InMicros(aim.bound)),
					})
				}
			}
			if text := result.Errors["request"]; text != "" {
				r.Troubles = append(r.Troubles, fmt.Sprintf("%s: the first request that failed: %s", front, text))
			}
		}
		r.Sections = append(r.Sections, section)
	}
	return r
}

// inTime says whether each request that was let in answered within its deadline.
func (s *overloadScenario) inTime(front string, r *harness.Result) string {
	answered, missed := r.Value("answered"), r.Value("late")+r.Value("errors")
	if missed > 0 {
		return fmt.Sprintf("MISSED %s, %s: %.0f of %.0f requests that were admitted did not answer within %v", s.name, front, missed, answered+r.Value("errors"), s.deadline)
	}
	return fmt.Sprintf("KEPT %s, %s: each of %.0f requests that were admitted answered within %v", s.name, front, answered, s.deadline)
}
