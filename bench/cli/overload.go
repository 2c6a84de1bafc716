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
	"github.com/rankd/rankd/bench/caller"
	"github.com/rankd/rankd/bench/harness"
	"github.com/rankd/rankd/bench/internal/backend"
	"github.com/rankd/rankd/bench/internal/engines"
	"github.com/rankd/rankd/bench/internal/worker"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/internal/cmdline"
)

// overload measures a server that is asked for more than it can do. Requests arrive in an open loop at several times the capacity that
// a closed loop has found just before. It reports how soon a refusal comes, counted from when the request was due, whether admitted
// requests answer within their deadline, and how much of the capacity is left for them. A refusal's own CPU time comes from a second
// server, which refuses everything: one request holds its only place. One goroutine.
type overload struct {
	loads
	Times float64 `json:"times"` // the capacity at which requests arrive

	scenarios    []overloadScenario // of the situations
	server, full server
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
	return p.loading(mode{
		use: "overload", short: "Measure rankd serve beyond its capacity", long: long,
		example: "  rankd bench overload\n  rankd bench overload --scenario busy --fronts http --times 10",
		rows: []cmdline.Setting{
			scenarioRow(&o.names, names),
			frontsRow(&o.fronts),
			{Name: "times", To: &o.Times, Default: 3.0, Help: "the `factor` of the capacity at which requests arrive"},
			programRow(&o.program),
		},
		check: func(*pflag.FlagSet) error {
			o.choose(overloadScenarios())
			if !(o.Times > 0 && o.Times <= 100) {
				return fmt.Errorf("--times is a number above 0 and up to 100, not %v", o.Times)
			}
			return nil
		},
	}, &o.loads, 3*time.Second, o.outlook(), o.start)
}

func (o *overload) outlook() outlook {
	return outlook{
		title: "rankd serve beyond its capacity", settings: o, table: &overloadTable,
		say: func(s harness.Sample) string {
			f := s.Figures
			return fmt.Sprintf("answers %.0f/s; at %.0f/s it answers %.0f/s and refuses %.0f", f["capacity_rps"], f["arrivals_rps"], f["goodput_rps"], f["refused"])
		},
		line: func(r *harness.Result) string {
			v := r.Value
			return fmt.Sprintf("goodput %.0f/s at %.0f arrivals/s, %.0f%% of the capacity of %.0f/s; a refusal takes %.1f µs of CPU time, an answer %.1f µs",
				v("goodput_rps"), v("arrivals_rps"), 100*v("goodput_share"), v("capacity_rps"), v("cpu_refusal_us"), v("cpu_answer_us"))
		},
	}
}

// choose has the situations be the scenarios that are named.
func (o *overload) choose(all []overloadScenario) {
	for _, s := range all {
		if !slices.Contains(o.names, s.name) {
			continue
		}
		bounds := []bound{{aim: fmt.Sprintf("admitted requests that did not answer within %v", s.deadline), key: "missed"}}
		if s.refusalP99 > 0 {
			bounds = append(bounds, bound{aim: "p50 of a refusal", key: "refusal_p50_us", unit: " µs", most: harness.InMicros(s.refusalP50)},
				bound{aim: "p99 of a refusal", key: "refusal_p99_us", unit: " µs", most: harness.InMicros(s.refusalP99)})
		}
		o.scenarios = append(o.scenarios, s)
		o.situations = append(o.situations, situation{s.name, fmt.Sprintf("%s; %d run, %d wait, deadline %v", s.doc, s.maxInflight, s.maxQueue, s.deadline), bounds})
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
	{Key: "missed", Fold: harness.Sum},                                      // late or failed
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
func (o *overload) start(r *rig) error {
	folder, err := r.folder()
	if err != nil {
		return err
	}
	plans := map[string]string{holdPlan: holdArtifact}
	for _, s := range o.scenarios {
		plans[s.name] = s.artifact
		if s.artifact == "" {
			_, text, err := soundPlan(rankd.Options{Env: "dev", Model: rankd.Sequential, Plan: s.name}, nil)
			if err != nil {
				return err
			}
			plans[s.name] = string(text)
		}
	}
	if err := writePlans(folder, plans); err != nil {
		return err
	}
	redis, err := r.redis(backend.Options{Server: o.redisServer})
	if err != nil {
		return err
	}
	workers, err := r.workers(&fleet{specs: []engines.Spec{{Kind: engines.Reactor}}, cpuThreads: o.CPUThreads, env: "dev"})
	if err != nil {
		return err
	}
	start := func(maxInflight, maxQueue int) (server, func(), error) {
		return startServer(r.ctx, o.program, "--redis", redis.Addr(0), "--plan_dir", folder, "--env", "test", "--coalesce_reads=false", // test has the plans' tasks
			"--cpu_threads", strconv.Itoa(o.CPUThreads), "--max_inflight", strconv.Itoa(maxInflight), "--max_queue", strconv.Itoa(maxQueue))
	}
	full, stop, err := start(1, 0)
	if err != nil {
		return err
	}
	r.later(stop)
	held, err := hold(full.resp)
	if err != nil {
		return err
	}
	r.later(func() { _ = held.Close() })
	o.full, o.run, o.round = full, workers.run, o.measure
	o.of, o.subjects = "front", o.fronts
	o.prepare = func(_ context.Context, scenario int) (failures []string, stop func(), err error) {
		o.server, stop, err = start(o.scenarios[scenario].maxInflight, o.scenarios[scenario].maxQueue)
		return nil, stop, err
	}
	return nil
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

// base returns a round of a front with so many requests in flight.
func (o *overload) base(s *overloadScenario, front string, to server, inFlight int) *worker.Round {
	connections := inFlight
	if front == caller.RESP && s.pipelined > 0 {
		connections = min(connections, s.pipelined)
	}
	return &worker.Round{
		Setup:  worker.Setup{Plan: s.name, Front: front, Server: to.addr(front), Connections: connections, Deadline: s.deadline},
		Load:   load.Load{Users: []int64{benchUser}, Concurrency: inFlight, Duration: o.Duration / 2},
		Warmup: o.Warmup, ServerPID: to.pid,
	}
}

// measure measures a front at its capacity, above it, and of the server that refuses all.
func (o *overload) measure(_ context.Context, scenario, subject, _ int) (s harness.Sample, err error) {
	of, front := &o.scenarios[scenario], o.fronts[subject]
	atCapacity := o.base(of, front, o.server, of.maxInflight)
	atCapacity.Deadline = 0 // the capacity is what the server can do, in time or not
	at, err := sound(o.run(0, atCapacity))
	if err != nil {
		return s, fmt.Errorf("at capacity: %w", err)
	}
	above := o.base(of, front, o.server, of.arrivals)
	above.Rate, above.Duration = o.Times*at.PerSecond(), o.Duration
	over, err := measured(o.run(0, above))
	if err != nil {
		return s, err
	}
	full, err := measured(o.run(0, o.base(of, front, o.full, of.maxInflight)))
	if err != nil {
		return s, err
	}
	if full.Answered > 0 || full.Refused == nil {
		return s, fmt.Errorf("the server that refuses all has given %d answers, and %d refusals; %s", full.Answered, refused(full), full.FirstError)
	}
	late := late(over, of.deadline)
	good := float64(over.Latency.TotalCount()-late) / over.Elapsed.Seconds()
	s = harness.Sample{
		Figures: map[string]float64{
			"capacity_rps": at.PerSecond(), "arrivals_rps": above.Rate, "goodput_rps": good, "goodput_share": good / at.PerSecond(),
			"refused": float64(refused(over)), "answered": float64(over.Answered - over.Errors), "late": float64(late), "errors": float64(over.Errors),
			"missed": float64(late + over.Errors), "unsent": float64(over.Shed), "cpu_cores": float64(over.ServerCPU) / float64(over.Elapsed),
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
