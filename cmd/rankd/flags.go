package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/cli"
	"github.com/rankd/rankd/internal/command"
	"github.com/rankd/rankd/request"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// The engines to choose from.
const (
	engineReactor    = string(rankd.Reactor)
	enginePool       = string(rankd.Pool)
	engineSequential = string(rankd.Sequential)
)

// The forms of the input.
const (
	inputJSON  = "json"  // documents, which may span lines
	inputLines = "jsonl" // lines, each of which is one document
)

// limitMSMax is the longest limit of time that one can set: some 24 days.
const limitMSMax = 1<<31 - 1

// busyPollUSMax is the longest busy poll that one can set: a tenth of a second.
const busyPollUSMax = 100_000

// options are the flags of the root command. Immutable once checked.
type options struct {
	plan, planDir, planName string

	engine                   string
	asyncScheduler           bool
	withinRequestParallelism bool
	cpuThreads               int
	ioThreads                int
	redisPool                int // 0: as the endpoint's policy says

	env, registryDir, modelDir, redis string

	listPlans, printPlanInfo, printRegistry, loadDemoData, version bool

	deltas          bool
	input           string
	response        string
	maxInflight     int
	maxRequestBytes int
	maxRows         int
	maxReplyBytes   int
	coalesceReads   bool
	busyPollUS      int

	scheduling                 string
	enableInlineExecution      bool
	enableContinuationChaining bool
	inlineThresholdNS          int
	maxInlineDepth             int
	allowRequestScheduling     bool
	metrics                    bool

	allowRequestTrace   bool
	allowRequestExplain bool
	traceSample         int
	traceFile           string
	traceDetail         string

	deadlineMS, nodeTimeoutMS, shutdownGraceMS int
	// The same, set by check. Zero: no deadline, no timeout, no grace.
	deadline, nodeTimeout, shutdownGrace time.Duration

	tracing bool // of rankd trace or explain, which have fewer flags

	bench            int
	benchConcurrency int
	eventLoop        cli.EventLoopFlags
}

const long = `rankd reads requests from stdin, runs a plan for each, and writes one line of JSON
per request to stdout, in input order.

A request is a JSON document on its own line or lines (--input jsonl: on one line):

  {"user_id": 1}
  {"user_id": "42", "request_id": "r1", "param_overrides": {"weight": 0.5}, "plan": "diamond"}

The plan is chosen by --plan or --plan_name; a request may name another one with
"plan", and with --plan_dir alone it must. With none of these flags a request that names
no plan gets five synthetic candidates.

In the dev environment (the default) a Redis with demo data for 1,000 users runs inside
the process. --redis host:port uses your own, and so does a URL: redis://user@host:port/db
or unix:///path, with ?password_env=NAME or ?password_file=PATH.`

const examples = `  # Rank for user 1, with nothing but this program:
  echo '{"user_id": 1}' | rankd --plan_name complex_dag

  # Your plan, in TypeScript or as an artifact, your Redis, a file of requests:
  rankd --plan my.plan.ts --redis 127.0.0.1:6379 < requests.jsonl

  # The demo data in an empty Redis of your own:
  rankd --load_demo_data --redis 127.0.0.1:6379

  # What plans are there, and what is in one?
  rankd --list-plans
  rankd --print-plan-info --plan_name diamond

  # Which columns did each node add or drop?
  echo '{"user_id": 1}' | rankd --plan_name diamond --dump-run-trace

  # What ran when, and which node bounds the request (see rankd trace --help)?
  rankd trace --plan_name diamond

  # Why is item 42 in the answer, or why is it not (see rankd explain --help)?
  rankd explain --plan_name diamond --user 1 --item 42

  # Throughput and latency, 64 requests in flight:
  rankd --plan_name concat_plan --bench 10000 --bench_concurrency 64

  # Compare engines, with charts (see rankd bench --help):
  rankd bench compare --plan_name concat_plan --html report.html`

const usageTemplate = `Usage:
{{- if .HasParent}}
  {{.UseLine}}
{{- else}}
  rankd [flags] < requests
{{- range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .UseLine 42}} {{.Short}}{{end}}{{end}}
{{- end}}

Examples:
{{.Example}}

Flags ("-" and "_" in a name are the same):
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}

Exit status:
  0  every request succeeded
  1  a request failed, and its answer on stdout says why; or stdout could not be written
  2  bad usage or a bad plan; stderr says why, and stdout stays empty,
     but --list-plans lists the sound plans beside a bad one
`

// newCommand returns the root command, which fills o, checks it and calls run.
func newCommand(o *options, run func(cmd *cobra.Command) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:           "rankd",
		Short:         "A ranking engine on an event loop",
		Long:          long,
		Example:       examples,
		Args:          noFile,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags()); err != nil {
				return err
			}
			return run(cmd)
		},
	}
	cmd.SetUsageTemplate(usageTemplate)
	cmd.SetFlagErrorFunc(command.FlagError)
	cmd.CompletionOptions.DisableDefaultCmd = true
	f := cmd.Flags()
	f.SortFlags = false
	f.SetNormalizeFunc(command.Normalize)

	o.addPlan(f)
	o.addEngine(f)
	f.IntVar(&o.maxInflight, "max_inflight", 256, "run at most this `number` of requests at the same time; "+
		"its product with --max_request_bytes bounds the memory that requests take")
	f.IntVar(&o.maxRequestBytes, "max_request_bytes", request.DefaultMaxBytes, "refuse requests longer than this `number` of bytes; "+
		"times --max_inflight it bounds the memory that their texts take")
	o.addScheduling(f)
	f.BoolVar(&o.allowRequestScheduling, "allow_request_scheduling", false,
		"let a request choose its mode with \"scheduling\"; without this flag such a request fails")
	o.addDeadlines(f)
	f.IntVar(&o.shutdownGraceMS, "shutdown_grace_ms", 5000,
		"after SIGINT or SIGTERM give requests in flight this `number` of milliseconds, then fail them")

	f.StringVar(&o.input, "input", inputJSON,
		"`form` of the input: json (documents may span lines) or jsonl (each line is one document, and a broken one harms no other)")
	f.StringVar(&o.response, "response", "flat",
		"`form` of a candidate: flat ({\"id\":1,\"score\":0.5}) or fields ({\"id\":1,\"fields\":{\"score\":0.5}})")
	f.BoolVar(&o.deltas, "dump-run-trace", false, "add schema_deltas to answers: the columns each node took in, gave out, added, removed")

	f.BoolVar(&o.allowRequestTrace, "allow_request_trace", false,
		"give a request with \"trace\": true a trace of its run in its answer; without this flag such a request fails")
	f.BoolVar(&o.allowRequestExplain, "allow_request_explain", false,
		"give a request with \"explain\" the reasons of its answer; without this flag such a request fails")
	f.StringVar(&o.traceFile, "trace_file", "", "write a trace of each request to this `file`, as one line of JSON; what the file holds is replaced")
	f.IntVar(&o.traceSample, "trace_sample", 1, "write a trace of only one request in this `number`, with --trace_file")
	f.StringVar(&o.traceDetail, "trace_detail", trace.Full.String(),
		"how `much` a trace says: nodes (when and where each node ran) or full (what each thread and connection did, too)")

	f.BoolVar(&o.metrics, "metrics", false, "at the end print where nodes ran, and what that cost, on stderr: one line of JSON")

	f.BoolVar(&o.listPlans, "list-plans", false, "list the plans that --plan_name can name, and exit")
	f.BoolVar(&o.printPlanInfo, "print-plan-info", false, "print the chosen plan as checked and compiled, and exit")
	f.BoolVar(&o.printRegistry, "print-registry", false, "print keys, params and endpoints, and exit")
	f.BoolVar(&o.loadDemoData, "load_demo_data", false, "write the demo data into the Redis at --redis, and exit: "+
		"the keys user:, follow:, recommendation: and media: of ids 1 to 1000, replacing what they hold")

	f.IntVar(&o.bench, "bench", 0, "run the plan this `number` of times for user 1 and print figures as JSON; "+
		"no equal reads are shared then, unless --coalesce_reads is given: one user makes all reads equal")
	f.IntVar(&o.benchConcurrency, "bench_concurrency", 1, "keep this `number` of benchmark requests in flight")
	o.eventLoop.Add(f)
	f.BoolVar(&o.version, "version", false, "print the version and the commit of this program, and exit")
	return cmd
}

// addPlan adds the flags that choose a plan, and where it reads.
func (o *options) addPlan(f *pflag.FlagSet) {
	f.StringVar(&o.planName, "plan_name", "", "run the plan of this `name`, from --plan_dir or of the built-in examples")
	f.StringVar(&o.planDir, "plan_dir", "", "look for plans in this `folder`, in files <name>.plan.json or <name>.plan.ts; "+
		"all must be sound, or with --plan_name or --plan the chosen one (a request that names a bad one fails)")
	f.StringVar(&o.plan, "plan", "", "run the plan in this `file`, an artifact or <name>.plan.ts")
	f.StringVar(&o.redis, "redis", "", "use the Redis at this `address` for every Redis endpoint: host:port, redis://user@host:port/db?password_env=NAME "+
		"(or password_file=PATH), unix:///path?db=1")
	f.StringVar(&o.env, "env", "dev", "`environment`, which chooses the endpoints: dev, test or prod")
	f.StringVar(&o.registryDir, "registry_dir", "", "read keys, params and endpoints from the TOML files in this `folder`")
	f.StringVar(&o.modelDir, "model_dir", "", "load the models in this `folder`, files <name>.json of XGBoost, for the task model")
}

// addEngine adds the flags that choose and size an engine.
func (o *options) addEngine(f *pflag.FlagSet) {
	f.StringVar(&o.engine, "engine", engineReactor,
		"`engine`: reactor (asynchronous, all requests on one loop), pool (blocking, a CPU pool and an I/O pool) "+
			"or sequential (blocking, one node at a time)")
	f.BoolVar(&o.asyncScheduler, "async_scheduler", true, "the same as --engine reactor")
	f.BoolVar(&o.withinRequestParallelism, "within_request_parallelism", false, "the same as --engine pool")
	f.IntVar(&o.cpuThreads, "cpu_threads", rankd.DefaultCPUThreads(), "`number` of workers for CPU work")
	f.IntVar(&o.ioThreads, "io_threads", 4, "`number` of workers that block on Redis, with --engine pool")
	f.IntVar(&o.redisPool, "redis_pool", 0, "`number` of connections to each Redis endpoint (0: as the registry says)")
	f.IntVar(&o.maxRows, "max_rows", task.DefaultMaxRows, "fail a request whose nodes make more than this `number` of rows together")
	f.IntVar(&o.maxReplyBytes, "max_reply_bytes", resp.DefaultMaxReplyBytes, "fail a request if Redis answers one of its nodes with more than this `number` of bytes at once")
	f.BoolVar(&o.coalesceReads, "coalesce_reads", true, "send equal reads that requests ask for in the same iteration of the loop once")
	f.IntVar(&o.busyPollUS, "busy_poll_us", int(rankd.DefaultBusyPoll/time.Microsecond), "have the loop look for Redis's answers for so many `microseconds` before it sleeps (0: it sleeps at once)")
	// The original engine's names for --engine.
	for _, name := range []string{"async_scheduler", "within_request_parallelism"} {
		f.Lookup(name).Hidden = true
	}
}

// addScheduling adds the flags that say where nodes run.
func (o *options) addScheduling(f *pflag.FlagSet) {
	f.StringVar(&o.scheduling, "scheduling", string(rankd.Adaptive),
		"where nodes that compute run, a `mode`: adaptive (short ones on the loop, chains of others as one job), "+
			"offload_all (each on a CPU worker, one by one) or inline_all (all on the loop, for experiments)")
	f.BoolVar(&o.enableInlineExecution, "enable_inline_execution", true, "let nodes that compute run on the loop")
	f.IntVar(&o.inlineThresholdNS, "inline_threshold_ns", 10_000,
		"run a node on the loop if its predicted time is below this `number` of nanoseconds")
	f.IntVar(&o.maxInlineDepth, "max_inline_depth", 3,
		"follow a chain of nodes on the loop for this `number` of nodes; the next one passes through the ready queue")
	f.BoolVar(&o.enableContinuationChaining, "enable_continuation_chaining", true,
		"go straight on from a node to its only successor, and hand chains of nodes to the CPU workers as one job")
}

// addDeadlines adds the flags that bound the time of a request and of a node.
func (o *options) addDeadlines(f *pflag.FlagSet) {
	f.IntVar(&o.deadlineMS, "deadline_ms", 0,
		"fail a request that takes longer than this `number` of milliseconds (0: no limit); its own deadline_ms can only shorten it")
	f.IntVar(&o.nodeTimeoutMS, "node_timeout_ms", 0,
		"fail a node that takes longer than this `number` of milliseconds (0: no limit), and its request with it")
}

// noFile refuses arguments, and says where a file of requests goes.
func noFile(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	switch arg := args[0]; arg {
	case "true", "false":
		return fmt.Errorf("argument %q stands alone: the value of a flag that is on or off follows =, as in --flag=%s", arg, arg)
	default:
		file := "file"
		if plainWord.MatchString(arg) {
			file = arg
		}
		return fmt.Errorf("unknown command %q; a file of requests comes on stdin: rankd [flags] < %s", arg, file)
	}
}

// plainWord matches words that a shell does not change.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,-]+$`)

// check reports all that is wrong with the options at once, and completes them.
func (o *options) check(given *pflag.FlagSet) error {
	if err := errors.Join(command.CheckExclusive(given, "plan", "plan_name"),
		command.CheckExclusive(given, "list-plans", "print-plan-info", "print-registry", "load_demo_data", "bench", "bench_eventloop", "version")); err != nil {
		return err
	}
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }

	if err := command.CheckValues(given); err != nil {
		problems = append(problems, err)
	}
	if err := o.chooseEngine(given); err != nil {
		problems = append(problems, err)
	} else if err := o.checkEffect(given); err != nil {
		problems = append(problems, err)
	}
	if has(given, "input") && o.input != inputJSON && o.input != inputLines {
		problem("--input is json or jsonl, not %q", o.input)
	}
	switch rankd.SchedulingMode(o.scheduling) {
	case rankd.Adaptive, rankd.OffloadAll, rankd.InlineAll:
	default:
		problem("--scheduling is adaptive, offload_all or inline_all, not %q", o.scheduling)
	}
	if has(given, "response") && o.response != "flat" && o.response != "fields" {
		problem("--response is flat or fields, not %q", o.response)
	}
	for _, flag := range []struct {
		name        string
		value, most int
	}{
		{"cpu_threads", o.cpuThreads, 1 << 10},
		{"io_threads", o.ioThreads, 1 << 14},
		{"max_inflight", o.maxInflight, 1 << 20},
		{"max_request_bytes", o.maxRequestBytes, 1 << 30},
		{"max_rows", o.maxRows, task.MaxRowsLimit},
		{"max_reply_bytes", o.maxReplyBytes, resp.MaxReplyBytesLimit},
		{"inline_threshold_ns", o.inlineThresholdNS, int(time.Second)},
		{"max_inline_depth", o.maxInlineDepth, 1 << 16},
		{"bench_concurrency", o.benchConcurrency, 1 << 20},
		{"trace_sample", o.traceSample, 1 << 30},
	} {
		if has(given, flag.name) && (flag.value < 1 || flag.value > flag.most) {
			problem("--%s is a number from 1 to %d, not %d", flag.name, flag.most, flag.value)
		}
	}
	if o.busyPollUS < 0 || o.busyPollUS > busyPollUSMax {
		problem("--busy_poll_us is a number from 0 to %d, not %d", busyPollUSMax, o.busyPollUS)
	}
	for _, limit := range []struct {
		name string
		ms   int
		set  *time.Duration
	}{
		{"deadline_ms", o.deadlineMS, &o.deadline},
		{"node_timeout_ms", o.nodeTimeoutMS, &o.nodeTimeout},
		{"shutdown_grace_ms", o.shutdownGraceMS, &o.shutdownGrace},
	} {
		if limit.ms < 0 || limit.ms > limitMSMax {
			problem("--%s is a number from 0 to %d, not %d", limit.name, limitMSMax, limit.ms)
		}
		*limit.set = time.Duration(limit.ms) * time.Millisecond
	}
	if detail, err := trace.ParseDetail(o.traceDetail); has(given, "trace_detail") && (err != nil || detail == trace.Off) {
		problem("--trace_detail is nodes or full, not %q", o.traceDetail)
	}
	if o.redisPool < 0 || o.redisPool > 1<<12 {
		problem("--redis_pool is a number from 0 to %d, not %d", 1<<12, o.redisPool)
	}
	if o.bench != 0 && !given.Changed("coalesce_reads") {
		o.coalesceReads = false // The benchmark has one user, who makes all reads equal.
	}
	if given.Changed("bench") {
		if o.bench < 1 || o.bench > 1<<30 {
			problem("--bench is a number from 1 to %d, not %d", 1<<30, o.bench)
		}
		if o.plan == "" && o.planName == "" {
			problem("--bench needs a plan: --plan_name or --plan")
		}
	}
	if o.eventLoop.Asked {
		if err := o.eventLoop.Check(o.cpuThreads); err != nil {
			problem("--bench_eventloop: %w", err)
		}
	}
	if o.printPlanInfo && o.plan == "" && o.planName == "" {
		problem("--print-plan-info needs a plan: --plan_name or --plan")
	}
	if o.loadDemoData && o.redis == "" {
		problem("--load_demo_data needs a Redis to write to: --redis host:port")
	}
	if o.redis != "" {
		if _, err := rankd.RedisAddr(o.redis); err != nil {
			problem("--redis is host:port or a URL: %w", err)
		}
	}
	return errors.Join(problems...)
}

// has reports whether a command has a flag.
func has(flags *pflag.FlagSet, name string) bool { return flags.Lookup(name) != nil }

// chooseEngine sets the engine that the three flags name together.
func (o *options) chooseEngine(given *pflag.FlagSet) error {
	switch o.engine {
	case engineReactor, enginePool, engineSequential:
	default:
		return fmt.Errorf("--engine is reactor, pool or sequential, not %q", o.engine)
	}
	async, parallel := given.Changed("async_scheduler"), o.withinRequestParallelism
	engine := o.engine
	switch {
	case async && o.asyncScheduler && parallel:
		return errors.New("--async_scheduler contradicts --within_request_parallelism")
	case async && o.asyncScheduler:
		engine = engineReactor
	case parallel:
		engine = enginePool
	case async && (!given.Changed("engine") || o.engine == engineReactor): // not the reactor
		engine = engineSequential
	}
	if given.Changed("engine") && o.engine != engine {
		return fmt.Errorf("--engine %s contradicts --async_scheduler or --within_request_parallelism", o.engine)
	}
	o.engine = engine
	return nil
}

// quiet keeps cobra from writing anything but help.
func quiet(cmd *cobra.Command, stdout io.Writer) {
	cmd.SetOut(stdout)
	cmd.SetErr(io.Discard)
}
