package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/rankd/rankd/bench/engines"
	"github.com/rankd/rankd/bench/worker"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/scheduler"
)

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

// benchCommand returns "rankd bench" with its modes.
func (p *program) benchCommand(ctx context.Context) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure engines, the event loop and the kernels",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetUsageTemplate(benchUsageTemplate)
	cmd.AddCommand(p.compareCommand(ctx), p.sweepCommand(ctx), p.loopCommand(ctx), p.kernelsCommand(ctx), p.workerCommand())
	for _, c := range append(cmd.Commands(), cmd) {
		c.Flags().SortFlags = false
		c.Flags().SetNormalizeFunc(normalize)
	}
	return cmd
}

// workerCommand returns the command that other modes start as a process per
// engine. It is for them and therefore hidden.
func (p *program) workerCommand() *cobra.Command {
	var engine string
	var o options
	cmd := &cobra.Command{
		Use: "worker", Hidden: true, Args: cobra.NoArgs,
		Short: "Run the rounds that come on stdin, as lines of JSON, and report them on stdout",
		RunE: func(*cobra.Command, []string) error {
			spec, err := engines.ParseSpec(engine)
			if err != nil {
				return err
			}
			reg, err := openRegistry(&o)
			if err != nil {
				return err
			}
			if spec.CPUThreads > 0 {
				o.cpuThreads = spec.CPUThreads
			}
			p.tune(o.cpuThreads)
			open := engines.Opener(spec, scheduler.Config{
				Registry: reg, CPUThreads: o.cpuThreads, Clock: clock.NewReal(), OnPanic: reportPanic(p.stderr),
			})
			if err := worker.Serve(p.stdin, p.stdout, open); err != nil {
				return &runtimeError{err}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&engine, "engine", engineReactor, "the `engine`, as in --engines of compare")
	f.IntVar(&o.cpuThreads, "cpu_threads", defaultCPUThreads(), "`number` of workers for CPU work")
	f.StringVar(&o.env, "env", "dev", "`environment`")
	f.StringVar(&o.registryDir, "registry_dir", "", "`folder` of the registry's tables")
	return cmd
}
