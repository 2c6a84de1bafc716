package program

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rankd/rankd/bench/cli"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/request"
)

// The forms of the input.
const (
	inputJSON  = "json"  // documents, which may span lines
	inputLines = "jsonl" // lines, each of which is one document
)

// options are the flags of the root command. Immutable once checked.
type options struct {
	cmdline.EngineFlags

	listPlans, printPlanInfo, printRegistry, loadDemoData, version bool

	deltas          bool
	input           string
	maxInflight     int
	maxRequestBytes int
	metrics         bool

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
the process. --redis host:port uses your own, and so does a URL: redis://user@host:port/db,
redis+cluster://host:port,host:port, redis+sentinel://host:port,host:port/master
(the same with rediss for TLS) or unix:///path, with ?password_env=NAME or ?password_file=PATH.`

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

  # Answer applications over HTTP and over RESP (see rankd serve --help):
  rankd serve --listen :8080 --resp :6390 --plan_dir plans --redis 127.0.0.1:6379

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
	cmd.SetFlagErrorFunc(cmdline.FlagError)
	cmd.CompletionOptions.DisableDefaultCmd = true
	f := cmd.Flags()
	f.SortFlags = false
	f.SetNormalizeFunc(cmdline.Normalize)

	cmdline.AddSettings(f, o.settings())
	return cmd
}

// settings are the flags of the root command, but those of its old measurement of the event loop.
func (o *options) settings() []cmdline.Setting {
	return slices.Concat(o.PlanSettings(), o.EngineSettings(), []cmdline.Setting{
		{Name: "max_inflight", To: &o.maxInflight, Default: 256, Option: "MaxInflight",
			Help: "run at most this `number` of requests at the same time; its product with --max_request_bytes bounds the memory that requests take"},
		{Name: "max_request_bytes", To: &o.maxRequestBytes, Default: request.DefaultMaxBytes, Least: 1, Most: 1 << 30,
			Help: "refuse requests longer than this `number` of bytes; times --max_inflight it bounds the memory that their texts take"},
	}, o.SchedulingSettings(), o.GrantSettings(nil), o.DeadlineSettings(), o.GraceSettings(), []cmdline.Setting{
		{Name: "input", To: &o.input, Default: inputJSON, OneOf: []string{inputJSON, inputLines},
			Help: "`form` of the input: json (documents may span lines) or jsonl (each line is one document, and a broken one harms no other)"},
	}, o.ResponseSettings(), []cmdline.Setting{
		{Name: "dump-run-trace", To: &o.deltas, Help: "add schema_deltas to answers: the columns each node took in, gave out, added, removed"},
	}, o.RecordingSettings(), o.ServedSettings(), o.RecordSettings(), []cmdline.Setting{
		{Name: "metrics", To: &o.metrics, Idle: o.WithoutLoop, Help: "at the end print where nodes ran, and what that cost, on stderr: one line of JSON"},
		{Name: "list-plans", To: &o.listPlans, Help: "list the plans that --plan_name can name, and exit"},
		{Name: "print-plan-info", To: &o.printPlanInfo, Help: "print the chosen plan as checked and compiled, and exit"},
		{Name: "print-registry", To: &o.printRegistry, Help: "print keys, params and endpoints, and exit"},
		{Name: "load_demo_data", To: &o.loadDemoData, Help: "write the demo data into the Redis at --redis, and exit: " +
			"the keys user:, follow:, recommendation: and media: of ids 1 to 1000, replacing what they hold"},
		{Name: "bench", To: &o.bench, Least: 1, Most: 1 << 30, Help: "run the plan this `number` of times for user 1 and print figures as JSON; " +
			"no equal reads are shared then, unless --coalesce_reads is given: one user makes all reads equal"},
		{Name: "bench_concurrency", To: &o.benchConcurrency, Default: 1, Least: 1, Most: 1 << 20, Help: "keep this `number` of benchmark requests in flight"},
		{Name: "version", To: &o.version, Help: "print the version and the commit of this program, and exit"},
	}, o.eventLoop.Settings())
}

// noFile refuses arguments, and says where a file of requests goes.
func noFile(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	switch arg := args[0]; arg {
	case "true", "false":
		return fmt.Errorf("argument %q stands alone: the value of a flag that is on or off follows =, as in --flag=%s", arg, arg)
	default:
		var names []string
		for _, c := range cmd.Commands() {
			names = append(names, c.Name())
		}
		if near, ok := errtext.NearestWithin(2, arg, names); ok {
			return fmt.Errorf("unknown command %q; did you mean rankd %s?", arg, near)
		}
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
	if err := errors.Join(cmdline.CheckExclusive(given, "plan", "plan_name"),
		cmdline.CheckExclusive(given, "list-plans", "print-plan-info", "print-registry", "load_demo_data", "bench", "bench_eventloop", "version")); err != nil {
		return err
	}
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }

	if err := cmdline.CheckValues(given); err != nil {
		problems = append(problems, err)
	}
	if err := o.ChooseEngine(given); err != nil {
		problems = append(problems, err)
	} else if err := o.checkEffect(given); err != nil {
		problems = append(problems, err)
	}
	problems = append(problems, o.Check(given, o.settings()))
	if o.bench != 0 && !given.Changed("coalesce_reads") {
		o.NoCoalesceReads = true // The benchmark has one user, who makes all reads equal.
	}
	if given.Changed("bench") && o.Plan == "" && o.PlanFile == "" {
		problem("--bench needs a plan: --plan_name or --plan")
	}
	if o.printPlanInfo && o.Plan == "" && o.PlanFile == "" {
		problem("--print-plan-info needs a plan: --plan_name or --plan")
	}
	if o.loadDemoData && !given.Changed("redis") {
		problem("--load_demo_data needs a Redis to write to: --redis host:port")
	}
	return errors.Join(problems...)
}

// quiet keeps cobra from writing anything but help.
func quiet(cmd *cobra.Command, stdout io.Writer) {
	cmd.SetOut(stdout)
	cmd.SetErr(io.Discard)
}
