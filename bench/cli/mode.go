package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rankd/rankd/bench/harness"
	"github.com/rankd/rankd/internal/cmdline"
)

// mode is an experiment as a command: its flags, and what makes its report. Immutable once it is a command; one goroutine.
type mode struct {
	use, short, long, example string
	rows                      []cmdline.Setting
	more                      func(*pflag.FlagSet) // adds flags that no row can have; nil: none
	// check reports all else that is wrong with the flags, and completes them. Nil: nothing is.
	check func(given *pflag.FlagSet) error
	// load reads the files that the flags name, once the flags are sound. Nil: they name none.
	load func() error
	// report runs the experiment. It may return no report if it has printed what there is.
	report func(ctx context.Context) (*harness.Report, error)
}

// command returns the command of a mode, whose report goes to stdout as text or JSON, and into a page.
func (p *Program) command(ctx context.Context, m mode) *cobra.Command {
	var asJSON bool
	var page string
	m.rows = append(m.rows,
		cmdline.Setting{Name: "html", To: &page, Help: "write the report as a page to this `file`"},
		cmdline.Setting{Name: "json", To: &asJSON, Help: "print the figures as JSON"})
	cmd := &cobra.Command{Use: m.use, Args: cobra.NoArgs, Short: m.short, Long: m.long, Example: m.example}
	cmdline.AddSettings(cmd.Flags(), m.rows)
	if m.more != nil {
		m.more(cmd.Flags())
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		problems := errors.Join(cmdline.CheckValues(cmd.Flags()), cmdline.CheckSettings(cmd.Flags(), m.rows))
		if m.check != nil {
			problems = errors.Join(problems, m.check(cmd.Flags()))
		}
		idle := cmdline.IdleFlags{Given: cmd.Flags()}
		idle.AddSettings(m.rows)
		if err := errors.Join(problems, idle.Problems()); err != nil {
			return err
		}
		if m.load != nil {
			if err := m.load(); err != nil {
				return err
			}
		}
		r, err := m.report(ctx)
		if err != nil {
			if ctx.Err() != nil {
				err = ctx.Err() // a process was stopped; its own error is not the reason
			}
			return &cmdline.RuntimeError{Err: err}
		}
		if r == nil {
			return nil
		}
		r.Facts.Command = p.CommandLine
		return p.publish(r, asJSON, page)
	}
	return cmd
}

// publish writes a report in the forms that are asked for.
func (p *Program) publish(r *harness.Report, asJSON bool, page string) error {
	write := r.WriteText
	if asJSON {
		write = r.WriteJSON
	}
	if err := write(p.Stdout); err != nil {
		return &cmdline.RuntimeError{Err: fmt.Errorf("writing the figures: %w", err)}
	}
	if page != "" {
		if err := cmdline.WriteFile(page, func(w io.Writer) error { return r.WriteHTML(w) }); err != nil {
			return &cmdline.RuntimeError{Err: fmt.Errorf("writing the report: %w", err)}
		}
		fmt.Fprintf(p.Stderr, "rankd: report written to %s\n", page)
	}
	if r.Failed {
		return cmdline.ErrFailed
	}
	return nil
}
