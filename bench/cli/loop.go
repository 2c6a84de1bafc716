package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rankd/rankd/bench/harness"
	"github.com/rankd/rankd/bench/internal/eventloop"
	"github.com/rankd/rankd/internal/cmdline"
)

// loopOptions are the flags of bench loop. Immutable once checked.
type loopOptions struct {
	modes      []string
	known      []loopMode // the modes to choose from
	n          int
	producers  []int
	timerMS    float64
	tasks      int
	sleepMS    int
	cpuThreads int
	asJSON     bool
}

// loopMode is a measurement of the event loop by itself. It has no rounds, and its figures are those of the original engine: so it is no
// experiment of package harness. Immutable.
type loopMode struct {
	name, doc string
	flags     []string // that it reads
	// run measures, and gives each result to add.
	run func(o *loopOptions, add func(result any, err error) error) error
	// answer says in one sentence what the results are. There is at least one.
	answer func(results []any) string
}

const allModes = "all"

// The ranges of flags that --bench_eventloop has, too.
const (
	postsMax     = 1 << 30
	producersMax = 1 << 10
	tasksMax     = 1 << 20
	delayMax     = 60_000 // ms
)

// loopModes returns the modes, in the order in which they run.
func loopModes() []loopMode {
	return []loopMode{
		{
			name: "posts", doc: "functions posted to the loop per second, by number of producers", flags: []string{"n", "producers", "cpu_threads"},
			run: func(o *loopOptions, add func(any, error) error) error {
				return each(o.producers, func(producers int) error { return add(eventloop.Posts(o.n, producers)) })
			},
			answer: func(results []any) string {
				return "The loop runs " + bestAndWorst(results,
					func(r *eventloop.PostsResult) float64 { return r.PerSecond },
					func(r *eventloop.PostsResult) string {
						return fmt.Sprintf("%.2f M posts/s from %d producer(s)", r.PerSecond/1e6, r.Producers)
					})
			},
		},
		{
			name: "timers", doc: "timers started and fired per second, and how late they fire", flags: []string{"n", "timer_ms", "cpu_threads"},
			run: func(o *loopOptions, add func(any, error) error) error {
				return add(eventloop.Timers(o.n, time.Duration(o.timerMS*float64(time.Millisecond))))
			},
			answer: func(results []any) string {
				r := results[0].(*eventloop.TimersResult)
				return fmt.Sprintf("The loop fires %.2f M timers/s, 99 %% of them at most %v late.", r.PerSecond/1e6, harness.Micros(r.Latency.P99))
			},
		},
		{
			name: "sleep_vs_pool", doc: "tasks that sleep: on the loop, against workers that block", flags: []string{"tasks", "sleep_ms", "cpu_threads"},
			run: func(o *loopOptions, add func(any, error) error) error {
				return add(eventloop.SleepVsPool(o.tasks, time.Duration(o.sleepMS)*time.Millisecond, o.cpuThreads))
			},
			answer: func(results []any) string {
				r := results[0].(*eventloop.SleepResult)
				return fmt.Sprintf("The loop ends %d sleeping tasks %.1f× as fast as %d blocked workers.", r.Tasks, r.Speedup, r.Workers)
			},
		},
	}
}

// each calls run with all values, until one fails.
func each(values []int, run func(int) error) error {
	for _, v := range values {
		if err := run(v); err != nil {
			return err
		}
	}
	return nil
}

// bestAndWorst names the results with the largest and the smallest figure, or the only result.
func bestAndWorst[R any](results []any, figure func(*R) float64, text func(*R) string) string {
	byFigure := func(a, b any) int { return cmp.Compare(figure(a.(*R)), figure(b.(*R))) }
	best := text(slices.MaxFunc(results, byFigure).(*R))
	if len(results) == 1 {
		return best + "."
	}
	return best + " at best, and " + text(slices.MinFunc(results, byFigure).(*R)) + " at worst."
}

func (p *Program) loopCommand(ctx context.Context) *cobra.Command {
	o := &loopOptions{known: loopModes()}
	_, long := describe("Measure the event loop by itself.\n", o.known, func(m loopMode) (string, string) { return m.name, m.doc })
	cmd := &cobra.Command{
		Use: "loop", Args: cobra.NoArgs, Long: long,
		Short:   "Measure the event loop: posts, timers, sleeping",
		Example: "  rankd bench loop\n  rankd bench loop --mode posts --producers 1,2,4",
	}
	rows := o.rows()
	cmdline.AddSettings(cmd.Flags(), rows)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		given := cmd.Flags()
		if err := errors.Join(cmdline.CheckValues(given), cmdline.CheckSettings(given, rows), o.check()); err != nil {
			return err
		}
		idle := cmdline.IdleFlags{Given: given}
		idle.AddSettings(rows)
		if err := idle.Problems(); err != nil {
			return err
		}
		return p.benchLoop(ctx, o)
	}
	return cmd
}

// rows are the flags of bench loop.
func (o *loopOptions) rows() []cmdline.Setting {
	rows := []cmdline.Setting{
		{Name: "mode", To: &o.modes, Default: []string{allModes}, OneOf: append(o.names(), allModes), Help: "`modes` to run: " + strings.Join(o.names(), ", ") + " or all"},
		{Name: "n", To: &o.n, Default: 1_000_000, Least: 1, Most: postsMax, Help: "`number` of posts and of timers"},
		{Name: "producers", To: &o.producers, Default: []int{1, 2, 4}, Least: 1, Most: producersMax, Help: "`numbers` of goroutines that post"},
		{Name: "timer_ms", To: &o.timerMS, Default: 1.0, Help: "delay of each timer in `ms`"},
		{Name: "tasks", To: &o.tasks, Default: 1000, Least: 1, Most: tasksMax, Help: "`number` of sleeping tasks"},
		{Name: "sleep_ms", To: &o.sleepMS, Default: 10, Most: delayMax, Help: "how long each sleeps, in `ms`"},
		engineRow("cpu_threads", &o.cpuThreads),
		{Name: "json", To: &o.asJSON, Help: "print the figures as JSON, a line for each"},
	}
	for i, row := range rows {
		rows[i].Idle = func() string { return o.idle(row.Name) }
	}
	return rows
}

// idle says why none of the modes reads a flag, or nothing if one does.
func (o *loopOptions) idle(flag string) string {
	var readers []string
	for _, m := range o.known {
		if slices.Contains(m.flags, flag) {
			readers = append(readers, m.name)
		}
	}
	if len(readers) == 0 || slices.ContainsFunc(o.modes, func(m string) bool { return slices.Contains(readers, m) }) {
		return ""
	}
	return "without --mode " + strings.Join(readers, " or ")
}

// EventLoopFlags are flags of the root command. They run bench loop under the names of the
// original engine. One goroutine at a time.
type EventLoopFlags struct {
	Asked bool // --bench_eventloop is given

	mode                         string
	n, producers, sleepMS, tasks int
	asJSON                       bool
}

// Settings are the flags. They are hidden, since bench loop does the same.
func (e *EventLoopFlags) Settings() []cmdline.Setting {
	rows := []cmdline.Setting{
		{Name: "bench_eventloop", To: &e.Asked, Help: "measure the event loop (see also: rankd bench loop)"},
		{Name: "bench_eventloop_mode", To: &e.mode, Default: allModes, OneOf: append(e.options(0).names(), allModes), Help: "`mode`: posts, timers, sleep_vs_pool or all"},
		{Name: "bench_n", To: &e.n, Default: 1_000_000, Least: 1, Most: postsMax, Help: "`number` of posts and of timers"},
		{Name: "bench_producers", To: &e.producers, Default: 1, Least: 1, Most: producersMax, Help: "`number` of goroutines that post"},
		{Name: "bench_sleep_ms", To: &e.sleepMS, Default: 10, Most: delayMax, Help: "how long a task sleeps, in `ms`"},
		{Name: "bench_tasks", To: &e.tasks, Default: 1000, Least: 1, Most: tasksMax, Help: "`number` of sleeping tasks"},
		{Name: "bench_json", To: &e.asJSON, Help: "print the figures as JSON, a line for each mode"},
	}
	for i := range rows {
		rows[i].Hidden = true
	}
	return rows
}

// options returns the same request as flags of bench loop.
func (e *EventLoopFlags) options(cpuThreads int) *loopOptions {
	return &loopOptions{
		modes: []string{e.mode}, known: loopModes(),
		n: e.n, producers: []int{e.producers}, timerMS: 1, tasks: e.tasks, sleepMS: e.sleepMS,
		cpuThreads: cpuThreads, asJSON: e.asJSON,
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

// names returns the names of the modes to choose from.
func (o *loopOptions) names() (names []string) {
	for _, m := range o.known {
		names = append(names, m.name)
	}
	return names
}

// check reports what no row can tell is wrong, and completes the options.
func (o *loopOptions) check() error {
	if slices.Contains(o.modes, allModes) {
		o.modes = o.names()
	}
	if !(o.timerMS >= 0 && o.timerMS <= delayMax) {
		return fmt.Errorf("--timer_ms is a number from 0 to %d, not %v", delayMax, o.timerMS)
	}
	return nil
}

// benchLoop runs the modes and prints the figures of each as soon as it ends.
func (p *Program) benchLoop(ctx context.Context, o *loopOptions) error {
	facts := harness.ReadFacts()
	fmt.Fprintf(p.Stderr, "rankd: %s, %d cores, %s, %s\n", facts.CPU, facts.Cores, facts.OS, facts.Go)
	for _, name := range o.modes {
		m := o.known[slices.Index(o.names(), name)]
		results, err := p.runLoopMode(ctx, o, m)
		if err != nil {
			return &cmdline.RuntimeError{Err: fmt.Errorf("%s: %w", m.name, err)}
		}
		write := writeLoopText
		if o.asJSON {
			write = writeLoopJSON
		}
		if err := write(p.Stdout, m, results); err != nil {
			return &cmdline.RuntimeError{Err: fmt.Errorf("writing the figures: %w", err)}
		}
	}
	return nil
}

func (p *Program) runLoopMode(ctx context.Context, o *loopOptions, m loopMode) (results []any, err error) {
	p.Tune(o.cpuThreads)
	err = m.run(o, func(r any, err error) error {
		if err == nil {
			results = append(results, r)
			err = ctx.Err()
		}
		return err
	})
	return results, err
}

// writeLoopJSON prints one object per result: its mode and its fields.
func writeLoopJSON(w io.Writer, m loopMode, results []any) error {
	for _, r := range results {
		fields, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "{\"mode\":%q,%s\n", m.name, fields[1:]); err != nil {
			return err
		}
	}
	return nil
}

// writeLoopText prints the results of a mode: the answer in one sentence, then a table.
func writeLoopText(w io.Writer, m loopMode, results []any) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%s: %s\n", m.name, m.answer(results))
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
		}
	}
	return table.Flush()
}
