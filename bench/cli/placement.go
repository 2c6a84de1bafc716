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

	"github.com/rankd/rankd/bench/compare"
	"github.com/rankd/rankd/bench/placement"
	"github.com/rankd/rankd/bench/worker"
	"github.com/rankd/rankd/internal/cmdline"
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
	var check func() error
	cmd := &cobra.Command{
		Use: "placement", Args: cobra.NoArgs, Long: long.String(),
		Short:   "Compare the scheduling modes on cheap, heavy and waiting nodes",
		Example: "  rankd bench placement\n  rankd bench placement --scenario five_nodes,mix --duration 5s",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := check(); err != nil {
				return err
			}
			if o.cores != nil {
				idle := cmdline.IdleFlags{Given: cmd.Flags()}
				for _, flag := range []string{"rounds", "warmup", "cpu_threads", "base", "write_plans"} {
					idle.Add(flag, "with --virtual_cores")
				}
				if err := idle.Problems(); err != nil {
					return err
				}
				return p.simulatePlacement(&o)
			}
			if o.writeTo != "" {
				idle := cmdline.IdleFlags{Given: cmd.Flags()}
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
	check = addRows(cmd,
		scenarioRow(&o.scenarios, names),
		roundsRow(&o.Rounds, 6),
		cmdline.Setting{Name: "duration", To: &o.Duration, Default: time.Second, Least: 1, Most: int64(24 * time.Hour), Help: "how `long` a round measures"},
		cmdline.Setting{Name: "warmup", To: &o.Warmup, Default: 300 * time.Millisecond, Least: 1, Most: int64(24 * time.Hour), Help: "how `long` a round warms up first"},
		engineRow("cpu_threads", &o.cpuThreads),
		cmdline.Setting{Name: "base", To: &o.base, Help: "measure the reactor of this `program`, too, another build of rankd, where a scenario has one plan"},
		cmdline.Setting{Name: "write_plans", To: &o.writeTo, Help: "write the plans of the scenarios into this `folder`, for rankd bench compare --plan, and exit"},
		cmdline.Setting{Name: "virtual_cores", To: &o.cores, Least: 1, Most: 1 << 10, Help: "run the scenarios of random plans in virtual time instead, on machines of so many `cores`, --duration of it each"},
		jsonRow(&o.asJSON, ", a line for each scenario and variant, then a line for each aim"),
	)
	return cmd
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
			return &cmdline.RuntimeError{Err: err}
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
		return &cmdline.RuntimeError{Err: fmt.Errorf("writing the figures: %w", err)}
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
				return &cmdline.RuntimeError{Err: err}
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
		return &cmdline.RuntimeError{Err: err}
	}
	var results [][]placement.Result
	for _, s := range scenarios {
		r, err := placement.Measure(ctx, &s, variants, o.Settings, func(variant int, r *worker.Round) (*worker.Report, error) {
			return workers[variant].Run(r)
		}, func(round int, v placement.Variant) {
			fmt.Fprintf(p.Stderr, "rankd: %s, round %d of %d, %s\n", s.Name, round+1, o.Rounds, v.Name)
		})
		if err != nil {
			return &cmdline.RuntimeError{Err: err}
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
		return &cmdline.RuntimeError{Err: fmt.Errorf("writing the figures: %w", err)}
	}
	return nil
}
