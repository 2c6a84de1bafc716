package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rankd/rankd/bench/kernels"
	"github.com/rankd/rankd/internal/cmdline"
)

// kernelRowsMax bounds the rows of a kernel: some gigabytes of columns.
const kernelRowsMax = 20_000_000

func (p *Program) kernelsCommand(ctx context.Context) *cobra.Command {
	var rows []int
	var duration time.Duration
	var asJSON bool
	var b strings.Builder
	b.WriteString("Measure the kernels as tasks run them, in ns per row.\n")
	for _, k := range kernels.Names() {
		fmt.Fprintf(&b, "\n  %-7s %s", k, kernels.Descriptions()[k])
	}
	var check func() error
	cmd := &cobra.Command{
		Use: "kernels", Args: cobra.NoArgs, Long: b.String(),
		Short:   "Measure vm, filter, sort, take and concat by number of rows",
		Example: "  rankd bench kernels --rows 10,1000,1000000",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := check(); err != nil {
				return err
			}
			return p.benchKernels(ctx, rows, duration, asJSON)
		},
	}
	check = addRows(cmd,
		cmdline.Setting{Name: "rows", To: &rows, Default: []int{10, 100, 1000, 10_000, 100_000, 1_000_000}, Least: 1, Most: kernelRowsMax, Help: "`numbers` of rows"},
		cmdline.Setting{Name: "duration", To: &duration, Default: 500 * time.Millisecond, Least: 1, Most: int64(24 * time.Hour), Help: "how `long` each kernel is measured, per number of rows"},
		jsonRow(&asJSON, ", a line for each"),
	)
	return cmd
}

func (p *Program) benchKernels(ctx context.Context, rows []int, d time.Duration, asJSON bool) error {
	table := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	if !asJSON {
		fmt.Fprintf(table, "ns/row\t%s\t\n", strings.Join(kernels.Names(), "\t"))
	}
	lines := json.NewEncoder(p.Stdout)
	var results []*kernels.Result
	for _, n := range rows {
		fmt.Fprintf(table, "%d rows\t", n)
		for _, k := range kernels.Names() {
			if err := ctx.Err(); err != nil {
				return &cmdline.RuntimeError{Err: err}
			}
			r, err := kernels.Measure(k, n, d)
			if err != nil {
				return &cmdline.RuntimeError{Err: err}
			}
			if asJSON {
				if err := lines.Encode(r); err != nil {
					return &cmdline.RuntimeError{Err: fmt.Errorf("writing the figures: %w", err)}
				}
				continue
			}
			results = append(results, r)
			fmt.Fprintf(table, "%.3g\t", r.NsPerRow)
		}
		fmt.Fprintln(table)
	}
	if asJSON {
		return nil
	}
	_, err := fmt.Fprintln(p.Stdout, kernelsSentence(results))
	if err = errors.Join(err, table.Flush()); err != nil {
		return &cmdline.RuntimeError{Err: fmt.Errorf("writing the figures: %w", err)}
	}
	return nil
}
