package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/harness"
	"github.com/rankd/rankd/bench/internal/backend"
	"github.com/rankd/rankd/bench/internal/engines"
	"github.com/rankd/rankd/bench/internal/scenario"
	"github.com/rankd/rankd/bench/internal/worker"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/internal/batch"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
)

// compareOptions are the flags of compare. Immutable once checked.
type compareOptions struct {
	scenario                string
	plan, planDir, planName string
	redis                   string
	fleet

	engines     string
	concurrency []int
	rates       []float64
	backlog     int
	fanout      int
	users       string
	context     string
	latencies   []time.Duration
	writes      []int
	rounds      int
	duration    time.Duration
	warmup      time.Duration

	redisServer    string
	redisBenchmark string
	wantTexts      []string
	chosen         load.Users
	wants          []want
	standing       *scenario.Scenario // of --scenario; nil without
	name           string             // of the plan
	text           []byte             // likewise, its artifact
	kept           map[string]string  // artifacts of the plans whose rows it reads from memory, by name
}

const compareLong = `Run a plan on several engines, in interleaved rounds, and say how they differ.

Each engine runs in a process of its own; Redis is a redis-server of its own with demo
data, unless --redis names another. --scenario brings a plan, its data, which it writes into
either server, its users and the context of requests. An engine is written

  reactor                          asynchronous, all requests on one loop
  reactor:scheduling=offload_all   the same with another scheduling mode
  reactor:coalesce_reads=false     the same without sharing of equal reads
  reactor:trace=1000               the same with one request in a thousand recorded (trace=1: each)
  reactor:inline=false             the same with no computing node on the loop
  pool                             a CPU pool and an I/O pool that blocks on Redis
  pool:redis_pool=16               the same with 16 connections
  pool:io_threads=64,redis_pool=64
  sequential                       one node at a time
  reactor:cluster=3                any of these, and peers, on a Redis Cluster of so many masters
  peer:rueidis, peer:go-redis      the plan hand-written on that client (--peers_dir); go-redis has concat_plan alone
  peer:rueidis-cache               the same on rueidis with its client-side cache
  peer:rueidis:procs=2             the same with settings of the peer, each behind a colon
  binary:/old/rankd:pool           any engine but a peer, run by another build of rankd

One user makes all reads equal, so engines share none then, unless they say coalesce_reads=true.
Peers never share reads. --users chooses several users, in turn or by popularity.
The columns placement and reads say where each engine's nodes compute, and whether equal
reads share a command.

Without --rate the load is a closed loop: so many clients, each sending when it was
answered. With --rate requests arrive at a fixed rate, and latency counts from when
they were due (corrected for coordinated omission).`

const compareExamples = `  # Does the reactor beat the pool on my plan, and by how much?
  rankd bench compare --plan my.plan.json --redis 127.0.0.1:6379

  # The same with a network of 1 and 5 ms, as a report:
  rankd bench compare --plan_name concat_plan --redis_latency 0,1ms,5ms --html report.html

  # A feed from several sources, as big as in life; the data is written first:
  rankd bench compare --scenario feed --users zipf:1.1 --engines reactor,pool:redis_pool=16,peer:rueidis

  # Is this build slower than an older one?
  rankd bench compare --plan_name concat_plan --engines binary:/old/rankd:reactor,reactor

  # Against Go code written by hand, at 20,000 requests per second:
  rankd bench compare --plan_name concat_plan --engines reactor,peer:rueidis,peer:go-redis --rate 20000`

func (p *Program) compareMode() mode {
	o := new(compareOptions)
	m := mode{use: "compare", short: "Compare engines, and peers, on a plan", long: compareLong, example: compareExamples, rows: o.rows(), check: o.check}
	m.more = func(f *pflag.FlagSet) {
		f.StringArrayVar(&o.wantTexts, "want", nil, "an `aim` to judge, such as \"requests reactor >= 1.2 peer:rueidis at 1,64\"; may be repeated")
	}
	m.load = func() (err error) {
		o.name, o.text, err = o.artifact(p.Own)
		return err
	}
	m.report = func(ctx context.Context) (*harness.Report, error) {
		c := &comparing{compareOptions: o, clusters: make(map[int]*backend.Cluster)}
		return p.measure(ctx, c.start, func(results [][]*harness.Result) *harness.Report {
			c.found.results = results
			r := c.found.report(o.wants)
			r.Title, r.Settings = "Engines compared: "+o.name, o.settings()
			return r
		})
	}
	return m
}

// rows are the flags.
func (o *compareOptions) rows() []cmdline.Setting {
	var names []string
	for _, s := range scenario.All() {
		names = append(names, s.Name)
	}
	with := func(row cmdline.Setting, idle func() string) cmdline.Setting { row.Idle = idle; return row }
	withScenario := func() string { return when(o.scenario != "", "with --scenario") }
	noPeer := func() string {
		return when(len(o.specs) > 0 && !slices.ContainsFunc(o.specs, isPeer), "without an engine peer:<name>")
	}
	return []cmdline.Setting{
		{Name: "scenario", To: &o.scenario, OneOf: names, Help: "run this `scenario`, with its data, users and context: " + strings.Join(names, ", ")},
		engineRow("plan_name", &o.planName),
		with(engineRow("plan_dir", &o.planDir), withScenario),
		engineRow("plan", &o.plan),
		{Name: "fanout", To: &o.fanout, Help: "`number` that replaces every fanout of the plan (0: the plan's own)"},
		{Name: "context", To: &o.context, Help: "the `context` of each request, JSON as in a request"},
		{Name: "users", To: &o.users, Default: "1", Help: "`users` to rank for: in turn (ids and ranges, as in 1,5-8, or u-{1-1000} for u-1 to u-1000), or by popularity (as in zipf:1.1,1-1000); " +
			"ids that are strings in turn, as in ab-7,cd-8; or @FILE with requests, in a form that rankd batch takes; without it those of a scenario are all in turn, and with zipf:1.1 all by popularity"},

		with(engineRow("now", &o.now), func() string {
			return when(len(o.specs) > 0 && slices.ContainsFunc(o.specs, isPeer), "with a peer, which knows the present alone")
		}),

		{Name: "engines", To: &o.engines, Default: "reactor,pool,pool:redis_pool=16,sequential", Help: "`engines` to measure; ratios are to the first"},
		{Name: "rate", To: &o.rates, Help: "`arrivals` per second of an open loop, instead of --concurrency"},
		{Name: "concurrency", To: &o.concurrency, Default: []int{1, 4, 16, 64, 256}, Least: 1, Most: 1 << 20, Help: "`numbers` of requests in flight, of a closed loop"},
		{Name: "backlog", To: &o.backlog, Default: 1024, Least: 1, Most: 1 << 20, Idle: func() string { return when(len(o.rates) == 0, "without --rate") },
			Help: "at most this `number` in flight of an open loop of --rate; arrivals beyond it are shed"},
		with(engineRow("cpu_threads", &o.cpuThreads), func() string {
			takes := func(s engines.Spec) bool { return !isPeer(s) && s.CPUThreads == 0 }
			return when(len(o.specs) > 0 && !slices.ContainsFunc(o.specs, takes), "where every engine is a peer or has its own cpu_threads")
		}),
		roundsRow(&o.rounds),
		{Name: "duration", To: &o.duration, Default: 2 * time.Second, Help: "how `long` a round is measured"},
		{Name: "warmup", To: &o.warmup, Default: 300 * time.Millisecond, Help: "how `long` each round warms up before"},

		{Name: "redis", To: &o.redis, Help: "use the Redis at this `address` (host:port or a URL, as in rankd --redis), with the data that it has, " +
			"or with the data of --scenario, which replace keys of the same name"},
		with(redisServerRow(&o.redisServer), func() string { return when(o.redis != "", "with --redis") }),
		{Name: "redis_latency", To: &o.latencies, Default: []time.Duration{0}, Help: "`times` to add to each round trip to Redis, as in 0,1ms,5ms"},
		{Name: "foreign_writes", To: &o.writes, Default: []int{0}, Most: 1_000_000, Idle: func() string { return when(o.redis != "", "with --redis") },
			Help: "`numbers` of keys a second that somebody else writes meanwhile, with the values that they have, as in 0,100,10000; only to a Redis of the benchmark's own"},
		{Name: "redis_benchmark", To: &o.redisBenchmark,
			Help: "run this `program`, redis-benchmark, in each round, too: the most commands a second that the server takes"},
		{Name: "peers", To: &o.peers, Idle: noPeer, Help: "the `program` that runs peers"},
		{Name: "peers_dir", To: &o.peersDir, Default: filepath.Join("bench", "peers"), Help: "build the peers in this `folder` if --peers is not given",
			Idle: func() string { return cmp.Or(noPeer(), when(o.peers != "", "with --peers")) }},
		engineRow("env", &o.env),
		with(engineRow("registry_dir", &o.registryDir), withScenario),
		with(engineRow("model_dir", &o.modelDir), withScenario),
		{Name: "profiles", To: &o.profiles, Help: "write CPU and allocation profiles of each engine of this build into this `folder`"},
	}
}

// check reports all that is wrong at once, and completes the options.
func (o *compareOptions) check(given *pflag.FlagSet) error {
	err := errors.Join(cmdline.CheckExclusive(given, "scenario", "plan", "plan_name"), cmdline.CheckExclusive(given, "rate", "concurrency"))
	if err != nil {
		return err
	}
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if o.specs, err = engines.ParseSpecs(o.engines); err != nil {
		problem("--engines: %w", err)
	}
	if err := o.chooseScenario(given); err != nil {
		problems = append(problems, err)
	}
	if o.plan == "" && o.planName == "" && o.scenario == "" {
		problem("which plan? --scenario, --plan_name or --plan")
	}
	if o.fanout < 0 {
		problem("--fanout is not negative")
	}
	for _, r := range o.rates {
		if !(r > 0 && r <= 1e9) {
			problem("--rate is a positive number of arrivals per second, not %v", r)
		}
	}
	for _, l := range o.latencies {
		if l < 0 || l > time.Minute {
			problem("--redis_latency is a time from 0 to 1m, not %v", l)
		}
	}
	if o.duration <= 0 || o.warmup < 0 {
		problem("--duration is positive, and --warmup not negative")
	}
	if err := o.checkRedis(); err != nil {
		problems = append(problems, err)
	}
	if err := o.parseWants(); err != nil {
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// chooseScenario reads --scenario and --users. A scenario brings the users and the context that no flag names.
func (o *compareOptions) chooseScenario(given *pflag.FlagSet) (err error) {
	everyone := ""
	for _, s := range scenario.All() {
		if s.Name == o.scenario {
			o.standing, everyone = &s, s.Users
		}
	}
	if o.standing != nil && !given.Changed("users") {
		o.users = everyone
	}
	if o.standing != nil && !given.Changed("context") {
		o.context = o.standing.Context
	}
	if _, bad := request.ParseNow(o.now); o.now != "" && bad != nil {
		return fmt.Errorf("--now: %w", bad)
	}
	file, inFile := strings.CutPrefix(o.users, "@")
	if inFile {
		o.chosen = load.Users{Spec: o.users} // readUsers completes it.
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("--users: %w", err)
		}
	} else if o.chosen, err = load.ParseUsers(o.users, everyone); err != nil {
		return fmt.Errorf("--users: %w", err)
	}
	plain := o.chosen.Name == "" && o.chosen.Requests == nil && !inFile
	foreign := func(s engines.Spec) bool { return isPeer(s) || s.Binary != "" && o.chosen.Name == "" }
	if i := slices.IndexFunc(o.specs, foreign); !plain && i >= 0 {
		return fmt.Errorf("--users: %s knows users by integers alone", o.specs[i])
	}
	return nil
}

// readUsers reads the requests of --users @FILE, with the tables of an engine, and gives --context to those that have none.
func (o *compareOptions) readUsers(reg *registry.Registry) error {
	if path, inFile := strings.CutPrefix(o.users, "@"); inFile && o.chosen.Requests == nil {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		form := batch.Form("")
		if filepath.Ext(path) == ".csv" {
			form = batch.CSV
		}
		users, err := batch.NewUsers(file, form, reg)
		if err != nil {
			return err
		}
		var documents [][]byte
		for {
			doc, refused, err := users.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err = errors.Join(err, refused); err != nil {
				return err
			}
			if documents = append(documents, doc); len(documents) > load.UsersMax {
				return fmt.Errorf("%s has more than %d requests", path, load.UsersMax)
			}
		}
		if documents == nil {
			return fmt.Errorf("%s has no requests", path)
		}
		o.chosen = o.chosen.Asking(documents)
	}
	if o.context == "" {
		return nil
	}
	for i, doc := range o.chosen.Requests {
		var own struct {
			Context json.RawMessage `json:"context"`
		}
		if end := bytes.LastIndexByte(doc, '}'); end > 0 && json.Unmarshal(doc, &own) == nil && own.Context == nil {
			o.chosen.Requests[i] = fmt.Appendf(bytes.Clone(doc[:end]), `,"context":%s}`, o.context)
		}
	}
	return nil
}

// checkRedis checks --redis, and that all engines understand it.
func (o *compareOptions) checkRedis() error {
	if i := slices.IndexFunc(o.specs, func(s engines.Spec) bool { return s.Cluster > 0 }); i >= 0 {
		switch {
		case o.redis != "":
			return fmt.Errorf("the engine %s asks a Redis Cluster of the benchmark's own, so there can be no --redis", o.specs[i])
		case slices.Max(o.latencies) > 0 || slices.Max(o.writes) > 0:
			return fmt.Errorf("the engine %s asks a Redis Cluster, to which --redis_latency and --foreign_writes add nothing", o.specs[i])
		}
	}
	if o.redis == "" {
		return nil
	}
	server, err := registry.ParseOneServer(o.redis)
	if err != nil {
		return fmt.Errorf("--redis is host:port or a URL: %w", err)
	}
	if server.Plain() {
		o.redis = server.Addr()
		return nil
	}
	if o.redisBenchmark != "" {
		return errors.New("--redis must be host:port for --redis_benchmark, which takes no user, database or unix socket")
	}
	for _, s := range o.specs {
		if isPeer(s) || s.Binary != "" {
			return fmt.Errorf("--redis must be host:port for the engine %s: peers and other builds take no user, database or unix socket", s)
		}
	}
	return nil
}

// points lists what is measured: for each Redis latency, and for each number of foreign writes, all loads.
func (o *compareOptions) points() (points []point) {
	for _, latency := range o.latencies {
		for _, writes := range o.writes {
			under := conditions{latency, writes}
			for _, rate := range o.rates {
				points = append(points, point{under, o.backlog, rate})
			}
			if len(o.rates) > 0 {
				continue
			}
			for _, c := range slices.Sorted(slices.Values(o.concurrency)) {
				points = append(points, point{under, c, 0})
			}
		}
	}
	return points
}

// artifact reads the plan, sets the fanout, and checks that an engine takes it.
func (o *compareOptions) artifact(engine rankd.Options) (name string, text []byte, err error) {
	engine.Env, engine.Model, engine.Plan, engine.PlanFile = o.env, rankd.Sequential, o.planName, o.plan
	if err := cmdline.Folders(&engine, cmp.Or(o.planDir, cmdline.Beside(o.plan)), o.registryDir, o.modelDir); err != nil {
		return "", nil, err
	}
	if s := o.standing; s != nil {
		own, err := s.Options()
		if err != nil {
			return "", nil, err
		}
		engine.Plan, engine.Plans, engine.Registry, engine.Models = own.Plan, own.Plans, own.Registry, own.Models
	}
	if o.now != "" {
		at, _ := request.ParseNow(o.now) // check has refused what it refuses.
		engine.Now = func() time.Time { return at }
	}
	requests := func(e *rankd.Engine) error {
		if err := o.readUsers(e.Registry()); err != nil {
			return fmt.Errorf("--users: %w", err)
		}
		target := engines.NewTarget(e)
		if err := adjust(target, &worker.Setup{Context: o.context, UserName: o.chosen.Name}); err != nil {
			return err
		}
		if o.chosen.Requests != nil {
			if err := target.SetRequests(o.chosen.Requests); err != nil {
				return fmt.Errorf("--users: %w", err)
			}
		}
		info, err := e.PlanInfo("")
		if err != nil {
			return err
		}
		o.kept = make(map[string]string)
		return o.keep(e, info)
	}
	if name, text, err = soundPlan(engine, requests); err != nil || o.fanout == 0 {
		return name, text, err
	}
	if engine.PlanText, err = engines.WithFanout(text, o.fanout); err != nil {
		return "", nil, err
	}
	if engine.Plan != "" {
		engine.Plan, engine.PlanFile = "", engine.Plan+plan.ArtifactSuffix
	}
	return soundPlan(engine, requests)
}

// keep keeps the plans that a plan needs: those whose rows it reads, and the one that answers in its place.
func (o *compareOptions) keep(e *rankd.Engine, info *plan.Info) error {
	for _, name := range append(slices.Clone(info.Resident), info.Fallback()) {
		if _, ok := o.kept[name]; ok || name == "" {
			continue
		}
		text, err := e.Artifact(name)
		if err != nil {
			return fmt.Errorf("plan %s needs plan %s: %w", info.Name, name, err)
		}
		o.kept[name] = string(text)
		needs, err := e.PlanInfo(name)
		if err == nil {
			err = o.keep(e, needs)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// soundPlan opens an engine for as long as it takes to know that its plan is sound, and what else the caller checks, if that is not nil. It returns
// the plan's name and artifact.
func soundPlan(o rankd.Options, check func(*rankd.Engine) error) (name string, artifact []byte, err error) {
	e, err := rankd.Open(o)
	if err != nil {
		return "", nil, err
	}
	defer e.Close()
	if check != nil {
		if err := check(e); err != nil {
			return "", nil, err
		}
	}
	info, err := e.PlanInfo("")
	if err != nil {
		return "", nil, err
	}
	if artifact, err = e.Artifact(""); err != nil {
		return "", nil, err
	}
	return info.Name, artifact, nil
}

// agesLeast is how long the age of answers is measured, at least: the default age of values without tracking, and as much again.
const agesLeast = 2 * time.Second

// unshared reports whether no engine of this build shares equal reads unless its name says so: one user makes all reads equal.
func (o *compareOptions) unshared() bool { return o.chosen.Different == 1 }

func (o *compareOptions) settings() settings {
	return settings{
		Scenario: o.scenario, Plan: o.name, Fanout: o.fanout, Users: o.chosen, Unshared: o.unshared(),
		Rounds: o.rounds, Duration: o.duration, Warmup: o.warmup, Now: o.now,
	}
}

// comparing is a comparison under way. One goroutine.
type comparing struct {
	*compareOptions
	found    comparison
	back     *backend.Backend
	workers  crew
	rewriter *backend.Rewriter        // nil: no point has foreign writes
	clusters map[int]*backend.Cluster // by number of masters; engines share them
	requests string                   // the file of the requests of --users; empty: users have nothing but their ids
}

// start starts the servers and the engines.
func (m *comparing) start(r *rig) (*harness.Experiment, error) {
	if err := m.writeScenario(r); err != nil {
		return nil, err
	}
	if err := m.writeRequests(r); err != nil {
		return nil, err
	}
	from := backend.Options{Addr: m.redis, Server: m.redisServer, Latencies: m.latencies}
	if m.standing != nil {
		r.say("writing the data of scenario %s", m.scenario)
		from.Data = m.standing.Fill
	}
	var err error
	if m.back, err = r.redis(from); err != nil {
		return nil, err
	}
	m.found.points, m.found.engines = m.points(), specNames(m.specs)
	if m.redisBenchmark != "" {
		if m.found.ceiling, err = backend.RedisBenchmarkVersion(r.ctx, m.redisBenchmark); err != nil {
			return nil, err
		}
	}
	started := m.fleet
	if m.unshared() {
		started.specs = nil
		for _, s := range m.specs {
			started.specs = append(started.specs, s.Unshared())
		}
	}
	if m.workers, err = r.workers(&started); err != nil {
		return nil, err
	}
	if err := m.startClusters(r, from.Data); err != nil {
		return nil, err
	}
	if slices.Max(m.writes) > 0 {
		if m.rewriter, err = m.back.NewRewriter(r.ctx); err != nil {
			return nil, fmt.Errorf("--foreign_writes: %w", err)
		}
	}
	e := &harness.Experiment{Rounds: m.rounds, Figures: compareFigures(), Run: m.run, Say: sayThroughput}
	for _, at := range m.found.points {
		e.Scenarios = append(e.Scenarios, at.item())
	}
	for i, s := range started.specs {
		name := m.found.engines[i]
		e.Subjects = append(e.Subjects, harness.Item{Name: name, Labels: []harness.Label{
			{Key: "engine", Value: name, Head: "engine"},
			{Key: "placement", Value: s.Placement(), Head: "placement"}, {Key: "reads", Value: s.Reads(), Head: "reads"},
		}})
	}
	if m.found.ceiling != "" {
		e.Subjects = append(e.Subjects, harness.Named("engine", "", yardstick)...)
	}
	return e, nil
}

// startClusters starts the Redis Clusters that engines ask, with the data that the server has.
func (m *comparing) startClusters(r *rig, fill func(context.Context, string) error) error {
	if fill == nil {
		fill = devredis.Load
	}
	for _, s := range m.specs {
		if s.Cluster > 0 && m.clusters[s.Cluster] == nil {
			r.say("starting a Redis Cluster of %d masters", s.Cluster)
			c, err := backend.StartCluster(r.ctx, m.redisServer, s.Cluster, fill)
			if err != nil {
				return fmt.Errorf("a Redis Cluster of %d masters: %w", s.Cluster, err)
			}
			r.later(c.Close)
			m.clusters[s.Cluster] = c
		}
	}
	return nil
}

// run has an engine, or redis-benchmark, run one round. With the last round of an engine that keeps what somebody else writes comes another, which tells
// the age of what it serves from memory.
func (m *comparing) run(ctx context.Context, scenario, subject, round int) (harness.Sample, error) {
	at := m.found.points[scenario]
	if subject == len(m.workers) {
		commands, err := backend.RedisBenchmark(ctx, m.redisBenchmark, m.back.Addr(at.latency))
		return harness.Sample{Figures: map[string]float64{perSecond: commands}}, err
	}
	r := worker.Round{
		Setup: worker.Setup{
			Redis: m.back.Addr(at.latency), Plan: m.name, Fanout: m.fanout, Artifact: string(m.text), Context: m.context, UserName: m.chosen.Name, RequestFile: m.requests,
		},
		Load:   load.Load{Users: m.chosen.IDs, Duration: m.duration, Concurrency: at.concurrency, Rate: at.rate},
		Warmup: m.warmup, RedisPID: m.back.PID,
	}
	if c := m.clusters[m.specs[subject].Cluster]; c != nil {
		r.Redis, r.RedisPID, r.RedisPIDs = c.Addr, 0, c.PIDs
	}
	report, written, err := m.beside(ctx, subject, &r, at)
	if err != nil {
		return harness.Sample{}, err
	}
	s := sampleOf(report)
	if s.Failure != "" || at.writes == 0 {
		return s, nil
	}
	s.Figures["foreign_writes_per_second"] = written
	if _, keeps := s.Figures["cache_hits"]; !keeps || round < m.rounds-1 {
		return s, nil
	}
	r.Ages, r.Duration = true, max(m.duration, agesLeast)
	if report, _, err = m.beside(ctx, subject, &r, at); err != nil {
		return s, err
	}
	return withAges(s, report), nil
}

// beside runs a round, with foreign writes beside it, of which it returns how many a second there were.
func (m *comparing) beside(ctx context.Context, subject int, r *worker.Round, at point) (report *worker.Report, written float64, err error) {
	if at.writes == 0 {
		report, err = m.workers.run(subject, r)
		return report, 0, err
	}
	end := m.rewriter.Begin(ctx, at.writes)
	report, err = m.workers.run(subject, r)
	written, failed := end()
	if failed != nil {
		err = errors.Join(err, fmt.Errorf("foreign writes: %w", failed))
	}
	return report, written, err
}

// writeScenario writes the tables and models of the scenario into a temporary folder, from which all workers read them.
func (m *comparing) writeScenario(r *rig) error {
	if m.standing == nil {
		return nil
	}
	own, err := m.standing.Options()
	if own.Registry == nil || err != nil {
		return err
	}
	folder, err := r.folder()
	if err != nil {
		return err
	}
	m.registryDir = filepath.Join(folder, "registry")
	if err := os.CopyFS(m.registryDir, own.Registry); own.Models == nil || err != nil {
		return err
	}
	m.modelDir = filepath.Join(folder, "models")
	return os.CopyFS(m.modelDir, own.Models)
}

// writeRequests writes the plans that the plan reads from memory, and the requests of the users, into a temporary folder.
func (m *comparing) writeRequests(r *rig) error {
	if len(m.kept) == 0 && m.chosen.Requests == nil {
		return nil
	}
	folder, err := r.folder()
	if err != nil {
		return err
	}
	if len(m.kept) > 0 {
		m.keptDir = folder
		if err := writePlans(folder, m.kept); err != nil {
			return err
		}
	}
	if m.chosen.Requests == nil {
		return nil
	}
	m.requests = filepath.Join(folder, "requests.jsonl")
	return os.WriteFile(m.requests, append(bytes.Join(m.chosen.Requests, []byte{'\n'}), '\n'), 0o600)
}

func specNames(specs []engines.Spec) (names []string) {
	for _, s := range specs {
		names = append(names, s.String())
	}
	return names
}
