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

// ErrFailed says that some request failed. The user has seen that in the answer, so the program prints nothing more.
var ErrFailed = errors.New("a request failed")

// ErrReported says that the command has printed its errors, which are faults of its input. The
// program prints nothing more and ends with the status of bad usage.
var ErrReported = errors.New("errors were reported")

// RuntimeError is a failure that the command line did not cause, such as output that cannot
// be written. All other errors are bad usage. Immutable; any goroutine.
type RuntimeError struct{ Err error }

// Error implements error.
func (e *RuntimeError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *RuntimeError) Unwrap() error { return e.Err }

// Runtime is an error of what a command does, not of its flags; nil: none.
func Runtime(err error) error {
	if err == nil {
		return nil
	}
	return &RuntimeError{Err: err}
}

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
		_, number := strconv.ParseInt(invalid.GetValue(), 0, 64) // pflag keeps the reason to itself
		switch {
		case flag.Value.Type() == "int" && errors.Is(number, strconv.ErrRange):
			return fmt.Errorf("--%s is a number of at most 64 bits, not %s", flag.Name, value)
		case flag.Value.Type() == "int":
			return fmt.Errorf("--%s is a whole number, not %s", flag.Name, value)
		case flag.Value.Type() == "float64":
			return fmt.Errorf("--%s is a number, not %s", flag.Name, value)
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
