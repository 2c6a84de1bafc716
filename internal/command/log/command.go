// Package log has the command "rankd log", which works on the log of what was served. A [Program] and its commands belong
// to one goroutine.
package log

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/joinlog"
)

// Program is the program whose command this is. Its errors tell the exit status, as in package
// command. One goroutine.
type Program struct {
	Stdout, Stderr io.Writer
}

const usageTemplate = `Usage:
{{- if .HasAvailableSubCommands}}{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .UseLine 42}} {{.Short}}{{end}}{{end}}
{{- else}}
  {{.UseLine}}

Examples:
{{.Example}}

Flags ("-" and "_" in a name are the same):
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}
{{- end}}
`

// Command returns the command "rankd log" with those below it.
func (p *Program) Command(ctx context.Context) *cobra.Command {
	cmd := &cobra.Command{
		Use: "log", Short: "Make rows to train on of the log of what was served, or remove a user from it",
		RunE: func(*cobra.Command, []string) error {
			return errors.New("rankd log needs one of its commands: join, purge")
		},
	}
	cmd.AddCommand(p.joinCommand(ctx), p.purgeCommand())
	for _, c := range append(cmd.Commands(), cmd) {
		c.SetUsageTemplate(usageTemplate)
		c.Flags().SortFlags = false
		c.Flags().SetNormalizeFunc(cmdline.Normalize)
	}
	return cmd
}

// The bounds of --memory_mb.
const (
	memoryLeast   = 1
	memoryMost    = 1 << 20
	memoryDefault = 256
)

func (p *Program) joinCommand(ctx context.Context) *cobra.Command {
	var o joinlog.Options
	label, until, memory := "", "", 0
	cmd := &cobra.Command{
		Use: "join [flags]", Args: cobra.NoArgs,
		Short: "Join the log with what users did, as rows to train a model on",
		Long: `Join the log of what was served with what users did then. Each row of an answer becomes a row of the
output, with a label and the values that were scored. Rows of one answer follow each other and have
the same group. What is left out is counted on stdout. docs/learn.md has the formats.`,
		Example: `  rankd log join --served served --outcomes clicks.jsonl --window 2h --out train.csv`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmdline.CheckValues(cmd.Flags()); err != nil {
				return err
			}
			o.Label, o.Memory = joinlog.Label(label), memory<<20
			if err := check(&o, until, memory); err != nil {
				return err
			}
			if o.Impressions == "" {
				fmt.Fprintln(p.Stderr, "rankd: without --impressions, rows that nobody has seen count as seen: each is a negative")
			}
			counts, err := joinlog.Run(ctx, o)
			if text, problem := json.Marshal(counts); problem == nil && counts.Lines > 0 {
				fmt.Fprintf(p.Stdout, "%s\n", text)
			}
			if err != nil {
				return &cmdline.RuntimeError{Err: err}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Served, "served", "", "read the files *.jsonl of this `folder`")
	f.StringVar(&o.Outcomes, "outcomes", "", "read what users did from this `file`: .csv, .jsonl or .ndjson")
	f.StringVar(&o.Impressions, "impressions", "", "read which rows were seen from this `file`; others are left out")
	f.DurationVar(&o.Window, "window", 0, "count outcomes until so long after the answer (`duration` such as 2h)")
	f.StringVar(&label, "label", string(joinlog.Max), "make of several outcomes max, sum or `first`")
	f.StringVar(&until, "until", "", "`time` up to which outcomes are there; the latest event's without it")
	f.StringVar(&o.Out, "out", "", "write the rows to this `file`: .csv or .jsonl")
	f.IntVar(&memory, "memory_mb", memoryDefault, "keep so many `megabytes` of rows and events in memory, and others in files beside --out")
	return cmd
}

// check checks the flags and completes o.
func check(o *joinlog.Options, until string, memory int) error {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	for name, value := range map[string]string{"served": o.Served, "outcomes": o.Outcomes, "out": o.Out} {
		if value == "" {
			problem("rankd log join needs --%s", name)
		}
	}
	slices.SortFunc(problems, func(a, b error) int { return len(a.Error()) - len(b.Error()) })
	if o.Window <= 0 {
		problem("rankd log join needs --window: how long after the answer an outcome counts, such as 2h")
	}
	if labels := []joinlog.Label{joinlog.Max, joinlog.Sum, joinlog.First}; !slices.Contains(labels, o.Label) {
		problem("--label is max, sum or first, not %s", errtext.Quote(string(o.Label)))
	}
	if ext := filepath.Ext(o.Out); o.Out != "" && ext != ".csv" && ext != ".jsonl" {
		problem("--out ends in .csv or .jsonl, not in %s", errtext.Quote(ext))
	}
	if memory < memoryLeast || memory > memoryMost {
		problem("--memory_mb is %d to %d, not %d", memoryLeast, memoryMost, memory)
	}
	if until != "" {
		at, err := time.Parse(time.RFC3339Nano, until)
		if err != nil {
			problem("--until is a time such as 2026-11-27T22:30:00Z, not %s", errtext.Quote(until))
		}
		o.Until = at
	}
	return errors.Join(problems...)
}
