package registry

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rankd/rankd/internal/cmdline"
)

// Program is the program whose command this is. Its errors tell the exit status, as in package
// command. One goroutine.
type Program struct {
	Stdout io.Writer
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

// Command returns the command "rankd registry" with those below it.
func (p *Program) Command(ctx context.Context) *cobra.Command {
	cmd := &cobra.Command{
		Use: "registry", Short: "Give columns their ids, or write tables for the data of a Redis",
		RunE: func(*cobra.Command, []string) error {
			return errors.New("rankd registry needs one of its commands: lock, infer")
		},
	}
	cmd.AddCommand(p.lockCommand(), p.inferCommand(ctx))
	for _, c := range append(cmd.Commands(), cmd) {
		c.SetUsageTemplate(usageTemplate)
		c.Flags().SortFlags = false
		c.Flags().SetNormalizeFunc(cmdline.Normalize)
	}
	return cmd
}

func (p *Program) lockCommand() *cobra.Command {
	dir := ""
	cmd := &cobra.Command{
		Use: "lock [flags]", Args: cobra.NoArgs,
		Short: "Write registry.lock: the ids of columns and parameters",
		Long: `Write registry.lock beside the tables of a registry. A column or parameter of the short form that
has no id there gets the next one. All others keep theirs, and those of columns that are gone stay
taken. Keep the file under version control: artifacts name columns by these ids.`,
		Example: `  rankd registry lock --registry_dir registry`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmdline.CheckValues(cmd.Flags()); err != nil {
				return err
			}
			if dir == "" {
				return errors.New("rankd registry lock needs a folder: --registry_dir, or registry in rankd.toml")
			}
			path, added, err := cmdline.LockRegistry(dir, false)
			if err == nil {
				fmt.Fprintf(p.Stdout, "%s: %d new\n", path, len(added))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "registry_dir", "", "read keys.toml and params.toml in this `folder`, and write the file there")
	return cmd
}
