package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/caller"
	"github.com/rankd/rankd/bench/internal/engines"
	"github.com/rankd/rankd/bench/internal/placement"
	"github.com/rankd/rankd/bench/internal/worker"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/request"
)

// Program is the program whose commands these are. Its errors tell the exit status, as in
// package command. One goroutine.
type Program struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Tune           func(cpuThreads int) // sets the process up before an engine is opened
	CommandLine    string               // quoted by reports
	Own            rankd.Options        // what the program brings: the compiler of plans, tasks, and folders where no flag names one
}

const benchUsageTemplate = `Usage:
{{- if .HasAvailableSubCommands}}
  {{.CommandPath}} <mode> [flags]

Modes:
{{- range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}
{{- else}}
  {{.UseLine}}
{{- end}}
{{- if .HasExample}}

Examples:
{{.Example}}
{{- end}}
{{- if .HasAvailableLocalFlags}}

Flags ("-" and "_" in a name are the same):
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}
{{- end}}
`

// Command returns "rankd bench" with its modes.
func (p *Program) Command(ctx context.Context) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure engines and the event loop",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetUsageTemplate(benchUsageTemplate)
	cmd.AddCommand(p.loopCommand(ctx), p.workerCommand())
	for _, m := range []mode{p.compareMode(), p.placementMode(), p.isolationMode(), p.frontsMode(), p.overloadMode()} {
		cmd.AddCommand(p.command(ctx, m))
	}
	for _, c := range append(cmd.Commands(), cmd) {
		c.Flags().SortFlags = false
		c.Flags().SetNormalizeFunc(cmdline.Normalize)
	}
	return cmd
}

// workerCommand returns the command that other modes start as a process per engine. Its help
// is hidden, since people have no use for it.
func (p *Program) workerCommand() *cobra.Command {
	var engine, planDir, registryDir, modelDir, profiles, now string
	o := p.Own
	cmd := &cobra.Command{
		Use: "worker", Hidden: true, Args: cobra.NoArgs,
		Short: "Run the rounds that come on stdin, as lines of JSON, and report them on stdout",
		RunE: func(*cobra.Command, []string) error {
			spec, err := engines.ParseSpec(engine)
			if err != nil {
				return err
			}
			if spec != spec.Local() || spec.Kind == engines.Peer {
				return fmt.Errorf("engine %s does not run in this process", spec)
			}
			if err := cmdline.Folders(&o, planDir, registryDir, modelDir); err != nil {
				return err
			}
			if now != "" {
				at, err := request.ParseNow(now)
				if err != nil {
					return fmt.Errorf("--now: %w", err)
				}
				o.Now = func() time.Time { return at }
			}
			o.Logger = cmdline.Logger(p.Stderr)
			o = spec.Options(o)
			p.Tune(o.CPUThreads)
			end, err := profile(profiles, spec.String())
			if err == nil {
				err = errors.Join(worker.Serve(p.Stdin, p.Stdout, opener(o)), end())
			}
			if err != nil {
				return &cmdline.RuntimeError{Err: err}
			}
			return nil
		},
	}
	cmdline.AddSettings(cmd.Flags(), []cmdline.Setting{
		{Name: "engine", To: &engine, Default: string(engines.Reactor), Help: "the `engine`, as in --engines of compare"},
		{Name: "profiles", To: &profiles, Help: "write a CPU and an allocation profile into this `folder`"},
		engineRow("cpu_threads", &o.CPUThreads), engineRow("env", &o.Env), engineRow("registry_dir", &registryDir), engineRow("model_dir", &modelDir),
		engineRow("plan_dir", &planDir), engineRow("now", &now),
	})
	return cmd
}

// profile begins a CPU profile of this process in a folder, unless the folder is empty. end completes it, and writes an
// allocation profile. The files are named after the engine, with dashes in place of characters that a path may not have.
func profile(folder, engine string) (end func() error, err error) {
	if folder == "" {
		return func() error { return nil }, nil
	}
	name := filepath.Join(folder, strings.NewReplacer("/", "-", ":", "-", ",", "-").Replace(engine))
	cpu, err := os.Create(name + ".cpu.pprof")
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return nil, errors.Join(err, cpu.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		allocs := func(w io.Writer) error { return pprof.Lookup("allocs").WriteTo(w, 0) }
		return errors.Join(cpu.Close(), cmdline.WriteFile(name+".allocs.pprof", allocs))
	}, nil
}

// opener returns how a worker opens its engine: with all Redis endpoints at the address, and
// with the plan, that the setup of the round names; or with the plans of a scenario, which ask no Redis. Where
// the setup names a front, the worker opens no engine, and calls the front.
func opener(o rankd.Options) worker.Open {
	return func(setup worker.Setup) (load.Target, error) {
		o := o
		if setup.Front != "" {
			return openCaller(setup)
		}
		if setup.Scenario != "" {
			return placement.Open(o, setup.Scenario)
		}
		o.Redis, o.PlanFile, o.PlanText = setup.Redis, setup.Plan, []byte(setup.Artifact)
		target, err := engines.Open(engines.WithVersions(o))
		if err != nil {
			return nil, err // not a nil *Target in an interface
		}
		if setup.JSON {
			target.PassJSON()
		}
		if err := adjust(target, &setup); err != nil {
			target.Close()
			return nil, err
		}
		return target, nil
	}
}

// adjust has the requests of a target be as a setup says.
func adjust(t *engines.Target, setup *worker.Setup) error {
	if setup.Context != "" {
		if err := t.SetContext(setup.Context); err != nil {
			return fmt.Errorf("--context: %w", err)
		}
	}
	if setup.UserName != "" {
		if err := t.SetUserName(setup.UserName); err != nil {
			return fmt.Errorf("--users: %w", err)
		}
	}
	if setup.RequestFile != "" {
		text, err := os.ReadFile(setup.RequestFile)
		if err != nil {
			return err
		}
		return t.SetRequests(bytes.Split(bytes.TrimSuffix(text, []byte{'\n'}), []byte{'\n'}))
	}
	return nil
}

// openCaller opens the connections to a front.
func openCaller(setup worker.Setup) (load.Target, error) {
	target, err := caller.Open(caller.Options{
		Front: setup.Front, Addr: setup.Server, Plan: setup.Plan, Connections: setup.Connections, Deadline: setup.Deadline,
	})
	if err != nil {
		return nil, err // not a nil *Target in an interface
	}
	return target, nil
}
