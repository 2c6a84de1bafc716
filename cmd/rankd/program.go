package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/excerpt"
	"github.com/rankd/rankd/internal/version"
)

// The exit statuses.
const (
	exitOK     = 0
	exitFailed = 1 // a request failed
	exitUsage  = 2 // bad usage, or a bad plan
)

// errFailed says that some request failed, which its answer has told already.
var errFailed = errors.New("a request failed")

// program is rankd with its surroundings, so that tests can run it in process.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	tune           func(cpuThreads int) // sets the process up before an engine is opened

	commandLine string // that reports quote; set by run
}

// run runs the program and returns its exit status. When ctx ends it stops reading,
// answers what is in flight, within the grace by what it is and then by a failure, and
// returns; a read of stdin that blocks is left behind. Whatever the job, output that cannot
// be written is a failure.
func (p *program) run(ctx context.Context, args []string) int {
	p.stderr = &lockedWriter{w: p.stderr}
	stdout := &watchedWriter{w: p.stdout}
	p.stdout = stdout
	var o options
	cmd := newCommand(&o, func(*cobra.Command) error { return p.dispatch(ctx, &o) })
	cmd.AddCommand(p.benchCommand(ctx))
	quiet(cmd, p.stdout)
	cmd.SetArgs(append([]string{}, args...)) // cobra would take nil for the arguments of the process
	p.commandLine = strings.Join(append([]string{"rankd"}, args...), " ")
	err := cmd.Execute()
	if failure := stdout.failure; failure != nil && !errors.As(err, new(*runtimeError)) {
		// Help reports no error, and a plain one would stand for bad usage.
		err = &runtimeError{fmt.Errorf("writing to stdout: %w", failure)}
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = &runtimeError{errors.New("interrupted")}
	}
	if err == nil {
		return exitOK
	}
	if errors.Is(err, errFailed) {
		return exitFailed
	}
	for line := range strings.SplitSeq(shorten(err.Error(), args), "\n") {
		fmt.Fprintf(p.stderr, "rankd: %s\n", line)
	}
	var runtime *runtimeError
	if errors.As(err, &runtime) {
		return exitFailed
	}
	return exitUsage
}

// shorten returns the message with each argument that it quotes made short and
// printable, also where a library or the file system quotes it.
func shorten(message string, args []string) string {
	for _, arg := range args {
		_, value, _ := strings.Cut(arg, "=")
		for _, s := range [...]string{arg, strings.TrimLeft(arg, "-"), value} {
			short := excerpt.Text(s)
			if short == s {
				continue
			}
			message = strings.ReplaceAll(message, s, short)
			if quoted := strconv.Quote(s); len(s) > excerpt.Limit {
				message = strings.ReplaceAll(message, quoted[1:len(quoted)-1], short)
			}
		}
	}
	return message
}

// runtimeError is a failure that is no fault of the command line: output that
// cannot be written, say.
type runtimeError struct{ err error }

func (e *runtimeError) Error() string { return e.err.Error() }
func (e *runtimeError) Unwrap() error { return e.err }

func (p *program) dispatch(ctx context.Context, o *options) error {
	asked := o.job()
	switch asked {
	case jobBenchLoop:
		return p.benchEventLoop(ctx, o)
	case jobLoadDemoData:
		return p.loadDemoData(ctx, o.redis)
	case jobVersion:
		_, err := fmt.Fprintln(p.stdout, "rankd", version.Read())
		return err
	}
	a, err := newApp(o)
	if err != nil {
		return err
	}
	switch asked {
	case jobListPlans:
		return a.listPlans(p.stdout)
	case jobPrintPlan:
		return a.printPlanInfo(p.stdout)
	case jobPrintRegistry:
		return a.reg.WriteText(p.stdout)
	}
	if asked == jobServe && a.synthetic() {
		fmt.Fprintln(p.stderr, "rankd: no plan is chosen (--plan_name, --plan or --plan_dir): "+
			"a request that names none gets five synthetic candidates")
	}
	p.tune(o.cpuThreads)
	if err := a.open(p.stderr); err != nil {
		return err
	}
	defer a.close()
	defer a.closeAfter(ctx)()
	if asked == jobBench {
		return a.bench(ctx, p.stdout, p.stderr)
	}
	return a.serve(ctx, p.stdin, p.stdout)
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

// loadDemoData fills the Redis at addr, "host:port".
func (p *program) loadDemoData(ctx context.Context, addr string) error {
	if err := devredis.Load(ctx, addr); err != nil {
		return &runtimeError{err}
	}
	fmt.Fprintf(p.stderr, "rankd: wrote demo data of %d users to %s\n", devredis.Users, addr)
	return nil
}

// lockedWriter lets several goroutines write whole messages. Any goroutine.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
