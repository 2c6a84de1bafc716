package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/compare"
	"github.com/rankd/rankd/bench/placement"
	"github.com/rankd/rankd/bench/worker"
	"github.com/rankd/rankd/internal/command"
)

// placementOptions are the flags of bench placement. Immutable once checked.
type placementOptions struct {
	scenarios []string
	writeTo   string
	base      string
	cores     []int // virtual
	asJSON    bool
	fleet
	placement.Settings
}

func (p *Program) placementCommand(ctx context.Context) *cobra.Command {
	var o placementOptions
	var names []string
	var long strings.Builder
	long.WriteString("Measure where nodes should run: each scenario with --scheduling offload_all, with adaptive,\n" +
		"with adaptive that runs nothing inline, and with inline_all, in interleaved rounds, each in a process of its own.\n" +
		"It judges each aim: met, not met, or not decided if the interval contains the bound.\n" +
		"With --virtual_cores it runs dag_50 and dag_500 in virtual time instead, on so many cores that nobody else uses.\n")
	for _, s := range placement.Scenarios() {
		names = append(names, s.Name)
		fmt.Fprintf(&long, "\n  %-10s  %s", s.Name, s.Doc)
	}
	cmd := &cobra.Command{
		Use: "placement", Args: cobra.NoArgs, Long: long.String(),
		Short:   "Compare the scheduling modes on cheap, heavy and waiting nodes",
		Example: "  rankd bench placement\n  rankd bench placement --scenario five_nodes,mix --duration 5s",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(command.CheckValues(cmd.Flags()), o.check(names)); err != nil {
				return err
			}
			if o.cores != nil {
				idle := command.IdleFlags{Given: cmd.Flags()}
				for _, flag := range []string{"rounds", "warmup", "cpu_threads", "base", "write_plans"} {
					idle.Add(flag, "with --virtual_cores")
				}
				if err := idle.Problems(); err != nil {
					return err
				}
				return p.simulatePlacement(&o)
			}
			if o.writeTo != "" {
				idle := command.IdleFlags{Given: cmd.Flags()}
				for _, flag := range []string{"rounds", "duration", "warmup", "cpu_threads", "base", "json"} {
					idle.Add(flag, "with --write_plans")
				}
				if err := idle.Problems(); err != nil {
					return err
				}
				return o.writePlans()
			}
			return p.benchPlacement(ctx, &o)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.scenarios, "scenario", names, "`scenarios` to run")
	f.IntVar(&o.Rounds, "rounds", 6, "`number` of rounds; fewer than six give no interval")
	f.DurationVar(&o.Duration, "duration", time.Second, "how `long` a round measures")
	f.DurationVar(&o.Warmup, "warmup", 300*time.Millisecond, "how `long` a round warms up first")
	f.IntVar(&o.cpuThreads, "cpu_threads", rankd.DefaultCPUThreads(), "`number` of workers for CPU work")
	f.StringVar(&o.base, "base", "", "measure the reactor of this `program`, too, another build of rankd, where a scenario has one plan")
	f.StringVar(&o.writeTo, "write_plans", "", "write the plans of the scenarios into this `folder`, for rankd bench compare --plan, and exit")
	f.IntSliceVar(&o.cores, "virtual_cores", nil, "run the scenarios of random plans in virtual time instead, on machines of so many `cores`, --duration of it each")
	f.BoolVar(&o.asJSON, "json", false, "print the figures as JSON, a line for each scenario and variant, then a line for each aim")
	return cmd
}

// check reports all that is wrong with the flags at once.
func (o *placementOptions) check(known []string) error {
	var problems []error
	for _, name := range o.scenarios {
		if !slices.Contains(known, name) {
			problems = append(problems, fmt.Errorf("--scenario is one of %s, not %q", strings.Join(known, ", "), name))
		}
	}
	if o.Rounds < 1 || o.Rounds > 1000 {
		problems = append(problems, fmt.Errorf("--rounds is a number from 1 to 1000, not %d", o.Rounds))
	}
	if o.Duration <= 0 {
		problems = append(problems, fmt.Errorf("--duration is positive, not %v", o.Duration))
	}
	if o.Warmup <= 0 {
		problems = append(problems, fmt.Errorf("--warmup is positive, not %v", o.Warmup))
	}
	if o.cpuThreads < 1 || o.cpuThreads > 1<<10 {
		problems = append(problems, fmt.Errorf("--cpu_threads is a number from 1 to %d, not %d", 1<<10, o.cpuThreads))
	}
	for _, cores := range o.cores {
		if cores < 1 || cores > 1<<10 {
			problems = append(problems, fmt.Errorf("--virtual_cores are numbers from 1 to %d, not %d", 1<<10, cores))
		}
	}
	return errors.Join(problems...)
}

// simulatePlacement runs the scenarios in virtual time. Nothing but their code decides the figures.
func (p *Program) simulatePlacement(o *placementOptions) error {
	var results []placement.Simulated
	for _, s := range o.chosen() {
		if !s.Costed {
			continue
		}
		of, err := placement.Simulate(&s, o.cores, o.Duration)
		if err != nil {
			return &command.RuntimeError{Err: err}
		}
		results = append(results, of...)
	}
	if len(results) == 0 {
		return errors.New("--virtual_cores needs dag_50 or dag_500 in --scenario: the nodes of the others have no known cost")
	}
	write := placement.WriteSimulated
	if o.asJSON {
		write = placement.WriteSimulatedJSON
	}
	if err := write(p.Stdout, results); err != nil {
		return &command.RuntimeError{Err: fmt.Errorf("writing the figures: %w", err)}
	}
	return nil
}

// chosen returns the scenarios to run.
func (o *placementOptions) chosen() []placement.Scenario {
	return slices.DeleteFunc(placement.Scenarios(), func(s placement.Scenario) bool { return !slices.Contains(o.scenarios, s.Name) })
}

// writePlans writes the plans of the scenarios as files.
func (o *placementOptions) writePlans() error {
	for _, s := range o.chosen() {
		folder := s.Folder()
		for name := range folder {
			text, err := fs.ReadFile(folder, name)
			if err == nil {
				err = os.WriteFile(filepath.Join(o.writeTo, name), placement.WithBuiltins(text), 0o644)
			}
			if err != nil {
				return &command.RuntimeError{Err: err}
			}
		}
	}
	return nil
}

func (p *Program) benchPlacement(ctx context.Context, o *placementOptions) error {
	scenarios, variants := o.chosen(), placement.Variants(o.base)
	for _, v := range variants {
		o.specs = append(o.specs, v.Engine)
	}
	o.env = "test" // whose tasks the plans use
	workers, stop, err := p.startWorkers(ctx, &o.fleet)
	defer stop()
	if err != nil {
		return &command.RuntimeError{Err: err}
	}
	var results [][]placement.Result
	for _, s := range scenarios {
		r, err := placement.Measure(ctx, &s, variants, o.Settings, func(variant int, r *worker.Round) (*worker.Report, error) {
			return workers[variant].Run(r)
		}, func(round int, v placement.Variant) {
			fmt.Fprintf(p.Stderr, "rankd: %s, round %d of %d, %s\n", s.Name, round+1, o.Rounds, v.Name)
		})
		if err != nil {
			return &command.RuntimeError{Err: err}
		}
		results = append(results, r)
	}
	f := compare.ReadFacts()
	head := fmt.Sprintf("%s, %d cores, %s, %s, rankd %s, commit %s\n%d CPU workers, %d interleaved rounds of %v after %v of warm-up each; medians with 95 %% intervals",
		f.CPU, f.Cores, f.OS, f.Go, f.Version, f.Commit, o.cpuThreads, o.Rounds, o.Duration, o.Warmup)
	if o.asJSON {
		lines := json.NewEncoder(p.Stdout)
		for _, of := range results {
			for _, r := range of {
				err = errors.Join(err, lines.Encode(r))
			}
		}
		for _, v := range placement.Verdicts(scenarios, results) {
			err = errors.Join(err, lines.Encode(v))
		}
	} else {
		err = placement.WriteText(p.Stdout, head, scenarios, results)
	}
	if err != nil {
		return &command.RuntimeError{Err: fmt.Errorf("writing the figures: %w", err)}
	}
	return nil
}
