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
	ctx      *Ctx
	waiter   taskrun.Waiter
	endpoint *registry.Endpoint
	tape     *taskrun.Tape // of the body's node; nil: nobody records what it sends
}

// Remote returns the body's access to a service.
func (c *Ctx) Remote(ep *registry.Endpoint) Remote { return Remote{c, c.calls(), ep, c.tape()} }

// Exchange posts a JSON document to the service and waits for the answer. request appends the document, answer takes
// the body of a good answer, which it must not keep. Both run while the body waits. The asynchronous engine runs them
// off the loop, so that they may compute for some milliseconds. Neither may wait.
//
// The error is of class ErrRemote, or the error of request or answer as it is, or ErrCancelled if nobody waits any more.
// answer refuses a document with Malformedf.
func (r Remote) Exchange(request func(dst []byte) ([]byte, error), answer func(body []byte) error) error {
	return r.Do(&remote.Exchange{Request: request, Answer: answer})
}

// Do is Exchange for requests that are more than a JSON document. Only rankd's own tasks can call it.
func (r Remote) Do(x *remote.Exchange) error {
	request, answer, records := x.Request, x.Answer, r.tape != nil && !r.tape.Plays
	x.Request = func(dst []byte) (body []byte, err error) {
		defer containPanic(&err)
		if records && x.Wants != "" {
			r.tape.Add(taskrun.TapeBody, []byte(x.Known))
		}
		if body, err = request(dst); r.tape != nil && err == nil {
			asked := body[len(dst):]
			if x.Asked != nil {
				asked = x.Asked()
			}
			r.tape.Ask(asked)
		}
		return body, err
	}
	x.Answer = func(body []byte) (err error) {
		defer containPanic(&err)
		if records && x.Wants != "" {
			r.tape.Add(taskrun.TapeBody, []byte(x.Got))
		}
		if records {
			r.tape.Add(taskrun.TapeBody, body)
		}
		return answer(body)
	}
	var err error
	if r.tape.Call(); r.tape != nil && r.tape.Plays {
		err = r.play(x)
	} else {
		err = r.waiter.Exchange(r.endpoint, x)
	}
	if x.Version != "" {
		r.ctx.lacks().service = x.Version
	}
	switch {
	case r.tape != nil && r.tape.Plays:
		return err
	case errors.Is(err, loop.ErrCancelled):
		return ErrCancelled
	case errors.As(err, new(*remote.OpError)):
		err = withKind(ErrRemote, fmt.Errorf("endpoint %s (%s): %w", r.endpoint.ID, r.endpoint.Name, err))
	}
	return r.tape.Fail(err)
}

// play is an exchange with what the tape has. The error of a call that failed is there, too, also where the answer was the reason.
func (r Remote) play(x *remote.Exchange) error {
	var p taskrun.Played
	next := func(into *string) bool { // reads what the body alone does not say
		if x.Wants != "" {
			if p = r.tape.Next(); p.Kind == taskrun.TapeBody {
				*into = string(p.Bytes)
			}
		}
		return x.Wants == "" || p.Kind == taskrun.TapeBody
	}
	if next(&x.Known) {
		if _, err := x.Request(nil); err != nil {
			return err
		}
		if next(&x.Got) {
			p = r.tape.Next()
		}
	}
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
