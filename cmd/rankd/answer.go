package main

import (
	"errors"
	"fmt"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/internal/excerpt"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/request"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
)

// The error texts of answers to requests that were sound but could not be
// served. Those about time are the original engine's.
const (
	errorRequestDeadline     = "Request deadline exceeded"
	errorNodeTimeout         = "Node execution timeout"
	errorDeadlineBeforeStart = "Deadline exceeded before node start"

	errorUnknownPlan  = "Unknown plan"
	errorInvalidPlan  = "Invalid plan"
	errorShuttingDown = "Shutting down"

	// Of Redis: no connection could be made, or it was lost; no answer in time; too much in
	// flight; bytes that are no answer; and an answer that is an error.
	errorRedisConnect  = "Redis connection failed"
	errorRedisLost     = "Redis connection lost"
	errorRedisTimeout  = "Redis timeout"
	errorRedisBusy     = "Redis in-flight limit exceeded"
	errorRedisProtocol = "Redis protocol error"
	errorRedis         = "Redis error"

	errorRows      = "Too many rows"
	errorPoolBusy  = "CPU queue full"
	errorPanic     = "Task panicked"
	errorContract  = "Task contract violation"
	errorParameter = "Invalid node"
	errorNode      = "Node execution failed" // whatever else a task may report
	errorRun       = "Request failed"
)

// choosePlan returns the plan for a request that asks for name, "" if it asks
// for none. The plan is nil if the answer is synthetic.
func (a *app) choosePlan(name string) (*plan.Graph, *request.Failure) {
	switch {
	case a.plan != nil && (name == "" || name == a.plan.Name):
		return a.plan, nil
	case name == "" && a.synthetic():
		return nil, nil
	case name == "":
		return nil, &request.Failure{Error: request.CodeInvalid,
			Detail: `plan is missing, and the program has none for such a request: --plan_dir stands without --plan_name or --plan`}
	}
	graph, err := a.library.Get(name)
	switch {
	case err == nil:
		return graph, nil
	case errors.Is(err, plan.ErrUnknown), errors.Is(err, plan.ErrBadName):
		return nil, &request.Failure{Error: errorUnknownPlan, Detail: err.Error()}
	default:
		return nil, &request.Failure{Error: errorInvalidPlan, Detail: err.Error()}
	}
}

// synthetic reports whether a request that names no plan gets the synthetic answer: no
// flag says where plans come from.
func (a *app) synthetic() bool { return a.plan == nil && a.opts.planDir == "" }

// syntheticOutputs is the synthetic answer: five candidates without fields.
func syntheticOutputs() []rowset.RowSet {
	return []rowset.RowSet{rowset.Dense(&rowset.Batch{IDs: []int64{1, 2, 3, 4, 5}})}
}

// failureOf describes what an engine reports: the text for what kind of failure it
// is, the detail for this one.
func failureOf(err error) request.Failure {
	f := request.Failure{Error: errorRun}
	var node *scheduler.NodeError
	if errors.As(err, &node) {
		f = request.Failure{Error: errorNode, Node: excerpt.Cut(node.Node), Op: node.Op}
		err = node.Err
	}
	f.Detail = err.Error()
	for _, known := range [...]struct {
		kind error
		text string
	}{
		{scheduler.ErrRequestDeadline, errorRequestDeadline},
		{scheduler.ErrNodeTimeout, errorNodeTimeout},
		{scheduler.ErrDeadlineBeforeStart, errorDeadlineBeforeStart},
		{scheduler.ErrShuttingDown, errorShuttingDown},
		// An error of Redis matches task.ErrRedis too, and may have another of these as its cause.
		{resp.ErrConnectionLost, errorRedisLost},
		{resp.ErrTimeout, errorRedisTimeout},
		{resp.ErrConnect, errorRedisConnect},
		{resp.ErrQueueFull, errorRedisBusy},
		{resp.ErrProtocol, errorRedisProtocol},
		{task.ErrRedis, errorRedis},
		{cpupool.ErrQueueFull, errorPoolBusy},
		{task.ErrPanic, errorPanic},
		{task.ErrContract, errorContract},
		{task.ErrTooManyRows, errorRows},
		{task.ErrInvalid, errorParameter},
	} {
		if errors.Is(err, known.kind) {
			f.Error = known.text
			break
		}
	}
	return f
}

// refusal describes an error of package request, or of reading.
func refusal(err error) request.Failure {
	var refused *request.Error
	if errors.As(err, &refused) {
		return request.Failure{RequestID: refused.RequestID, Error: refused.Code, Detail: refused.Detail}
	}
	return request.Failure{RequestID: request.NewID(), Error: request.CodeInvalidJSON, Detail: fmt.Sprintf("reading failed: %v", err)}
}
