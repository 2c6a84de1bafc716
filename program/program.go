package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/cli"
	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/cmdline"
	plancli "github.com/rankd/rankd/internal/command/compile"
	logcli "github.com/rankd/rankd/internal/command/log"
	recordcli "github.com/rankd/rankd/internal/command/record"
	registrycli "github.com/rankd/rankd/internal/command/registry"
	servecli "github.com/rankd/rankd/internal/command/serve"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/internal/version"
)

// The exit statuses.
const (
	exitOK     = 0
	exitFailed = 1 // a request failed
	exitUsage  = 2 // bad usage, or a bad plan
)

// How long the end waits for who reads diagnostics and traces, before it leaves them unread.
const (
	stderrPatience = 2 * time.Second
	tracesPatience = 10 * time.Second // what waits may be tens of megabytes
)

// program is rankd with its surroundings, so that tests can run it in process.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	tune           func(cpuThreads int) // sets the process up before an engine is opened
	name, version  string               // of the program; an empty version is what the build recorded
	own            rankd.Options        // what the program brings: tasks, and folders where no flag names one
	plans          *compiler.ForEngine  // set by run
}

// run runs the program and returns its exit status. When ctx ends, run stops reading, answers
// the requests in flight and returns. Requests that outlast the grace are answered with a
// failure. A read of stdin that blocks is left behind. Output that cannot be written is a
// failure of every job. Diagnostics never hold up the work: a goroutine writes them to stderr.
func (p *program) run(ctx context.Context, args []string) int {
	p.name = cmp.Or(p.name, "rankd")
	stderr := fileio.NewWriter(p.stderr)
	p.stderr = stderr
	defer func() {
		patience, cancel := context.WithTimeout(context.Background(), stderrPatience)
		defer cancel()
		_ = stderr.Close(patience) // Nobody is left to tell.
	}()
	stdout := &watchedWriter{w: p.stdout}
	p.stdout = stdout
	p.plans = &compiler.ForEngine{Report: p.warn}
	p.own.Compiler = p.plans
	defer p.plans.Close()
	bench := &cli.Program{Stdin: p.stdin, Stdout: p.stdout, Stderr: p.stderr, Tune: p.tune,
		CommandLine: p.commandLine(args), Own: p.own}
	o := options{EngineFlags: cmdline.EngineFlags{Options: p.own}}
	cmd := newCommand(&o, func(*cobra.Command) error { return p.dispatch(ctx, &o, bench) })
	server := &servecli.Program{Stdout: p.stdout, Stderr: stderr, Tune: p.tune, Own: p.own}
	cmd.AddCommand(server.Command(ctx), server.ReloadCommand(ctx, p.stdout), p.runCommand(ctx, bench), p.traceCommand(ctx), p.explainCommand(ctx), p.evalCommand(ctx), p.batchCommand(ctx), p.replayCommand(ctx), p.testCommand(ctx), bench.Command(ctx))
	cmd.AddCommand((&plancli.Program{Stdout: p.stdout, Stderr: p.stderr, Own: p.own}).Commands(ctx)...)
	cmd.AddCommand((&registrycli.Program{Stdout: p.stdout}).Command(ctx))
	cmd.AddCommand((&logcli.Program{Stdout: p.stdout, Stderr: p.stderr}).Command(ctx))
	cmd.AddCommand((&recordcli.Program{Stdout: p.stdout, Stderr: p.stderr}).Command())
	cmd.AddCommand(p.tasksCommand())
	cmd.PersistentPreRunE = p.readProject
	cmd.Use = p.name + strings.TrimPrefix(cmd.Use, "rankd")
	quiet(cmd, p.stdout)
	cmd.SetArgs(append([]string{}, args...)) // cobra would take nil for the arguments of the process
	err := cmd.Execute()
	if failure := stdout.failure; failure != nil && !errors.As(err, new(*cmdline.RuntimeError)) {
		// Help reports no error, and a plain one would stand for bad usage.
		err = &cmdline.RuntimeError{Err: fmt.Errorf("writing to stdout: %w", failure)}
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = &cmdline.RuntimeError{Err: errors.New("interrupted")}
	}
	if err == nil {
		return exitOK
	}
	if errors.Is(err, cmdline.ErrFailed) {
		return exitFailed
	}
	if errors.Is(err, cmdline.ErrReported) {
		return exitUsage
	}
	p.explain(err, args)
	var runtime *cmdline.RuntimeError
	if errors.As(err, &runtime) {
		return exitFailed
	}
	return exitUsage
}

// readProject gives flags the values of the project's file, which is found upward from the plan or else from the working directory. Jobs
// without a registry have no use for it, and neither have benchmarks without a plan of the user's.
func (p *program) readProject(cmd *cobra.Command, args []string) error {
	given := cmd.Flags()
	changed := func(flag string) bool { return given.Changed(flag) }
	if given.Lookup("registry_dir") == nil || cmd.Name() == "worker" ||
		slices.ContainsFunc([]string{"version", "load_demo_data", "bench_eventloop", "scenario"}, changed) {
		return nil
	}
	starts := []string{"."}
	if plan := given.Lookup("plan"); plan != nil && plan.Changed {
		if several, ok := plan.Value.(pflag.SliceValue); ok {
			args = append(args, several.GetSlice()...)
		} else {
			args = append(args, plan.Value.String())
		}
	}
	if len(args) > 0 {
		starts = []string{filepath.Dir(args[0]), "."}
	}
	for _, start := range starts {
		project, err := cmdline.FindProject(start)
		if err != nil {
			return err
		}
		if project == nil {
			continue
		}
		if cmd.Name() != "init" { // which writes the tables if they are not there
			if err := project.CheckFolders(); err != nil {
				return err
			}
		}
		var leave []string
		if parent := cmd.Parent(); parent != nil && parent.Name() == "bench" {
			leave = []string{"redis"} // A benchmark has a Redis of its own, unless the command line names one.
		}
		if err := project.Apply(given, leave...); err != nil {
			return err
		}
		if cmd.Name() == "check" {
			fmt.Fprintf(p.stderr, "rankd: %s\n", project)
		}
		return nil
	}
	return nil
}

// explain prints an error. It prints the diagnostics of a plan with their excerpts, and each line of
// other errors after the name of the program.
func (p *program) explain(err error, args []string) {
	var refused *compiler.Failure
	switch joined, several := err.(interface{ Unwrap() []error }); {
	case several:
		for _, e := range joined.Unwrap() {
			p.explain(e, args)
		}
	case errors.As(err, &refused):
		fmt.Fprint(p.stderr, refused.Text())
	default:
		for line := range strings.SplitSeq(shorten(err.Error(), args), "\n") {
			fmt.Fprintf(p.stderr, "rankd: %s\n", line)
		}
	}
}

// warn prints the warnings of a plan.
func (p *program) warn(r compiler.Result) {
	for i := range r.Warnings {
		fmt.Fprintln(p.stderr, r.Warnings[i].String())
	}
}

// commandLine returns the command line as reports show it, without passwords.
func (p *program) commandLine(args []string) string {
	line := p.name
	for _, arg := range args {
		line += " " + cmdline.HidePassword(arg)
	}
	return line
}

// shorten returns the message with each argument that it quotes made short, printable and free of
// passwords, also where a library or the file system quotes it.
func shorten(message string, args []string) string {
	for _, arg := range args {
		_, value, _ := strings.Cut(arg, "=")
		for _, s := range [...]string{arg, strings.TrimLeft(arg, "-"), value} {
			public := cmdline.HidePassword(s)
			short := errtext.Text(public)
			if short == s {
				continue
			}
			message = strings.ReplaceAll(message, s, short)
			if quoted := strconv.Quote(s); len(s) > errtext.Limit || public != s {
				message = strings.ReplaceAll(message, quoted[1:len(quoted)-1], short)
			}
			if public != s {
				message = strings.ReplaceAll(message, errtext.Text(s), short)
				message = strings.ReplaceAll(message, errtext.Quote(s), short)
			}
		}
	}
	return cmdline.HidePasswords(message)
}

// dispatch does the job that the flags ask for.
func (p *program) dispatch(ctx context.Context, o *options, bench *cli.Program) (failure error) {
	asked := o.job()
	switch asked {
	case jobBenchLoop:
		return bench.EventLoop(ctx, &o.eventLoop, o.CPUThreads)
	case jobLoadDemoData:
		return p.loadDemoData(ctx, o.Redis)
	case jobVersion:
		_, err := fmt.Fprintln(p.stdout, p.name, cmp.Or(p.version, version.Read().String()))
		return err
	case jobServe, jobBench:
		p.tune(o.CPUThreads)
	}
	traces, err := o.OpenTraceFile(nil) // The end reports an error.
	if err != nil {
		return err
	}
	redis := new(cmdline.EmbeddedRedis)
	defer redis.Close()
	e, closeServed, err := openLogged(o, setting{stderr: p.stderr, plans: p.plans, redis: redis, sink: traces.Sink()})
	if err != nil {
		return errors.Join(err, p.closeTraces(traces))
	}
	defer func() {
		failure = errors.Join(failure, closeServed(), p.closeTraces(traces)) // after the engine has closed nothing is recorded
	}()
	switch asked {
	case jobListPlans:
		return listPlans(e, p.stdout)
	case jobPrintPlan:
		return printPlanInfo(e, p.stdout)
	case jobPrintRegistry:
		return e.Registry().WriteText(p.stdout)
	}
	defer shutDownAfter(ctx, e, o)()
	if o.metrics {
		defer func() { // whatever came of the requests
			_ = e.Close() // abandoned work counts when it ends
			m := e.Metrics()
			_ = printMetrics(p.stderr, o.Scheduling.Mode, e.Registry(), &m) // fails only if stderr does
		}()
	}
	if asked == jobServe {
		return serve(ctx, e, o, p.stdin, p.stdout, p.stderr)
	}
	info, err := e.PlanInfo("")
	if err != nil {
		return err
	}
	return bench.Bench(ctx, e, cli.Bench{
		Requests: o.bench, Concurrency: o.benchConcurrency, Plan: info.Name, Model: o.Model, CPUThreads: o.CPUThreads,
		CoalesceReads: !o.NoCoalesceReads && o.Model == rankd.Reactor,
	})
}

// closeTraces closes the file of --trace_file. It reports on stderr how many traces came too fast for the file.
func (p *program) closeTraces(traces *cmdline.TraceFile) error {
	dropped, err := traces.Close(tracesPatience)
	if dropped > 0 {
		fmt.Fprintf(p.stderr, "rankd: --trace_file: %d traces were dropped, since they came faster than they could be written\n", dropped)
	}
	return err
}

// watchedWriter remembers its first failure. One goroutine at a time.
type watchedWriter struct {
	w       io.Writer
	failure error
}

func (w *watchedWriter) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	if err != nil && w.failure == nil {
		w.failure = err
	}
	return n, err
}

// loadDemoData fills the Redis that --redis names.
func (p *program) loadDemoData(ctx context.Context, redis string) error {
	if _, err := rankd.RedisAddr(redis); err != nil {
		return err
	}
	var addr string
	err := devredis.Load(ctx, redis)
	if err == nil {
		addr, err = devredis.Where(ctx, redis)
	}
	if err != nil {
		return &cmdline.RuntimeError{Err: err}
	}
	fmt.Fprintf(p.stderr, "rankd: wrote demo data of %d users to %s\n", devredis.Users, addr)
	return nil
}
