package rankd

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
)

// The text of an error and its class follow from the error of the scheduler.
func TestErrorTextsAndClasses(t *testing.T) {
	redis := func(kind, cause error) error {
		return errors.Join(task.ErrRedis, &resp.OpError{Addr: "h:1", Kind: kind, Cause: cause})
	}
	for _, c := range []struct {
		err   error
		text  string
		class error
	}{
		{&scheduler.TimeoutError{Kind: scheduler.ErrRequestDeadline}, "Request deadline exceeded", ErrTimeout},
		{&scheduler.TimeoutError{Kind: scheduler.ErrNodeTimeout}, "Node execution timeout", ErrTimeout},
		{&scheduler.TimeoutError{Kind: scheduler.ErrDeadlineBeforeStart}, "Deadline exceeded before node start", ErrTimeout},
		{scheduler.ErrShuttingDown, "Shutting down", ErrClosed},
		{redis(resp.ErrConnectionLost, io.EOF), "Redis connection lost", ErrRedis},
		{redis(resp.ErrConnect, errors.New("refused")), "Redis connection failed", ErrRedis},
		{redis(resp.ErrTimeout, nil), "Redis timeout", ErrRedis},
		{redis(resp.ErrQueueFull, nil), "Redis in-flight limit exceeded", ErrBusy},
		{redis(resp.ErrConnectionLost, redis(resp.ErrProtocol, nil)), "Redis protocol error", ErrRedis},
		{redis(resp.ErrProtocol, nil), "Redis protocol error", ErrRedis},
		{redis(errors.New("WRONGTYPE"), nil), "Redis error", ErrRedis},
		{redis(&resp.ServerError{Message: "ERR x"}, nil), "Redis error", ErrRedis},
		{redis(&resp.ServerError{Message: "LOADING x"}, nil), "Redis is loading its data", ErrRedis},
		{redis(&resp.ServerError{Message: "READONLY x"}, nil), "Redis is a read-only replica", ErrRedis},
		{redis(&resp.ServerError{Message: "MASTERDOWN x"}, nil), "Redis replica has lost its primary", ErrRedis},
		{redis(&resp.ServerError{Message: "TRYAGAIN x"}, nil), "Redis Cluster is moving keys", ErrRedis},
		{redis(&resp.ServerError{Message: "CLUSTERDOWN x"}, nil), "Redis Cluster is down", ErrRedis},
		{redis(&resp.ServerError{Message: "MOVED 1 h:1"}, nil), "Redis Cluster redirects", ErrRedis},
		{redis(&resp.ServerError{Message: "ASK 1 h:1"}, nil), "Redis Cluster redirects", ErrRedis},
		{redis(&resp.ServerError{Message: "NOAUTH x"}, nil), "Redis wants a password", ErrRedis},
		{redis(&resp.ServerError{Message: "NOPERM x"}, nil), "Redis denies permission", ErrRedis},
		{redis(resp.ErrConnect, &resp.ServerError{Message: "NOAUTH x"}), "Redis wants a password", ErrRedis},
		{redis(resp.ErrConnect, &resp.ServerError{Message: "NOAUTH x", Sentinel: true}), "Redis connection failed", ErrRedis},
		{redis(resp.ErrConnect, redis(resp.ErrConnect, &resp.ServerError{Message: "NOAUTH x"})), "Redis wants a password", ErrRedis},
		{redis(resp.ErrConnect, &resp.ServerError{Message: "WRONGPASS"}), "Redis connection failed", ErrRedis},
		{redis(resp.ErrConnectionLost, &resp.ServerError{Message: "LOADING x"}), "Redis connection lost", ErrRedis},
		{cpupool.ErrQueueFull, "CPU queue full", ErrBusy},
		{&task.PanicError{Value: "x"}, "Task panicked", ErrPanic},
		{task.ErrContract, "Task contract violation", ErrContract},
		{&task.RowsError{Rows: 20, Limit: 10}, "Too many rows", ErrTooManyRows},
		{task.ErrInvalid, "Invalid node", ErrInvalidNode},
		{errors.New("no luck"), "Node execution failed", nil},
	} {
		e := runError("r", &scheduler.NodeError{Node: "n", Op: "core::vm", Err: c.err}, nil)
		assert.Equal(t, []string{"r", c.text, strings.ReplaceAll(c.err.Error(), "\n", " "), "n", "core::vm"}, []string{e.RequestID, e.Text, e.Detail, e.Node, e.Op})
		if c.class != nil {
			assert.ErrorIs(t, e, c.class, c.text)
		}
	}
	assert.Equal(t, "two lines", runError("r", errors.New("two\r\nlines\n"), nil).Detail)
	for text, err := range map[string]error{
		"Shutting down":             scheduler.ErrShuttingDown,
		"Request failed":            errors.New("x"),
		"Request deadline exceeded": &scheduler.TimeoutError{Kind: scheduler.ErrRequestDeadline, Elapsed: 12e6, Limit: 10e6},
	} {
		e := runError("", err, nil)
		assert.Equal(t, []string{text, err.Error(), ""}, []string{e.Text, e.Detail, e.Node})
	}
}

// Rank and Submit compile plans for their own engine, so their requests never meet these
// errors.
func TestARefusedPlanIsInvalid(t *testing.T) {
	for _, refused := range []error{scheduler.ErrNoPlan, scheduler.ErrForeignPlan} {
		err := runError("id", refused, nil)
		assert.Equal(t, "Invalid plan", err.Text)
		assert.Equal(t, refused.Error(), err.Detail)
		assert.True(t, errors.Is(err, ErrInvalidPlan) && errors.Is(err, refused))
	}
}
