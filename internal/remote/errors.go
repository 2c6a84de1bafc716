package remote

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/rankd/rankd/internal/errtext"
)

// Conditions of a failure, for errors.Is. Each error of this package is an *OpError that matches one of them or
// loop.ErrCancelled, except those that the functions of an Exchange return.
var (
	// ErrConnect: no connection could be made; nothing was sent.
	ErrConnect = errors.New("cannot connect")
	// ErrConnectionLost: the connection ended before the answer was complete. The service may or may not have
	// worked on the request.
	ErrConnectionLost = errors.New("connection lost")
	// ErrTimeout: the call's deadline or the request timeout came first.
	ErrTimeout = errors.New("timeout")
	// ErrQueueFull: MaxWaiting calls are waiting already; nothing was sent.
	ErrQueueFull = errors.New("too many waiting calls")
	// ErrClosed: the client was closed.
	ErrClosed = errors.New("client closed")
	// ErrStatus: the service answered with another status than 2xx. The cause is a *StatusError.
	ErrStatus = errors.New("status")
	// ErrPaused: the service has answered 429 with Retry-After, and asks for a pause that has not ended; nothing was sent.
	ErrPaused = errors.New("the service asks for a pause")
	// ErrProtocol: the answer is not HTTP, or not the document that was asked for.
	ErrProtocol = errors.New("protocol error")
	// ErrTooLarge: the request exceeds MaxRequestBytes, or the answer MaxAnswerBytes.
	ErrTooLarge = errors.New("too large")
)

// Causes, which an OpError wraps beside its condition.
var (
	// ErrDeadline: the deadline that the caller gave had passed. It comes with ErrTimeout.
	ErrDeadline = errors.New("the deadline of the call has passed")

	errGoexit = errors.New("a function of the exchange called runtime.Goexit")
)

// An OpError is the failure of a call: where, what and why. It matches both its Kind and what its Cause matches.
// Immutable once built.
type OpError struct {
	Addr  string // "host:port"; neither path nor headers, which may hold a secret
	Kind  error  // one of the conditions above
	Cause error  // why; may be nil
}

// Error implements error: one line.
func (e *OpError) Error() string {
	text := "http " + e.Addr + ": " + e.Kind.Error()
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap returns the condition and the cause.
func (e *OpError) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// A StatusError is an answer with another status than 2xx. Immutable.
type StatusError struct {
	Code    int
	Message string // the beginning of the body, in one line
	// RetryAfter is for how long the service wants no requests. Zero: it does not say, or the status is not 429.
	RetryAfter time.Duration
}

// Error implements error.
func (e *StatusError) Error() string {
	if e.Message == "" {
		return fmt.Sprint(e.Code)
	}
	return fmt.Sprintf("%d: %s", e.Code, errtext.Text(e.Message))
}

// Malformedf returns the error with which Exchange.Answer refuses an answer. The call fails with ErrProtocol.
func Malformedf(format string, args ...any) error {
	return &malformedError{fmt.Errorf(format, args...)}
}

// TooLarge returns the error with which Exchange.Request gives up a body that has more bytes than MaxRequestBytes, which is most. The call
// fails with ErrTooLarge.
func TooLarge(most int) error {
	return &OpError{Kind: ErrTooLarge, Cause: fmt.Errorf("the request has more than %d bytes", most)}
}

type malformedError struct{ err error }

func (e *malformedError) Error() string { return e.err.Error() }
func (e *malformedError) Unwrap() error { return e.err }

// dialError marks an error of connecting, which net/http passes on.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// shownError shows an error in one short line. Texts of net/http may quote what a service sent.
type shownError struct{ err error }

func (e *shownError) Error() string {
	err := e.err
	if op := (*net.OpError)(nil); errors.As(err, &op) { // The address is in the OpError already.
		err = op.Err
	}
	return errtext.Text(err.Error())
}

func (e *shownError) Unwrap() error { return e.err }

// kindOf returns the condition of an error of net/http about a request that was sent, or was about to be.
func kindOf(err error) error {
	if errors.As(err, new(*dialError)) {
		return ErrConnect
	}
	if errors.As(err, new(*net.OpError)) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrConnectionLost
	}
	// net/http has no types for these.
	for _, sign := range [...]string{"malformed", "unsupported", "bad Content-Length", "invalid", "headers exceeded", "too many"} {
		if strings.Contains(err.Error(), sign) {
			return ErrProtocol
		}
	}
	return ErrConnectionLost
}
