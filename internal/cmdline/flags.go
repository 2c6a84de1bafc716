package cmdline

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Dress gives a command the page of --help that those of the program have, and the flags of a table. statuses say in lines what its exit statuses
// mean; none: what those of all commands do.
func Dress(cmd *cobra.Command, table []Setting, statuses ...string) *cobra.Command {
	usage := `Usage:
  {{.UseLine}}
{{- if .HasExample}}

Examples:
{{.Example}}
{{- end}}

Flags ("-" and "_" in a name are the same):
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}
`
	if len(statuses) > 0 {
		usage += "\nExit status:\n  " + strings.Join(statuses, "\n  ") + "\n"
	}
	cmd.SetUsageTemplate(usage)
	cmd.Flags().SortFlags = false
	cmd.Flags().SetNormalizeFunc(Normalize)
	AddSettings(cmd.Flags(), table)
	return cmd
}

// WithFlags dresses a command that needs some of its flags, and has it check all before it runs. check checks what the table does not say. Without
// Args of its own the command takes no arguments.
func WithFlags(cmd *cobra.Command, needs []string, check func() error, table []Setting) *cobra.Command {
	if cmd.Args == nil {
		cmd.Args = cobra.NoArgs
	}
	cmd.PreRunE = func(*cobra.Command, []string) error {
		f := cmd.Flags()
		problems := []error{CheckValues(f), CheckSettings(f, table)}
		for _, name := range needs {
			if !f.Changed(name) {
				problems = append(problems, fmt.Errorf("%s needs --%s", cmd.CommandPath(), name))
			}
		}
		return errors.Join(append(problems, check())...)
	}
	return Dress(cmd, table)
}

// Group returns a command that is nothing but those below it.
func Group(name, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: short}
	var names []string
	for _, c := range commands {
		names = append(names, c.Name())
	}
	cmd.RunE = func(*cobra.Command, []string) error {
		return fmt.Errorf("%s needs one of its commands: %s", cmd.CommandPath(), strings.Join(names, ", "))
	}
	cmd.AddCommand(commands...)
	cmd.SetUsageTemplate("Usage:{{range .Commands}}{{if .IsAvailableCommand}}\n  {{rpad .UseLine 42}} {{.Short}}{{end}}{{end}}\n")
	return cmd
}

// Normalize makes "-" and "_" the same in flag names. It returns the spelling under which a
// flag is declared, so that help shows that one.
func Normalize(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	switch underscored := strings.ReplaceAll(name, "-", "_"); underscored {
	case "list_plans", "print_plan_info", "print_registry", "dump_run_trace":
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	default:
		return pflag.NormalizedName(underscored)
	}
}

// IdleFlags collects the flags given that have no effect. One goroutine.
type IdleFlags struct {
	Given *pflag.FlagSet
	found []error
}

// Add notes that a flag has no effect in some circumstance, if it is given.
func (i *IdleFlags) Add(flag, circumstance string) {
	if i.Given.Changed(flag) {
		i.found = append(i.found, fmt.Errorf("--%s has no effect %s", flag, circumstance))
	}
}

// Problems returns an error for each flag found, or nil.
func (i *IdleFlags) Problems() error { return errors.Join(i.found...) }

// CheckValues reports each flag given whose value is empty. An empty value mostly comes from an unset shell variable,
// and never means that the flag should be left out.
func CheckValues(given *pflag.FlagSet) error {
	var problems []error
	given.Visit(func(f *pflag.Flag) {
		if value := f.Value.String(); value == "" || value == "[]" { // an empty list prints as []
			problems = append(problems, fmt.Errorf("--%s needs a value, but it is empty", f.Name))
		}
	})
	return errors.Join(problems...)
}
