package cmdline

import "errors"

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
