package recorder

import (
	"context"
	"errors"
	"strings"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace/record"
)

// class is an error that code asks for by errors.Is. Immutable.
type class struct {
	name string // in records: it must not change
	err  error
}

// classes are all that records know. Immutable.
var classes = [...]class{
	{"redis", task.ErrRedis},
	{"service", task.ErrRemote},
	{"contract", task.ErrContract},
	{"invalid", task.ErrInvalid},
	{"panic", task.ErrPanic},
	{"goexit", task.ErrGoexit},
	{"too_many_awaits", task.ErrTooManyAwaits},
	{"too_many_rows", task.ErrTooManyRows},
	{"too_many_ids", rowset.ErrTooManyIDs},
	{"cancelled", task.ErrCancelled},
	{"loop.cancelled", loop.ErrCancelled},
	{"pool.queue_full", cpupool.ErrQueueFull},
	{"pool.closed", cpupool.ErrClosed},
	{"redis.connection_lost", resp.ErrConnectionLost},
	{"redis.connect", resp.ErrConnect},
	{"redis.timeout", resp.ErrTimeout},
	{"redis.queue_full", resp.ErrQueueFull},
	{"redis.closed", resp.ErrClosed},
	{"redis.protocol", resp.ErrProtocol},
	{"redis.too_large", resp.ErrTooLarge},
	{"redis.deadline", resp.ErrDeadline},
	{"service.connection_lost", remote.ErrConnectionLost},
	{"service.connect", remote.ErrConnect},
	{"service.timeout", remote.ErrTimeout},
	{"service.queue_full", remote.ErrQueueFull},
	{"service.closed", remote.ErrClosed},
	{"service.status", remote.ErrStatus},
	{"service.protocol", remote.ErrProtocol},
	{"service.too_large", remote.ErrTooLarge},
	{"request_deadline", scheduler.ErrRequestDeadline},
	{"not_admitted", scheduler.ErrNotAdmitted},
	{"node_timeout", scheduler.ErrNodeTimeout},
	{"deadline_before_start", scheduler.ErrDeadlineBeforeStart},
	{"given_up", scheduler.ErrGivenUp},
	{"below_minimum", scheduler.ErrBelowMinimum},
	{"abandoned", scheduler.ErrAbandoned},
	{"overloaded", scheduler.ErrOverloaded},
	{"shutting_down", scheduler.ErrShuttingDown},
	{"fault", scheduler.ErrFault},
	{"context_deadline", context.DeadlineExceeded},
	{"context_cancelled", context.Canceled},
	{"other_tape", taskrun.ErrOtherTape},
	{"not_on_tape", taskrun.ErrNotOnTape},
}

// failure returns what a record says of an error; nil: there is none.
func failure(err error) *record.Failure {
	if err == nil {
		return nil
	}
	f := &record.Failure{Text: err.Error()}
	if node, ok := errors.AsType[*scheduler.NodeError](err); ok {
		f.Node, f.Text = node.Node, node.Err.Error()
	}
	var names []string
	for _, c := range classes {
		if errors.Is(err, c.err) {
			names = append(names, c.name)
		}
	}
	f.Class = strings.Join(names, ",")
	return f
}

// recorded is an error of a record. Immutable.
type recorded struct {
	text    string
	classes []error
}

// Error implements error.
func (r *recorded) Error() string { return r.text }

// Unwrap returns the errors that it matches.
func (r *recorded) Unwrap() []error { return r.classes }

// errorOf returns the error that a record has; nil: none.
func errorOf(f *record.Failure) error {
	if f == nil {
		return nil
	}
	r := &recorded{text: f.Text}
	for name := range strings.SplitSeq(f.Class, ",") {
		for _, c := range classes {
			if c.name == name {
				r.classes = append(r.classes, c.err)
			}
		}
	}
	return r
}
