// Package log has the command "rankd log", which works on the log of what was served. A [Program] and its commands belong
// to one goroutine.
package log

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
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

// Command returns the command "rankd log" with those below it.
func (p *Program) Command(ctx context.Context) *cobra.Command {
	return cmdline.Group("log", "Make rows to train on of the log of what was served, or remove a user from it", p.joinCommand(ctx), p.purgeCommand())
}

func (p *Program) joinCommand(ctx context.Context) *cobra.Command {
	var o joinlog.Options
	until, memory := "", 0
	return cmdline.WithFlags(&cobra.Command{
		Use:   "join [flags]",
		Short: "Join the log with what users did, as rows to train a model on",
		Long: `Join the log of what was served with what users did then. Each row of an answer becomes a row of the
output, with a label and the values that were scored. Rows of one answer follow each other and have
the same group. What is left out is counted on stdout. docs/learn.md has the formats.`,
		Example: `  rankd log join --served served --outcomes clicks.jsonl --window 2h --out train.csv`,
		RunE: func(*cobra.Command, []string) error {
			if o.Memory = memory << 20; o.Impressions == "" {
				fmt.Fprintln(p.Stderr, "rankd: without --impressions, rows that nobody has seen count as seen: each is a negative")
			}
			counts, err := joinlog.Run(ctx, o)
			if text, problem := json.Marshal(counts); problem == nil && counts.Lines > 0 {
				fmt.Fprintf(p.Stdout, "%s\n", text)
			}
			return cmdline.Runtime(err)
		},
	}, []string{"served", "outcomes", "window", "out"}, func() error {
		var problems []error
		if ext := filepath.Ext(o.Out); o.Out != "" && ext != ".csv" && ext != ".jsonl" {
			problems = append(problems, fmt.Errorf("--out ends in .csv or .jsonl, not in %s", errtext.Quote(ext)))
		}
		var err error
		if o.Until, err = time.Parse(time.RFC3339Nano, until); until != "" && err != nil {
			problems = append(problems, fmt.Errorf("--until is a time such as 2026-11-27T22:30:00Z, not %s", errtext.Quote(until)))
		}
		return errors.Join(problems...)
	}, []cmdline.Setting{
		{Name: "served", To: &o.Served, Help: "read the files *.jsonl of this `folder`"},
		{Name: "outcomes", To: &o.Outcomes, Help: "read what users did from this `file`: .csv, .jsonl or .ndjson"},
		{Name: "impressions", To: &o.Impressions, Help: "read which rows were seen from this `file`; others are left out"},
		{Name: "window", To: &o.Window, Least: int64(time.Millisecond), Most: int64(10 * 365 * 24 * time.Hour), Help: "count outcomes until so long after the answer (`duration` such as 2h)"},
		{Name: "label", To: cmdline.Text(&o.Label), Default: joinlog.Max, OneOf: []string{string(joinlog.Max), string(joinlog.Sum), string(joinlog.First)},
			Help: "make of several outcomes max, sum or `first`"},
		{Name: "until", To: &until, Help: "`time` up to which outcomes are there; the latest event's without it"},
		{Name: "out", To: &o.Out, Help: "write the rows to this `file`: .csv or .jsonl"},
		{Name: "memory_mb", To: &memory, Default: 256, Least: 1, Most: 1 << 20, Help: "keep so many `megabytes` of rows and events in memory, and others in files beside --out"},
	})
}
