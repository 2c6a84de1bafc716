package cmdline

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rankd/rankd/internal/errtext"
)

// FlagError returns an error of pflag in the user's words, for cobra.Command.SetFlagErrorFunc. The texts of pflag
// name Go functions, and do not say what to do.
func FlagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case strings.HasPrefix(err.Error(), "unknown shorthand flag"):
		return fmt.Errorf("%w; flags begin with --", err)
	case errors.As(err, &unknown):
		return fmt.Errorf("%w; %s --help lists the flags", err, cmd.CommandPath())
	case errors.As(err, &invalid):
		flag, value := invalid.GetFlag(), errtext.Quote(invalid.GetValue())
		switch {
		case errors.Is(err, strconv.ErrRange):
			return fmt.Errorf("--%s is a number of at most 64 bits, not %s", flag.Name, value)
		case flag.Value.Type() == "int":
			return fmt.Errorf("--%s is a whole number, not %s", flag.Name, value)
		case flag.Value.Type() == "bool":
			return fmt.Errorf("--%s is true or false, not %s", flag.Name, value)
		}
	}
	return err
}

// CheckExclusive reports flags of which more than one is given, although each excludes the others.
func CheckExclusive(given *pflag.FlagSet, names ...string) error {
	var found []string
	for _, name := range names {
		if given.Changed(name) {
			found = append(found, "--"+name)
		}
	}
	if len(found) < 2 {
		return nil
	}
	return fmt.Errorf("%s exclude each other: give one of them", strings.Join(found, " and "))
}
