package task

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/registry"
)

// ErrRemote: a service answered with an error or with a document of the wrong form, or could not be reached.
var ErrRemote = errors.New("remote error")

// Remote is a body's access to the service behind an endpoint of kind http. Only the body uses it.
type Remote struct {
	waiter   taskrun.Waiter
	endpoint *registry.Endpoint
	tape     *taskrun.Tape // of the body's node; nil: nobody records what it sends
}

// Remote returns the body's access to a service.
func (c *Ctx) Remote(ep *registry.Endpoint) Remote { return Remote{c.calls(), ep, c.tape()} }

// Exchange posts a JSON document to the service and waits for the answer. request appends the document, answer takes
// the body of a good answer, which it must not keep. Both run while the body waits. The asynchronous engine runs them
// off the loop, so that they may compute for some milliseconds. Neither may wait.
//
// The error is of class ErrRemote, or the error of request or answer as it is, or ErrCancelled if nobody waits any more.
// answer refuses a document with Malformedf.
func (r Remote) Exchange(request func(dst []byte) ([]byte, error), answer func(body []byte) error) error {
	x := &remote.Exchange{
		Request: func(dst []byte) (body []byte, err error) {
			defer containPanic(&err)
			if body, err = request(dst); r.tape != nil && err == nil {
				r.tape.Ask(body[len(dst):])
			}
			return body, err
		},
		Answer: func(body []byte) (err error) {
			defer containPanic(&err)
			if r.tape != nil && !r.tape.Plays {
				r.tape.Add(taskrun.TapeBody, body)
			}
			return answer(body)
		},
	}
	if r.tape.Call(); r.tape != nil && r.tape.Plays {
		return r.play(x)
	}
	err := r.waiter.Exchange(r.endpoint, x)
	if errors.Is(err, loop.ErrCancelled) {
		return ErrCancelled
	}
	if errors.As(err, new(*remote.OpError)) {
		err = withKind(ErrRemote, fmt.Errorf("endpoint %s (%s): %w", r.endpoint.ID, r.endpoint.Name, err))
	}
	return r.tape.Fail(err)
}

// play is an exchange with what the tape has. The error of a call that failed is there, too, also where the answer was the reason.
func (r Remote) play(x *remote.Exchange) error {
	if _, err := x.Request(nil); err != nil {
		return err
	}
	p := r.tape.Next()
	if p.Kind == 0 {
		return taskrun.ErrOtherTape
	}
	if p.Kind == taskrun.TapeBody {
		err := x.Answer(p.Bytes)
		if p = r.tape.Next(); p.Kind == 0 {
			return err
		}
	}
	return p.Err
}

// Malformedf returns the error with which the answer of an exchange is refused. The exchange then fails with an error of
// class ErrRemote that names the endpoint.
func Malformedf(format string, args ...any) error { return remote.Malformedf(format, args...) }

// containPanic, deferred directly, makes a panic an error.
func containPanic(err *error) {
	if v := recover(); v != nil {
		*err = &PanicError{Value: v, Stack: debug.Stack()}
	}
}
