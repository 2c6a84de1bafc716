package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/backend"
	"github.com/rankd/rankd/bench/compare"
	"github.com/rankd/rankd/bench/eventloop"
	"github.com/rankd/rankd/internal/cmdline"
)

// The modes of bench loop, in the order in which they run. --bench_eventloop has the first
// three.
const (
	modePosts        = "posts"
	modeTimers       = "timers"
	modeSleepVsPool  = "sleep_vs_pool"
	modeOffload      = "offload"
	modeInterference = "interference"
	modeAll          = "all"
)

// loopOptions are the flags of bench loop. Immutable once checked.
type loopOptions struct {
	modes      []string
	known      []string // the modes to choose from
	n          int
	producers  []int
	timerMS    float64
	tasks      int
	sleepMS    int
	cpuThreads int
	inFlight   []int
	payloads   []int
	workers    []int
	duration   time.Duration
	redis      string
	server     string
	asJSON     bool
}

func (p *Program) loopCommand(ctx context.Context) *cobra.Command {
	o := &loopOptions{known: []string{modePosts, modeTimers, modeSleepVsPool, modeOffload, modeInterference}}
	cmd := &cobra.Command{
		Use: "loop", Args: cobra.NoArgs,
		Short: "Measure the event loop: posts, timers, sleeping, offloading, interference",
		Long: `Measure the event loop by itself.

  posts          functions posted to the loop per second, by number of producers
  timers         timers started and fired per second, and how late they fire
  sleep_vs_pool  tasks that sleep: on the loop, against workers that block
  offload        loop to pool to loop, by the bytes that the work touches
  interference   how late posts, timers and replies are while the pool is busy, and the jobs done, by its size`,
		Example: "  rankd bench loop\n  rankd bench loop --mode interference --workers 1,2,4",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(cmdline.CheckValues(cmd.Flags()), o.check()); err != nil {
				return err
			}
			if err := o.checkEffect(cmd.Flags()); err != nil {
				return err
			}
			return p.benchLoop(ctx, o)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.modes, "mode", []string{modeAll}, "`modes` to run: "+strings.Join(o.known, ", ")+" or all")
	f.IntVar(&o.n, "n", 1_000_000, "`number` of posts, timers and offloaded jobs (of these a tenth)")
	f.IntSliceVar(&o.producers, "producers", []int{1, 2, 4}, "`numbers` of goroutines that post")
	f.Float64Var(&o.timerMS, "timer_ms", 1, "delay of each timer in `ms`")
	f.IntVar(&o.tasks, "tasks", 1000, "`number` of sleeping tasks")
	f.IntVar(&o.sleepMS, "sleep_ms", 10, "how long each sleeps, in `ms`")
	workers := engineRow("cpu_threads", &o.cpuThreads)
	workers.Help += ", except of interference"
	cmdline.AddSettings(f, []cmdline.Setting{workers})
	f.IntSliceVar(&o.inFlight, "in_flight", []int{1, 64}, "`numbers` of offloaded jobs in flight")
	f.IntSliceVar(&o.payloads, "payload", []int{0, 1 << 10, 64 << 10, 1 << 20}, "`bytes` that an offloaded job touches")
	cores := runtime.NumCPU()
	f.IntSliceVar(&o.workers, "workers", slices.Compact([]int{0, 1, cores, 2 * cores}), "`numbers` of busy workers of interference")
	f.DurationVar(&o.duration, "duration", 2*time.Second, "how `long` interference is measured, per number of workers")
	f.StringVar(&o.redis, "redis", "", "the Redis at this `address` (host:port or a URL, as in rankd --redis) that answers interference (default: one of its own)")
	cmdline.AddSettings(f, []cmdline.Setting{redisServerRow(&o.server), jsonRow(&o.asJSON, ", a line for each")})
	return cmd
}

// EventLoopFlags are flags of the root command. They run bench loop under the names of the
// original engine. One goroutine at a time.
type EventLoopFlags struct {
	Asked bool // --bench_eventloop is given

	mode                         string
	n, producers, sleepMS, tasks int
	asJSON                       bool
}

// Add declares the flags. They are hidden, since bench loop does the same.
func (e *EventLoopFlags) Add(f *pflag.FlagSet) {
	f.BoolVar(&e.Asked, "bench_eventloop", false, "measure the event loop (see also: rankd bench loop)")
	f.StringVar(&e.mode, "bench_eventloop_mode", modeAll, "`mode`: posts, timers, sleep_vs_pool or all")
	f.IntVar(&e.n, "bench_n", 1_000_000, "`number` of posts and of timers")
	f.IntVar(&e.producers, "bench_producers", 1, "`number` of goroutines that post")
	f.IntVar(&e.sleepMS, "bench_sleep_ms", 10, "how long a task sleeps, in `ms`")
	f.IntVar(&e.tasks, "bench_tasks", 1000, "`number` of sleeping tasks")
	f.BoolVar(&e.asJSON, "bench_json", false, "print the figures as JSON, a line for each mode")
	for _, name := range []string{"bench_eventloop", "bench_eventloop_mode", "bench_n", "bench_producers", "bench_sleep_ms",
		"bench_tasks", "bench_json"} {
		f.Lookup(name).Hidden = true
	}
}

// Check reports all that is wrong with the flags at once.
func (e *EventLoopFlags) Check(cpuThreads int) error { return e.options(cpuThreads).check() }

// options returns the same request as flags of bench loop.
func (e *EventLoopFlags) options(cpuThreads int) *loopOptions {
	return &loopOptions{
		modes: []string{e.mode}, known: []string{modePosts, modeTimers, modeSleepVsPool},
		n: e.n, producers: []int{e.producers}, timerMS: 1, tasks: e.tasks, sleepMS: e.sleepMS,
		cpuThreads: cpuThreads, duration: time.Second, asJSON: e.asJSON,
	}
}

// EventLoop runs the measurements that the flags ask for.
func (p *Program) EventLoop(ctx context.Context, e *EventLoopFlags, cpuThreads int) error {
	o := e.options(cpuThreads)
	if err := o.check(); err != nil {
		return err
	}
	return p.benchLoop(ctx, o)
}

// check reports all that is wrong at once, and completes the options.
func (o *loopOptions) check() error {
	var problems []error
	for _, m := range o.modes {
		if m != modeAll && !slices.Contains(o.known, m) {
			problems = append(problems, fmt.Errorf("the mode is %s or all, not %q", strings.Join(o.known, ", "), m))
		}
	}
	if slices.Contains(o.modes, modeAll) {
		o.modes = o.known
	}
	number := func(what string, least, most int, values ...int) {
		for _, v := range values {
			if v < least || v > most {
				problems = append(problems, fmt.Errorf("%s is from %d to %d, not %d", what, least, most, v))
			}
		}
	}
	if o.redis != "" {
		if _, err := rankd.RedisAddr(o.redis); err != nil {
			problems = append(problems, fmt.Errorf("--redis is host:port or a URL: %w", err))
		}
	}
	number("the number of posts and timers", 1, 1<<30, o.n)
	number("the number of producers", 1, 1<<10, o.producers...)
	number("the number of tasks", 1, 1<<20, o.tasks)
	number("the time to sleep in ms", 0, 60_000, o.sleepMS)
	number("the number of CPU workers", 1, 1<<10, o.cpuThreads)
	number("the number of jobs in flight", 1, 1<<16, o.inFlight...)
	number("a payload", 0, 1<<30, o.payloads...)
	number("the number of busy workers", 0, 1<<10, o.workers...)
	if !(o.timerMS >= 0 && o.timerMS <= 60_000) {
		problems = append(problems, fmt.Errorf("the delay of a timer is from 0 to 60000 ms, not %v", o.timerMS))
	}
	if o.duration <= 0 {
		problems = append(problems, errors.New("the duration is positive"))
	}
	return errors.Join(problems...)
}

// checkEffect reports each flag given that none of the modes reads. check has completed the
// modes before.
func (o *loopOptions) checkEffect(given *pflag.FlagSet) error {
	idle := cmdline.IdleFlags{Given: given}
	for _, flag := range []struct {
		name  string
		modes []string
	}{
		{"n", []string{modePosts, modeTimers, modeOffload}},
		{"producers", []string{modePosts}},
		{"timer_ms", []string{modeTimers}},
		{"tasks", []string{modeSleepVsPool}},
		{"sleep_ms", []string{modeSleepVsPool}},
		{"cpu_threads", []string{modePosts, modeTimers, modeSleepVsPool, modeOffload}},
		{"in_flight", []string{modeOffload}},
		{"payload", []string{modeOffload}},
		{"workers", []string{modeInterference}},
		{"duration", []string{modeInterference}},
		{"redis", []string{modeInterference}},
		{"redis_server", []string{modeInterference}},
	} {
		if !slices.ContainsFunc(o.modes, func(m string) bool { return slices.Contains(flag.modes, m) }) {
			idle.Add(flag.name, "without --mode "+strings.Join(flag.modes, " or "))
		}
	}
	if o.redis != "" {
		idle.Add("redis_server", "with --redis")
	}
	return idle.Problems()
}

// benchLoop runs the modes and prints the figures of each as soon as it ends.
func (p *Program) benchLoop(ctx context.Context, o *loopOptions) error {
	facts := compare.ReadFacts()
	fmt.Fprintf(p.Stderr, "rankd: %s, %d cores, %s, %s\n", facts.CPU, facts.Cores, facts.OS, facts.Go)
	for _, mode := range o.modes {
		results, err := p.runLoopMode(ctx, o, mode)
		if err != nil {
			return &cmdline.RuntimeError{Err: fmt.Errorf("%s: %w", mode, err)}
		}
		write := writeLoopText
		if o.asJSON {
			write = writeLoopJSON
		}
		if err := write(p.Stdout, mode, results); err != nil {
			return &cmdline.RuntimeError{Err: fmt.Errorf("writing the figures: %w", err)}
		}
	}
	return nil
}

func (p *Program) runLoopMode(ctx context.Context, o *loopOptions, mode string) (results []any, err error) {
	p.Tune(o.cpuThreads)
	add := func(r any, err error) error {
		if err == nil {
			results = append(results, r)
			err = ctx.Err()
		}
		return err
	}
	switch mode {
	case modePosts:
		for _, producers := range o.producers {
			if err := add(eventloop.Posts(o.n, producers)); err != nil {
				return nil, err
			}
		}
	case modeTimers:
		err = add(eventloop.Timers(o.n, time.Duration(o.timerMS*float64(time.Millisecond))))
	case modeSleepVsPool:
		err = add(eventloop.SleepVsPool(o.tasks, time.Duration(o.sleepMS)*time.Millisecond, o.cpuThreads))
	case modeOffload:
		for _, payload := range o.payloads {
			for _, inFlight := range o.inFlight {
				jobs := offloadJobs(o.n, payload)
				if err := add(eventloop.Offload(jobs, inFlight, o.cpuThreads, payload)); err != nil {
					return nil, err
				}
			}
		}
	case modeInterference:
		back, err := backend.Start(ctx, backend.Options{Addr: o.redis, Server: o.server})
		if err != nil {
			return nil, err
		}
		defer back.Close()
		if back.Embedded {
			fmt.Fprintf(p.Stderr, "rankd: %s\n", compare.EmbeddedWarning)
		}
		for _, workers := range o.workers {
			p.Tune(max(1, workers))
			if err := add(eventloop.Interference(workers, o.duration, back.Addr(0))); err != nil {
				return nil, err
			}
		}
	}
	return results, err
}

// offloadJobs returns how many jobs to run: a tenth of n, fewer if each has much to do.
func offloadJobs(n, payload int) int {
	const bytesMax = 2 << 30 // in all: a second or two
	jobs := n / 10
	if payload > 0 {
		jobs = int(min(int64(jobs), bytesMax/int64(payload)))
	}
	return max(1, jobs)
}

// writeLoopJSON prints one object per result: its mode and its fields.
func writeLoopJSON(w io.Writer, mode string, results []any) error {
	for _, r := range results {
		fields, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "{\"mode\":%q,%s\n", mode, fields[1:]); err != nil {
			return err
		}
	}
	return nil
}

// writeLoopText prints the results of a mode: the answer in one sentence, then a table.
func writeLoopText(w io.Writer, mode string, results []any) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%s: %s\n", mode, loopSentence(results))
	for _, r := range results {
		switch r := r.(type) {
		case *eventloop.PostsResult:
			fmt.Fprintf(table, "  %d posts\t%d producer(s)\t%.1f ms\t%.2f M/s\tRSS %d → %d KB\n",
				r.Total, r.Producers, r.WallMS, r.PerSecond/1e6, r.StartKB, r.EndKB)
		case *eventloop.TimersResult:
			fmt.Fprintf(table, "  %d timers\tof %g ms\t%.1f ms\t%.2f M/s\tlate: %v\tRSS %d → %d KB\n",
				r.Total, r.TimerMS, r.WallMS, r.PerSecond/1e6, r.Latency, r.StartKB, r.EndKB)
		case *eventloop.SleepResult:
			fmt.Fprintf(table, "  %d tasks of %g ms\ton the loop\t%.1f ms\t%v\n", r.Tasks, r.SleepMS, r.CoroWallMS, r.CoroLatency)
			fmt.Fprintf(table, "  \ton %d workers\t%.1f ms\t%v\n", r.Workers, r.PoolWallMS, r.PoolLatency)
			fmt.Fprintf(table, "  \tspeedup\t%.1f×\tRSS %d → %d KB\n", r.Speedup, r.StartKB, r.EndKB)
		case *eventloop.OffloadResult:
			fmt.Fprintf(table, "  %d bytes\t%d in flight\t%d workers\t%.0f jobs/s\t%v\n",
				r.PayloadBytes, r.InFlight, r.Workers, r.PerSecond, r.Latency)
		case *eventloop.InterferenceResult:
			fmt.Fprintf(table, "  %d busy workers\tpost\t%v\n", r.Workers, r.Post)
			fmt.Fprintf(table, "  \ttimer\t%v\n", r.Timer)
			fmt.Fprintf(table, "  \treply\t%v\t%s\n", r.Reply, r.Error)
			fmt.Fprintf(table, "  \tjobs\t%.0f/s\n", float64(r.Jobs)/r.DurationMS*1000)
		}
	}
	return table.Flush()
}
