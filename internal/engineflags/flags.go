package engineflags

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// The engines to choose from.
const (
	Reactor    = string(rankd.Reactor)
	Pool       = string(rankd.Pool)
	Sequential = string(rankd.Sequential)
)

// Flags are the values of the flags. Immutable once checked.
type Flags struct {
	Plan, PlanDir, PlanName string

	Engine                   string
	asyncScheduler           bool
	withinRequestParallelism bool
	CPUThreads               int
	IOThreads                int
	RedisPool                int // 0: as the endpoint's policy says

	Env, RegistryDir, ModelDir, Redis string

	MaxRows       int
	MaxReplyBytes int
	CoalesceReads bool
	BusyPollUS    int

	Scheduling                 string
	EnableInlineExecution      bool
	EnableContinuationChaining bool
	InlineThresholdNS          int
	MaxInlineDepth             int

	AllowRequestScheduling bool
	AllowRequestTrace      bool
	AllowRequestExplain    bool

	Response string

	TraceSample int
	TraceFile   string
	TraceDetail string

	DeadlineMS, NodeTimeoutMS, ShutdownGraceMS int
	// The same, set by Check. Zero: no deadline, no timeout, no grace.
	Timeout, NodeTimeout, ShutdownGrace time.Duration
}

// AddPlan adds the flags that choose a plan, and where it reads.
func (e *Flags) AddPlan(f *pflag.FlagSet) {
	f.StringVar(&e.PlanName, "plan_name", "", "run the plan of this `name`, from --plan_dir or of the built-in examples")
	f.StringVar(&e.PlanDir, "plan_dir", "", "look for plans in this `folder`, in files <name>.plan.json or <name>.plan.ts; "+
		"all must be sound, or with --plan_name or --plan the chosen one (a request that names a bad one fails)")
	f.StringVar(&e.Plan, "plan", "", "run the plan in this `file`, an artifact or <name>.plan.ts")
	f.StringVar(&e.Redis, "redis", "", "use the Redis at this `address` for every Redis endpoint: host:port, redis://user@host:port/db?password_env=NAME "+
		"(or password_file=PATH), unix:///path?db=1")
	f.StringVar(&e.Env, "env", "dev", "`environment`, which chooses the endpoints: dev, test or prod")
	f.StringVar(&e.RegistryDir, "registry_dir", "", "read keys, params and endpoints from the TOML files in this `folder`")
	f.StringVar(&e.ModelDir, "model_dir", "", "load the models in this `folder`, files <name>.json of XGBoost, for the task model")
}

// AddEngine adds the flags that choose and size an engine.
func (e *Flags) AddEngine(f *pflag.FlagSet) {
	f.StringVar(&e.Engine, "engine", Reactor,
		"`engine`: reactor (asynchronous, all requests on one loop), pool (blocking, a CPU pool and an I/O pool) "+
			"or sequential (blocking, one node at a time)")
	f.BoolVar(&e.asyncScheduler, "async_scheduler", true, "the same as --engine reactor")
	f.BoolVar(&e.withinRequestParallelism, "within_request_parallelism", false, "the same as --engine pool")
	f.IntVar(&e.CPUThreads, "cpu_threads", rankd.DefaultCPUThreads(), "`number` of workers for CPU work")
	f.IntVar(&e.IOThreads, "io_threads", 4, "`number` of workers that block on Redis, with --engine pool")
	f.IntVar(&e.RedisPool, "redis_pool", 0, "`number` of connections to each Redis endpoint (0: as the registry says)")
	f.IntVar(&e.MaxRows, "max_rows", task.DefaultMaxRows, "fail a request whose nodes make more than this `number` of rows together")
	f.IntVar(&e.MaxReplyBytes, "max_reply_bytes", resp.DefaultMaxReplyBytes, "fail a request if Redis answers one of its nodes with more than this `number` of bytes at once")
	f.BoolVar(&e.CoalesceReads, "coalesce_reads", true, "send equal reads that requests ask for in the same iteration of the loop once")
	f.IntVar(&e.BusyPollUS, "busy_poll_us", int(rankd.DefaultBusyPoll/time.Microsecond), "have the loop look for Redis's answers for so many `microseconds` before it sleeps (0: it sleeps at once)")
	// The original engine's names for --engine.
	for _, name := range []string{"async_scheduler", "within_request_parallelism"} {
		f.Lookup(name).Hidden = true
	}
}

// AddScheduling adds the flags that say where nodes run.
func (e *Flags) AddScheduling(f *pflag.FlagSet) {
	f.StringVar(&e.Scheduling, "scheduling", string(rankd.Adaptive),
		"where nodes that compute run, a `mode`: adaptive (short ones on the loop, chains of others as one job), "+
			"offload_all (each on a CPU worker, one by one) or inline_all (all on the loop, for experiments)")
	f.BoolVar(&e.EnableInlineExecution, "enable_inline_execution", true, "let nodes that compute run on the loop")
	f.IntVar(&e.InlineThresholdNS, "inline_threshold_ns", 10_000,
		"run a node on the loop if its predicted time is below this `number` of nanoseconds")
	f.IntVar(&e.MaxInlineDepth, "max_inline_depth", 3,
		"follow a chain of nodes on the loop for this `number` of nodes; the next one passes through the ready queue")
	f.BoolVar(&e.EnableContinuationChaining, "enable_continuation_chaining", true,
		"go straight on from a node to its only successor, and hand chains of nodes to the CPU workers as one job")
}

// AddDeadlines adds the flags that bound the time of a request and of a node.
func (e *Flags) AddDeadlines(f *pflag.FlagSet) {
	f.IntVar(&e.DeadlineMS, "deadline_ms", 0,
		"fail a request that takes longer than this `number` of milliseconds (0: no limit); its own deadline_ms can only shorten it")
	f.IntVar(&e.NodeTimeoutMS, "node_timeout_ms", 0,
		"fail a node that takes longer than this `number` of milliseconds (0: no limit), and its request with it")
}

// AddGrace adds the flag that bounds the end of the program.
func (e *Flags) AddGrace(f *pflag.FlagSet) {
	f.IntVar(&e.ShutdownGraceMS, "shutdown_grace_ms", 5000,
		"after SIGINT or SIGTERM give requests in flight this `number` of milliseconds, then fail them")
}

// AddGrants adds the flags that let requests choose.
func (e *Flags) AddGrants(f *pflag.FlagSet) {
	f.BoolVar(&e.AllowRequestScheduling, "allow_request_scheduling", false,
		"let a request choose its mode with \"scheduling\"; without this flag such a request fails")
	f.BoolVar(&e.AllowRequestTrace, "allow_request_trace", false,
		"give a request with \"trace\": true a trace of its run in its answer; without this flag such a request fails")
	f.BoolVar(&e.AllowRequestExplain, "allow_request_explain", false,
		"give a request with \"explain\" the reasons of its answer; without this flag such a request fails")
}

// AddResponse adds the flag that chooses the form of answers.
func (e *Flags) AddResponse(f *pflag.FlagSet) {
	f.StringVar(&e.Response, "response", "flat",
		"`form` of a candidate: flat ({\"id\":1,\"score\":0.5}) or fields ({\"id\":1,\"fields\":{\"score\":0.5}})")
}

// AddRecording adds the flags that record requests.
func (e *Flags) AddRecording(f *pflag.FlagSet) {
	f.StringVar(&e.TraceFile, "trace_file", "", "write a trace of each request to this `file`, as one line of JSON; what the file holds is replaced")
	f.IntVar(&e.TraceSample, "trace_sample", 1, "write a trace of only one request in this `number`, with --trace_file")
	f.StringVar(&e.TraceDetail, "trace_detail", trace.Full.String(),
		"how `much` a trace says: nodes (when and where each node ran) or full (what each thread and connection did, too)")
}
