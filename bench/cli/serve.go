package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/caller"
	"github.com/rankd/rankd/bench/fronts"
	"github.com/rankd/rankd/internal/cmdline"
)

// serveOptions are the flags of bench serve. Immutable once checked.
type serveOptions struct {
	planName, planDir string
	fronts, clients   []string
	redisServer       string
	program           string
	connections       int
	cpuThreads        int
	rounds            int
	duration, warmup  time.Duration
	asJSON            bool
}

// The bounds of the callers that are judged: µs over the engine in process.
var frontBounds = map[string]fronts.Caller{
	caller.RESP: {Name: caller.RESP, CPU: 2.5, P50: 60},
	caller.HTTP: {Name: caller.HTTP, CPU: 6, P50: 90},
}

const serveLong = `Measure what the fronts of "rankd serve" cost over the engine in process. The command starts
"rankd serve" and calls its fronts, and it runs the same plan on an engine in a process that asks
itself. In each round all take turns, with 64 requests in flight and with one.

The clients of this program call from a process of their own: RESP with pipelined commands on a
few connections, HTTP on a keep-alive connection for each request in flight. Beside them run
redis-benchmark, wrk and ab where they are installed. CPU time is what the serving process used, by
its processor clock. All requests are for user 1, and no equal reads are shared.`

func (p *Program) serveCommand(ctx context.Context) *cobra.Command {
	var o serveOptions
	var check func() error
	cmd := &cobra.Command{
		Use: "serve", Args: cobra.NoArgs, Long: serveLong,
		Short:   "Measure what the fronts of rankd serve cost",
		Example: "  rankd bench serve\n  rankd bench serve --fronts resp --clients redis-benchmark --duration 5s",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(check(), o.check(cmd.Flags().Changed("clients"))); err != nil {
				return err
			}
			return p.benchServe(ctx, &o)
		},
	}
	plan := engineRow("plan_name", &o.planName)
	plan.Default = "concat_plan"
	check = addRows(cmd,
		plan,
		engineRow("plan_dir", &o.planDir),
		frontsRow(&o.fronts),
		cmdline.Setting{Name: "clients", To: &o.clients, Default: foreignPrograms(), Help: "`programs` to call them with, beside this program's own clients (default: those installed)"},
		cmdline.Setting{Name: "connections", To: &o.connections, Default: 4, Least: 1, Most: fronts.Many, Help: "`number` of pipelined connections of the RESP client"},
		roundsRow(&o.rounds, 6),
		cmdline.Setting{Name: "duration", To: &o.duration, Default: 2 * time.Second, Least: 1, Most: int64(time.Hour), Help: "how `long` a caller is measured in a round, for either number in flight"},
		cmdline.Setting{Name: "warmup", To: &o.warmup, Default: 300 * time.Millisecond, Most: int64(time.Hour), Help: "how `long` a caller of this program warms up before"},
		engineRow("cpu_threads", &o.cpuThreads),
		redisServerRow(&o.redisServer),
		programRow(&o.program),
		jsonRow(&o.asJSON, ", a line for each caller, then a line for each aim"),
	)
	return cmd
}

// foreignPrograms returns the names of the programs of foreign clients, each once.
func foreignPrograms() (names []string) {
	for _, f := range fronts.Foreigners() {
		names = append(names, f.Program)
	}
	return slices.Compact(names)
}

// check reports all that is wrong with the flags at once, and completes them. Clients that the user has not named need not
// be installed.
func (o *serveOptions) check(clientsGiven bool) error {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	var installed []string
	for _, name := range o.clients {
		_, err := exec.LookPath(name)
		switch {
		case !slices.Contains(foreignPrograms(), name):
			problem("--clients is one of %s, not %q", strings.Join(foreignPrograms(), ", "), name)
		case err == nil:
			installed = append(installed, name)
		case clientsGiven:
			problem("--clients: %w", err)
		}
	}
	o.clients = installed
	return errors.Join(problems...)
}

// benchServe measures the fronts and prints their figures.
func (p *Program) benchServe(ctx context.Context, o *serveOptions) error {
	engine := rankd.Options{Env: "dev", Model: rankd.Sequential, Plan: o.planName, Compiler: p.Compiler}
	if err := cmdline.Folders(&engine, o.planDir, "", ""); err != nil {
		return err
	}
	name, artifact, err := soundPlan(engine, nil)
	if err != nil {
		return err
	}
	callers, results, facts, err := p.measureServe(ctx, o, name, string(artifact))
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err() // a process was stopped; its own error is not the reason
		}
		return &cmdline.RuntimeError{Err: err}
	}
	if o.asJSON {
		lines := json.NewEncoder(p.Stdout)
		for _, r := range results {
			err = errors.Join(err, lines.Encode(r))
		}
		for _, v := range fronts.Verdicts(callers, results) {
			err = errors.Join(err, lines.Encode(v))
		}
	} else {
		head := fmt.Sprintf("%s, %d cores, %s, %s, %s, rankd %s, commit %s\n"+
			"plan %s for user %d, equal reads not shared, %d CPU workers, %d interleaved rounds of %v; medians, differences within each round",
			facts.CPU, facts.Cores, facts.OS, facts.Go, facts.Redis, facts.Version, facts.Commit, name, benchUser, o.cpuThreads, o.rounds, o.duration)
		err = fronts.WriteText(p.Stdout, head, callers, results)
	}
	if err != nil {
		return &cmdline.RuntimeError{Err: fmt.Errorf("writing the figures: %w", err)}
	}
	return nil
}
