package cmdline

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/bounds"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// The engines to choose from.
const (
	Reactor    = string(rankd.Reactor)
	Pool       = string(rankd.Pool)
	Sequential = string(rankd.Sequential)
)

// EngineFlags are the values of the flags. Those that are options of the engine are in Options. Immutable once checked.
type EngineFlags struct {
	rankd.Options // EngineOptions completes them

	RegistryDir, ModelDir string

	asyncScheduler           bool
	withinRequestParallelism bool

	Response string
	now      string // --now

	TracesOneIn int // --trace_sample
	TraceFile   string
	Detail      string // --trace_detail

	served servedFlags
	record recordFlags

	ShutdownGrace time.Duration
	// StdoutIsFree says that the command writes nothing to stdout. Set before Check.
	StdoutIsFree bool

	// Callers may choose a mode, or ask for a trace, whatever the grant flags say. Set before Check.
	GrantsModes, GrantsTraces bool
}

// PlanSettings are the flags that choose a plan, and where it reads.
func (e *EngineFlags) PlanSettings() []Setting {
	return []Setting{
		{Name: "plan_name", To: &e.Plan, Help: "run the plan of this `name`, from --plan_dir or of the built-in examples"},
		{Name: "plan_dir", To: &e.PlansDir, Help: "look for plans in this `folder`, in files <name>.plan.json or <name>.plan.ts; " +
			"all must be sound, or with --plan_name or --plan the chosen one (a request that names a bad one fails)"},
		{Name: "plan", To: &e.PlanFile, Help: "run the plan in this `file`, an artifact or <name>.plan.ts"},
		{Name: "redis", To: &e.Redis, Help: "use the Redis at this `address` for every Redis endpoint: host:port, redis://user@host:port/db?password_env=NAME " +
			"(or password_file=PATH), redis+cluster://host:port,host:port, redis+sentinel://host:port,host:port/master, the same with rediss for TLS, unix:///path?db=1"},
		{Name: "env", To: &e.Env, Default: "dev", Help: "`environment`, which chooses the endpoints: dev, test or prod"},
		{Name: "registry_dir", To: &e.RegistryDir, Help: "read keys, params and endpoints from the TOML files in this `folder`"},
		{Name: "model_dir", To: &e.ModelDir, Help: "load the models in this `folder`, files <name>.json of XGBoost or <name>.lightgbm of LightGBM, for the task model"},
	}
}

// EngineSettings are the flags that choose and size an engine.
func (e *EngineFlags) EngineSettings() []Setting {
	return []Setting{
		{Name: "engine", To: Text(&e.Model), Default: Reactor,
			Help: "`engine`: reactor (asynchronous, all requests on one loop), pool (blocking, a CPU pool and an I/O pool) " +
				"or sequential (blocking, one node at a time)"},
		// The original engine's names for --engine.
		{Name: "async_scheduler", To: &e.asyncScheduler, Default: true, Hidden: true, Help: "the same as --engine reactor"},
		{Name: "within_request_parallelism", To: &e.withinRequestParallelism, Hidden: true, Help: "the same as --engine pool"},
		{Name: "cpu_threads", To: &e.CPUThreads, Default: rankd.DefaultCPUThreads(), Option: "CPUThreads", Shown: "by cores",
			Help: "`number` of workers for CPU work"},
		{Name: "io_threads", To: &e.IOThreads, Default: 4, Option: "IOThreads", Idle: e.withoutIOWorkers,
			Help: "`number` of workers that block on Redis, with --engine pool"},
		{Name: "redis_pool", To: &e.RedisConnections, Option: "RedisConnections", Help: "`number` of connections to each Redis endpoint (0: as the registry says)"},
		{Name: "max_rows", To: &e.MaxRows, Default: task.DefaultMaxRows, Option: "MaxRows",
			Help: "fail a request whose nodes make more than this `number` of rows together"},
		{Name: "max_reply_bytes", To: &e.MaxReplyBytes, Default: resp.DefaultMaxReplyBytes, Option: "MaxReplyBytes",
			Help: "fail a request if Redis answers one of its nodes with more than this `number` of bytes at once"},
		{Name: "coalesce_reads", To: Not(&e.NoCoalesceReads), Idle: e.besideReactor,
			Help: "send equal reads that requests ask for in the same iteration of the loop once"},
		{Name: "busy_poll_us", To: Duration(&e.BusyPoll, time.Microsecond), Default: int(rankd.DefaultBusyPoll / time.Microsecond), Option: "BusyPoll",
			Idle: e.besideReactor, Help: "have the loop look for Redis's answers for so many `microseconds` before it sleeps (0: it sleeps at once)"},
		{Name: "now", To: &e.now, Help: "what now() is in plans, for experiments: an `instant` such as 2026-03-01T12:00:00Z, or seconds since 1970; timers go on as ever"},
	}
}

// SchedulingSettings are the flags that say where nodes run.
func (e *EngineFlags) SchedulingSettings() []Setting {
	s := &e.Scheduling
	return []Setting{
		{Name: "scheduling", To: Text(&s.Mode), Default: rankd.Adaptive,
			OneOf: []string{string(rankd.Adaptive), string(rankd.OffloadAll), string(rankd.InlineAll)},
			Help: "where nodes that compute run, a `mode`: adaptive (short ones on the loop, chains of others as one job), " +
				"offload_all (each on a CPU worker, one by one) or inline_all (all on the loop, for experiments)"},
		{Name: "enable_inline_execution", To: Not(&s.NoInlineExecution), Idle: e.withoutPlacement, Help: "let nodes that compute run on the loop"},
		{Name: "inline_threshold_ns", To: Duration(&s.InlineThreshold, time.Nanosecond), Default: int(scheduler.DefaultInlineThreshold),
			Option: "Scheduling.InlineThreshold", Idle: e.withoutThreshold, Help: "run a node on the loop if its predicted time is below this `number` of nanoseconds"},
		{Name: "max_inline_depth", To: &s.MaxInlineDepth, Default: scheduler.DefaultMaxInlineDepth, Option: "Scheduling.MaxInlineDepth", Idle: e.withoutInline,
			Help: "follow a chain of nodes on the loop for this `number` of nodes; the next one passes through the ready queue"},
		{Name: "enable_continuation_chaining", To: Not(&s.NoContinuationChaining), Idle: e.withoutPlacement,
			Help: "go straight on from a node to its only successor, and hand chains of nodes to the CPU workers as one job"},
	}
}

// DeadlineSettings are the flags that bound the time of a request and of a node.
func (e *EngineFlags) DeadlineSettings() []Setting {
	return []Setting{
		{Name: "deadline_ms", To: Duration(&e.Timeout, time.Millisecond), Option: "Timeout",
			Help: "fail a request that takes longer than this `number` of milliseconds from its arrival (0: no limit); its own deadline_ms can only shorten it"},
		{Name: "node_timeout_ms", To: Duration(&e.NodeTimeout, time.Millisecond), Option: "NodeTimeout",
			Help: "fail a node that takes longer than this `number` of milliseconds (0: no limit), and its request with it"},
	}
}

// GraceSettings are the flag that bounds the end of the program.
func (e *EngineFlags) GraceSettings() []Setting {
	return []Setting{
		{Name: "shutdown_grace_ms", To: Duration(&e.ShutdownGrace, time.Millisecond), Default: 5000, Least: 0, Most: bounds.MSMax,
			Help: "after SIGINT or SIGTERM give requests in flight this `number` of milliseconds, then fail them"},
	}
}

// GrantSettings are the flags that let requests choose. idle says why none of them has an effect; nil: all have one.
func (e *EngineFlags) GrantSettings(idle func() string) []Setting {
	if idle == nil {
		idle = func() string { return "" }
	}
	return []Setting{
		{Name: "allow_request_scheduling", To: &e.AllowRequestScheduling, Idle: func() string { return cmp.Or(idle(), e.WithoutLoop()) },
			Help: "let a request choose its mode with \"scheduling\"; without this flag such a request fails"},
		{Name: "allow_request_trace", To: &e.AllowRequestTrace, Idle: idle,
			Help: "give a request with \"trace\": true a trace of its run in its answer; without this flag such a request fails"},
		{Name: "allow_request_explain", To: &e.AllowRequestExplain, Idle: idle,
			Help: "give a request with \"explain\" the reasons of its answer; without this flag such a request fails"},
		{Name: "allow_request_now", To: &e.AllowRequestNow, Idle: idle,
			Help: "let a request choose with \"now\" what now() is in its plan, for tests and experiments; without this flag such a request fails"},
		{Name: "allow_request_traffic", To: &e.AllowRequestTraffic, Idle: idle,
			Help: "let a request say with \"traffic\" that it is not a user's, for --served_log; without this flag such a request fails"},
	}
}

// ResponseSettings are the flag that chooses the form of answers.
func (e *EngineFlags) ResponseSettings() []Setting {
	return []Setting{
		{Name: "response", To: &e.Response, Default: "flat", OneOf: []string{"flat", "fields"},
			Help: "`form` of a candidate: flat ({\"id\":1,\"score\":0.5}) or fields ({\"id\":1,\"fields\":{\"score\":0.5}})"},
	}
}

// RecordingSettings are the flags that record requests.
func (e *EngineFlags) RecordingSettings() []Setting {
	return []Setting{
		{Name: "trace_file", To: &e.TraceFile, Help: "write a trace of each request to this `file`, as one line of JSON; what the file holds is replaced"},
		{Name: "trace_sample", To: &e.TracesOneIn, Default: 1, Option: "TraceSample", Idle: e.withoutTraceFile,
			Help: "write a trace of only one request in this `number`, with --trace_file"},
		{Name: "trace_detail", To: &e.Detail, Default: trace.Full.String(), OneOf: []string{trace.JustNodes.String(), trace.Full.String()}, Idle: e.withoutTraces,
			Help: "how `much` a trace says: nodes (when and where each node ran) or full (what each thread and connection did, too)"},
	}
}

// Check reports everything that is wrong with the values of a table's flags at once. The table includes the flags of
// the engine.
func (e *EngineFlags) Check(given *pflag.FlagSet, table []Setting) error {
	err := CheckSettings(given, table)
	if e.Redis != "" {
		if _, bad := rankd.RedisAddr(e.Redis); bad != nil {
			err = errors.Join(err, fmt.Errorf("--redis is host:port or a URL: %w", bad))
		}
		e.RedisAgrees = annotation(given.Lookup("redis"), agreeKey)
	}
	if _, bad := request.ParseNow(e.now); e.now != "" && bad != nil {
		err = errors.Join(err, fmt.Errorf("--now: %w", bad))
	}
	return errors.Join(err, e.checkServed(), e.checkRecord())
}

// ChooseEngine sets the engine that the three flags name together.
func (e *EngineFlags) ChooseEngine(given *pflag.FlagSet) error {
	switch e.Model {
	case rankd.Reactor, rankd.Pool, rankd.Sequential:
	default:
		return fmt.Errorf("--engine is reactor, pool or sequential, not %q", e.Model)
	}
	async, parallel := given.Changed("async_scheduler"), e.withinRequestParallelism
	engine := e.Model
	switch {
	case async && e.asyncScheduler && parallel:
		return errors.New("--async_scheduler contradicts --within_request_parallelism")
	case async && e.asyncScheduler:
		engine = rankd.Reactor
	case parallel:
		engine = rankd.Pool
	case async && (!given.Changed("engine") || e.Model == rankd.Reactor): // not the reactor
		engine = rankd.Sequential
	}
	if given.Changed("engine") && e.Model != engine {
		return fmt.Errorf("--engine %s contradicts --async_scheduler or --within_request_parallelism", e.Model)
	}
	e.Model = engine
	return nil
}

// The reasons why a flag has no effect, or "" if it has one: see Setting.Idle. They hold after ChooseEngine.

func (e *EngineFlags) withoutIOWorkers() string {
	return when(e.Model != rankd.Pool, "with engine "+string(e.Model)+"; --engine pool has I/O workers")
}

func (e *EngineFlags) besideReactor() string {
	return when(e.Model != rankd.Reactor, "with --engine "+string(e.Model))
}

// WithoutLoop is the reason for flags that need the engine reactor.
func (e *EngineFlags) WithoutLoop() string {
	return when(e.Model != rankd.Reactor, "with engine "+string(e.Model)+"; --engine reactor has a loop")
}

// always reports whether all requests run in a mode.
func (e *EngineFlags) always(mode rankd.SchedulingMode) bool {
	return e.Scheduling.Mode == mode && !e.AllowRequestScheduling && !e.GrantsModes
}

func (e *EngineFlags) withoutPlacement() string {
	return cmp.Or(e.WithoutLoop(), when(e.always(rankd.OffloadAll), "with --scheduling offload_all"))
}

func (e *EngineFlags) withoutInline() string {
	return cmp.Or(e.withoutPlacement(), when(e.Scheduling.NoInlineExecution, "with --enable_inline_execution=false"))
}

func (e *EngineFlags) withoutThreshold() string {
	return cmp.Or(e.withoutInline(), when(e.always(rankd.InlineAll), "with --scheduling inline_all"))
}

func (e *EngineFlags) withoutTraceFile() string {
	return when(e.TraceFile == "", "without --trace_file")
}

func (e *EngineFlags) withoutTraces() string {
	return when(e.TraceFile == "" && !e.AllowRequestTrace && !e.GrantsTraces, "without --trace_file or --allow_request_trace")
}

// when returns the reason if it holds.
func when(holds bool, reason string) string {
	if holds {
		return reason
	}
	return ""
}
