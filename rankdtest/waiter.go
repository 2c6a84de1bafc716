package rankdtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/internal/inference"
	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/task"
)

// Replies returns a Case.Redis that looks up the command, its words joined by spaces, and
// answers any other command with an error reply. A value is
//
//	int, int64             an integer
//	string, []byte         a bulk string
//	nil                    a null
//	[]any, []string        an array
//	error                  an error reply of the server, such as errors.New("WRONGTYPE …")
//	Failure                the whole batch fails, as by a lost connection
//	func([]string) any     a function of the command that returns one of these
func Replies(byCommand map[string]any) func(command []string) any {
	return func(command []string) any {
		line := strings.Join(command, " ")
		value, ok := byCommand[line]
		if !ok {
			return unscripted(line)
		}
		if f, ok := value.(func([]string) any); ok {
			return f(command)
		}
		return value
	}
}

// Failure as an answer makes the whole batch fail with Err. Immutable.
type Failure struct{ Err error }

func unscripted(line string) error { return fmt.Errorf("ERR rankdtest has no reply for %q", line) }

// waiter answers from a function and never waits. It belongs to one run.
type waiter struct {
	answer  func(command []string) any
	service func(request []byte) ([]byte, error)
	online  bool
	ctx     *task.Ctx
	batch   resp.Batch
	replies []byte       // as the body sees them until it waits again
	rest    resp.Replies // for Next
	from    int          // how many of them were taken
}

// NewBatch implements taskrun.Waiter.
func (w *waiter) NewBatch() *resp.Batch {
	w.batch.Reset()
	return &w.batch
}

// Do implements taskrun.Waiter.
func (w *waiter) Do(_ *registry.Endpoint, b *resp.Batch) (resp.Replies, error) {
	w.invalidate()
	if b != &w.batch {
		return resp.Replies{}, errors.New("batch is not of this task's NewBatch")
	}
	if w.ctx.Cancelled() {
		return resp.Replies{}, task.ErrCancelled
	}
	for raw := slices.Clone(b.Encoded()); len(raw) > 0; {
		_, args, _, rest, err := redcon.ReadNextCommand(raw, nil)
		if err != nil {
			return resp.Replies{}, err
		}
		command := make([]string, len(args))
		for i, arg := range args {
			command[i] = string(arg)
		}
		var value any = unscripted(strings.Join(command, " "))
		if w.answer != nil {
			value = w.answer(command)
		}
		if f, ok := value.(Failure); ok {
			return resp.Replies{}, f.Err
		}
		if w.replies, err = appendReply(w.replies, value); err != nil {
			return resp.Replies{}, err
		}
		raw = rest
	}
	decoder := resp.NewDecoder(resp.Limits{})
	decoder.Reset(b.Len())
	if _, _, err := decoder.Decode(w.replies); err != nil {
		return resp.Replies{}, err
	}
	return decoder.Replies(), nil
}

// Begin implements taskrun.Waiter.
func (w *waiter) Begin(ep *registry.Endpoint, b *resp.Batch) (err error) {
	w.rest, err = w.Do(ep, b)
	w.from = 0
	return err
}

// Next implements taskrun.Waiter. Each part is one reply, so a body fails that takes the first
// part for the whole.
func (w *waiter) Next() (from int, part resp.Replies, err error) {
	if w.from == w.rest.Len() {
		return 0, resp.Replies{}, nil
	}
	w.from++
	return w.from - 1, w.rest.Slice(w.from-1, w.from), nil
}

// Exchange implements taskrun.Waiter.
func (w *waiter) Exchange(ep *registry.Endpoint, x *remote.Exchange) error {
	w.invalidate()
	if w.ctx.Cancelled() {
		return task.ErrCancelled
	}
	if w.online {
		o := remote.Options{URL: ep.URL(), Header: ep.Header(), RequestTimeout: ep.Policy.RequestTimeout, Describe: inference.Describe(ep)}
		return remote.Once(context.Background(), o, x)
	}
	request, err := x.Request(nil)
	if err != nil {
		return err
	}
	if w.service == nil {
		return &remote.OpError{Addr: ep.Addr(), Kind: remote.ErrConnect, Cause: errors.New("the case has no Service")}
	}
	answer, err := w.service(request)
	if err != nil {
		return err
	}
	answer = slices.Clone(answer)
	err = x.Answer(answer)
	for i := range answer { // The body must not keep it.
		answer[i] = '?'
	}
	return err
}

// Sleep implements taskrun.Waiter.
func (w *waiter) Sleep(time.Duration) error {
	w.invalidate()
	if w.ctx.Cancelled() {
		return task.ErrCancelled
	}
	return nil
}

// Await implements taskrun.Waiter. fn runs on this goroutine.
func (w *waiter) Await(fn func() error) error {
	w.invalidate()
	if w.ctx.Cancelled() {
		return task.ErrCancelled
	}
	return fn()
}

// invalidate overwrites the replies that the body must no longer use.
func (w *waiter) invalidate() {
	for i := range w.replies {
		w.replies[i] = '?'
	}
	w.replies = nil
}

// appendReply encodes a value that Replies lists.
func appendReply(dst []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return redcon.AppendNull(dst), nil
	case int:
		return redcon.AppendInt(dst, int64(v)), nil
	case int64:
		return redcon.AppendInt(dst, v), nil
	case string:
		return redcon.AppendBulkString(dst, v), nil
	case []byte:
		return redcon.AppendBulk(dst, v), nil
	case error:
		return redcon.AppendError(dst, v.Error()), nil
	case []string:
		return appendArray(dst, v)
	case []any:
		return appendArray(dst, v)
	default:
		return nil, fmt.Errorf("rankdtest: a reply cannot be a %T", value)
	}
}

func appendArray[T any](dst []byte, values []T) ([]byte, error) {
	dst = redcon.AppendArray(dst, len(values))
	for _, v := range values {
		var err error
		if dst, err = appendReply(dst, v); err != nil {
			return nil, err
		}
	}
	return dst, nil
}
