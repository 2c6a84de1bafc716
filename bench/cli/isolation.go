package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rankd/rankd/bench/backend"
	"github.com/rankd/rankd/bench/compare"
	"github.com/rankd/rankd/bench/engines"
	"github.com/rankd/rankd/bench/isolation"
	"github.com/rankd/rankd/bench/worker"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/registry"
)

// isolationOptions are the flags of bench isolation. Immutable once checked.
type isolationOptions struct {
	scenarios      []string
	engines        string
	redisServer    string
	cpuThreads     int
	requestTimeout time.Duration
	asJSON         bool
	specs          []engines.Spec
	isolation.Settings
}

func (p *Program) isolationCommand(ctx context.Context) *cobra.Command {
	var o isolationOptions
	var names []string
	var long strings.Builder
	long.WriteString(`Measure what a large request costs its neighbours. Small requests arrive at a share of the
engine's capacity, large ones come between them, and the latency of the small ones counts from
when they were due. A verdict for each scenario and engine says whether no small one failed and
whether their p99 kept its bound. An older build (binary:/old/rankd) runs the same load; it counts
the large requests among the small ones. The command starts a redis-server of its own.
`)
	for _, s := range isolation.Scenarios() {
		names = append(names, s.Name)
		fmt.Fprintf(&long, "\n  %-14s %s (p99 below %v)", s.Name, s.Doc, s.MaxP99)
	}
	var check func() error
	cmd := &cobra.Command{
		Use: "isolation", Args: cobra.NoArgs, Long: long.String(),
		Short:   "Measure what a large request costs small ones beside it",
		Example: "  rankd bench isolation\n  rankd bench isolation --engines binary:/old/rankd:reactor,reactor",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(check(), o.check()); err != nil {
				return err
			}
			return p.benchIsolation(ctx, &o)
		},
	}
	check = addRows(cmd,
		scenarioRow(&o.scenarios, names),
		cmdline.Setting{Name: "engines", To: &o.engines, Default: "reactor", Help: "`engines` to measure, as in rankd bench compare; no peers"},
		roundsRow(&o.Rounds, 6),
		cmdline.Setting{Name: "duration", To: &o.Duration, Default: 10 * time.Second, Least: 1, Most: int64(time.Hour), Help: "how `long` requests arrive in a round"},
		cmdline.Setting{Name: "large", To: &o.Large, Default: 5, Least: 1, Most: 1000, Help: "`number` of large requests in a round, evenly spread"},
		cmdline.Setting{Name: "share", To: &o.Share, Default: 0.5, Help: "the `share` of an engine's capacity at which small requests arrive"},
		cmdline.Setting{Name: "rate", To: &o.Rate, Help: "small requests per second for all engines, in place of a share of their capacities: rounds and builds then compare"},
		cmdline.Setting{Name: "request_timeout", To: &o.requestTimeout, Default: 10 * time.Second, Least: int64(time.Millisecond), Most: int64(time.Hour), Help: "the endpoint's request `timeout`; the built-in registry has 1s, in which many_rows may not end"},
		redisServerRow(&o.redisServer),
		engineRow("cpu_threads", &o.cpuThreads),
		jsonRow(&o.asJSON, ", a line for each scenario and engine"),
	)
	return cmd
}

// check reports all that is wrong with the flags at once, and completes them.
func (o *isolationOptions) check() error {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	var err error
	if o.specs, err = engines.ParseSpecs(o.engines); err != nil {
		problem("--engines: %w", err)
	}
	if slices.ContainsFunc(o.specs, func(s engines.Spec) bool { return s.Kind == engines.Peer }) {
		problem("--engines: peers know none of the plans")
	}
	if !(o.Share > 0 && o.Share <= 10) {
		problem("--share is a number above 0 and up to 10, not %v", o.Share)
	}
	if !(o.Rate >= 0 && o.Rate <= 1e6) {
		problem("--rate is a number from 0 to 1e6, not %v", o.Rate)
	}
	return errors.Join(problems...)
}

// timeoutField matches the request timeout in a table of endpoints.
var timeoutField = regexp.MustCompile(`(?m)^request_timeout_ms = \d+$`)

// writeRegistry writes the built-in tables with another request timeout into folder.
func writeRegistry(folder string, timeout time.Duration) error {
	tables := registry.DefaultTables()
	files, err := fs.ReadDir(tables, ".")
	if err != nil {
		return err
	}
	for _, f := range files {
		text, err := fs.ReadFile(tables, f.Name())
		if err != nil {
			return err
		}
		text = timeoutField.ReplaceAll(text, fmt.Appendf(nil, "request_timeout_ms = %d", timeout.Milliseconds()))
		if err := os.WriteFile(filepath.Join(folder, f.Name()), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// benchIsolation runs the scenarios and prints their figures.
func (p *Program) benchIsolation(ctx context.Context, o *isolationOptions) error {
	scenarios := slices.DeleteFunc(isolation.Scenarios(), func(s isolation.Scenario) bool { return !slices.Contains(o.scenarios, s.Name) })
	results, facts, err := p.measureIsolation(ctx, o, scenarios)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err() // a worker was stopped; its own error is not the reason
		}
		return &cmdline.RuntimeError{Err: err}
	}
	if o.asJSON {
		lines := json.NewEncoder(p.Stdout)
		for i, of := range results {
			for _, r := range of {
				err = errors.Join(err, lines.Encode(struct {
					Verdict string `json:"verdict"`
					isolation.Result
				}{scenarios[i].Verdict(&r), r}))
			}
		}
	} else {
		load := fmt.Sprintf("at %g of the engine's capacity", o.Share)
		if o.Rate > 0 {
			load = fmt.Sprintf("at %g/s", o.Rate)
		}
		head := fmt.Sprintf("%s, %d cores, %s, %s, %s, rankd %s, commit %s\n"+
			"%d interleaved rounds of %v, %d large requests in each; %d small users in turn, %s",
			facts.CPU, facts.Cores, facts.OS, facts.Go, facts.Redis, facts.Version, facts.Commit,
			o.Rounds, o.Duration, o.Large, isolation.SmallUsers, load)
		err = isolation.WriteText(p.Stdout, head, scenarios, results)
	}
	if err != nil {
		return &cmdline.RuntimeError{Err: fmt.Errorf("writing the figures: %w", err)}
	}
	for _, of := range results {
		for _, r := range of {
			if r.Failure != "" || r.SmallFail {
				return cmdline.ErrFailed
			}
		}
	}
	return nil
}

func (p *Program) measureIsolation(ctx context.Context, o *isolationOptions, scenarios []isolation.Scenario) (results [][]isolation.Result, facts compare.Facts, err error) {
	folder, err := os.MkdirTemp("", "rankd-registry-")
	if err != nil {
		return nil, facts, err
	}
	defer os.RemoveAll(folder)
	if err := writeRegistry(folder, o.requestTimeout); err != nil {
		return nil, facts, err
	}
	back, err := backend.Start(ctx, backend.Options{Server: o.redisServer, Real: true, Data: func(ctx context.Context, server string) error {
		return isolation.Load(ctx, server, scenarios)
	}})
	if err != nil {
		return nil, facts, err
	}
	defer back.Close()
	facts = compare.ReadFacts()
	facts.Redis = back.Version
	workers, stop, err := p.startWorkers(ctx, &fleet{specs: o.specs, cpuThreads: o.cpuThreads, env: "dev", registryDir: folder})
	defer stop()
	if err != nil {
		return nil, facts, err
	}
	for _, s := range scenarios {
		of, err := isolation.Measure(ctx, &s, specNames(o.specs), worker.Setup{Redis: back.Addr(0)}, o.Settings,
			func(ctx context.Context, engine int, r *worker.Round) (*worker.Report, error) {
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				return workers[engine].Run(r)
			},
			func(line string) { fmt.Fprintf(p.Stderr, "rankd: %s\n", line) })
		if err != nil {
			return nil, facts, err
		}
		results = append(results, of)
	}
	return results, facts, nil
}
