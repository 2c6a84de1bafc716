package task

import (
	"errors"
	"fmt"

	"github.com/rankd/rankd/internal/excerpt"
)

// Kinds of failure of a body, for errors.Is.
var (
	// ErrRedis: the server answered with an error, or could not be asked.
	ErrRedis = errors.New("redis error")
	// ErrContract: the number of inputs or the shape of the output is not what
	// the task's Spec says.
	ErrContract = errors.New("task contract violation")
	// ErrInvalid: a parameter is out of its range, or a column that the node needs is
	// not there.
	ErrInvalid = errors.New("invalid node")
	// ErrPanic: the body panicked.
	ErrPanic = errors.New("task panic")
)

// kindError gives an error one of the kinds above without changing its text.
type kindError struct {
	kind, err error
}

func (e *kindError) Error() string   { return e.err.Error() }
func (e *kindError) Unwrap() []error { return []error{e.kind, e.err} }

func withKind(kind, err error) error { return &kindError{kind, err} }

func invalidf(format string, args ...any) error {
	return withKind(ErrInvalid, fmt.Errorf(format, args...))
}

func contractf(format string, args ...any) error {
	return withKind(ErrContract, fmt.Errorf(format, args...))
}

// wrap names the endpoint that an error came from. The client's errors say its
// address themselves.
func (r Redis) wrap(err error) error {
	return withKind(ErrRedis, fmt.Errorf("endpoint %s (%s): %w", r.endpoint.ID, r.endpoint.Name, err))
}

// refusef is the error of a reply that is not what was asked for.
func (r Redis) refusef(format string, args ...any) error {
	return r.wrap(fmt.Errorf("redis %s: %w", r.endpoint.Addr(), fmt.Errorf(format, args...)))
}

// PanicError is a contained panic of a body.
type PanicError struct {
	Value any
	Stack []byte
}

// Error implements error: one line, without the stack.
func (e *PanicError) Error() string { return "task panicked: " + excerpt.Text(fmt.Sprint(e.Value)) }

// Unwrap makes errors.Is(err, ErrPanic) true.
func (e *PanicError) Unwrap() error { return ErrPanic }

// arityError is a wrong number of inputs.
type arityError struct{ got, want int }

func (e *arityError) Error() string {
	return fmt.Sprintf("takes %d input(s), has %d", e.want, e.got)
}
