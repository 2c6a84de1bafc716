package task

import (
	"errors"
	"fmt"

	"github.com/rankd/rankd/internal/errtext"
)

// Classes of a body's errors, for errors.Is.
var (
	// ErrRedis: the server answered with an error or with a reply of the wrong kind, or
	// could not be reached.
	ErrRedis = errors.New("redis error")
	// ErrContract: the output does not have the shape that the task's Spec promises.
	ErrContract = errors.New("task contract violation")
	// ErrInvalid: a parameter is out of its range, the number of inputs is wrong, or a
	// column that the node needs is missing.
	ErrInvalid = errors.New("invalid node")
	// ErrGoexit: the body called runtime.Goexit, as testing.T.FailNow does.
	ErrGoexit = errors.New("task called runtime.Goexit")
	// ErrTooManyAwaits: the engine already runs as many functions of Ctx.Await as it may.
	ErrTooManyAwaits = errors.New("too many functions of Await run")
	// ErrPanic: the body panicked.
	ErrPanic = errors.New("task panic")
)

// kindError gives an error one of the classes above without changing its text.
type kindError struct {
	kind, err error
}

func (e *kindError) Error() string   { return e.err.Error() }
func (e *kindError) Unwrap() []error { return []error{e.kind, e.err} }

func withKind(kind, err error) error { return &kindError{kind, err} }

// Invalidf returns an error of class ErrInvalid: a parameter is out of its range, or a
// column that the node needs is missing. The text begins with the parameter's name.
func Invalidf(format string, args ...any) error {
	return withKind(ErrInvalid, fmt.Errorf(format, args...))
}

// Quote quotes a text for an error and cuts it to 200 bytes. Texts of plans and replies
// may have any length.
func Quote(text string) string { return errtext.Quote(text) }

func contractf(format string, args ...any) error {
	return withKind(ErrContract, fmt.Errorf(format, args...))
}

// wrap names the endpoint that an error came from. The client's errors already
// contain its address.
func (r Redis) wrap(err error) error {
	return withKind(ErrRedis, fmt.Errorf("endpoint %s (%s): %w", r.endpoint.ID, r.endpoint.Name, err))
}

// PanicError is a contained panic of a body. Immutable.
type PanicError struct {
	Value any
	Stack []byte
}

// Error implements error: one line, without the stack.
func (e *PanicError) Error() string { return "task panicked: " + errtext.Text(fmt.Sprint(e.Value)) }

// Unwrap makes errors.Is(err, ErrPanic) true.
func (e *PanicError) Unwrap() error { return ErrPanic }

// arityError is a wrong number of inputs.
type arityError struct{ got, least, most int }

func (e *arityError) Error() string {
	if e.least == e.most {
		return fmt.Sprintf("takes %d input(s), has %d", e.least, e.got)
	}
	return fmt.Sprintf("takes %d to %d inputs, has %d", e.least, e.most, e.got)
}
