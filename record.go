package rankd

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"runtime/debug"

	"github.com/rankd/rankd/internal/generation"
	"github.com/rankd/rankd/internal/recorder"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/trace/record"
)

// openRecorder makes what records requests, if somebody wants records.
func (e *Engine) openRecorder() {
	o := &e.options
	if o.Record == nil {
		return
	}
	e.recorder = recorder.New(recorder.Config{
		To: o.Record, Users: o.RecordUsers, Report: e.reportRecords,
		Generations: func(g *generation.Generation) (*record.Generation, error) {
			return e.kept.Contents(g, !o.RecordNoModels)
		},
	})
}

func (e *Engine) reportRecords(err error) bool {
	if err == nil {
		return e.lines.Put(slog.LevelInfo, "requests are recorded again", func() []slog.Attr { return nil })
	}
	return e.lines.Put(slog.LevelError, "records of requests are lost", func() []slog.Attr { return []slog.Attr{slog.Any("error", err)} })
}

// closeRecorder makes the records that wait.
func (e *Engine) closeRecorder() {
	if e.recorder == nil {
		return
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), servedPatience, errors.New("records take too long to write"))
	defer cancel()
	_ = e.recorder.Close(ctx) // It has reported and counted what it lost.
}

// Records says what became of the requests that were to be recorded. A copy; any goroutine.
type Records = recorder.Counts

// Records counts records so far. It never waits.
func (e *Engine) Records() Records {
	if e.recorder == nil {
		return Records{}
	}
	return e.recorder.Counts()
}

// record begins the record of a request that runs graph, if it is to have one.
func (c *call) record(r *Request, graph *plan.Graph) {
	rec := c.engine.recorder
	if rec == nil || graph == nil || !rec.Wants(r) {
		return
	}
	c.recorded = &recorder.Job{Generation: c.generation, Params: c.Params, Residents: c.Residents, Request: record.Request{
		RequestID: r.ID, UserID: r.UserID, UserIDText: r.UserIDText, Arrived: c.date, Traffic: r.Traffic, Plan: graph.Name,
		Alias: c.aliasName(), Side: c.side, Require: r.Require, Model: string(c.engine.options.Model), Scheduling: string(cmp.Or(c.Mode, c.engine.options.Scheduling.Mode)), MaxRows: c.engine.options.maxRows(),
	}}
	c.recorded.Request.Now, _ = c.Params.Now()
	c.Capture = &c.recorded.Capture
}

// endRecord hands the record of a request that has run to the goroutine that makes it. A panic must not keep the answer from its caller.
func (c *call) endRecord(a *Answer, failed error, result *scheduler.Result) {
	defer func() {
		if recovered := recover(); recovered != nil {
			c.engine.logFault("while a request was recorded", "", recovered, debug.Stack())
		}
	}()
	j := c.recorded
	if j == nil || len(j.Runs) == 0 || errors.Is(result.Err, scheduler.ErrFault) {
		return // It has never run, or the engine has broken it.
	}
	j.Result, j.Request.Waited = result, result.QueueDelay
	if f, ok := failed.(*Error); ok {
		j.Request.Elapsed = f.Elapsed
	}
	if j.Request.ID = request.NewIDBits(); a != nil {
		j.Request.Elapsed = a.Elapsed
		if a.id == [16]byte{} {
			a.id = j.Request.ID
		}
		j.Request.ID = a.id
	}
	c.engine.recorder.Put(j)
}
