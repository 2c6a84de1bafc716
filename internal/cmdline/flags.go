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
