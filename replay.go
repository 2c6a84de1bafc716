package rankd

import (
	"context"
	"fmt"
	"strings"

	"github.com/rankd/rankd/internal/generation"
	"github.com/rankd/rankd/internal/recorder"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/trace/record"
)

// Replayed is what became of a recorded request that was run again. Immutable; any goroutine.
type Replayed struct {
	// Difference is the first one between the record and this run; nil: they are equal.
	Difference *ReplayDifference
	Answer     *Answer // nil if Err is not
	Err        *Error  // of the request
}

// ReplayDifference says where a second run first differs from the record. Its String is one line. Immutable; any goroutine.
type ReplayDifference = recorder.Difference

// Replay runs a recorded request again: a plan of the generation that requests begin with, in any model and mode. It asks nobody
// for anything. how says what the run shows (Trace, Explain), and its Scheduling. It fails if the request cannot be run again: it is Marked, or the engine
// has another plan, or ctx ends. A body that waits gets its values at once, so how long the run takes means nothing.
func (in Intake) Replay(ctx context.Context, r *record.Request, from record.Source, how Request) (*Replayed, error) {
	explain := how.Explain
	how.Explain = Explain{}
	out, err := in.engine.replay(ctx, r, from, how, r.AllRows)
	if err == nil && explain.Asked() { // An explanation needs the rows that a node makes for nobody.
		how.Explain = explain
		var explained *Replayed
		if explained, err = in.engine.replay(ctx, r, from, how, true); err == nil {
			out.Answer = explained.Answer
		}
	}
	if err != nil {
		return nil, fmt.Errorf("request %s cannot be run again: %w", request.ID(r.ID), err)
	}
	return out, nil
}

func (e *Engine) replay(ctx context.Context, r *record.Request, from record.Source, how Request, allRows bool) (*Replayed, error) {
	played, c, err := e.played(ctx, e.kept.Present(), r, from, &how)
	if err != nil {
		return nil, err
	}
	played.AllRows = allRows
	w := &rankWait{done: make(chan struct{})}
	c.done = w.deliver
	if err := e.scheduler.Submit(&c.Execution, c.deliverFn); err != nil {
		c.free()
		return nil, err
	}
	select {
	case <-w.done:
	case <-ctx.Done(): // A body may wait for something of its own.
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	result := played.Runs[len(played.Runs)-1].Result
	out := &Replayed{Answer: w.answer}
	if w.answer != nil {
		result, w.answer.id = w.answer.result, r.ID // It is that answer again.
	} else {
		out.Err, _ = w.err.(*Error)
	}
	var now record.Request
	recorder.Fill(&now, played, result)
	before := func(run, node int) []int {
		n := played.Runs[run].Graph.Nodes[node]
		before := append(append([]int(nil), n.Inputs...), n.Refs...)
		if n.Fallback != nil {
			before = append(before, n.Fallback.Index)
		}
		return before
	}
	out.Difference = recorder.Compare(r, &now, before, func(op string) bool { return strings.HasPrefix(op, "core::") })
	return out, nil
}

// played prepares a request that plays a record.
func (e *Engine) played(ctx context.Context, g *generation.Generation, r *record.Request, from record.Source, how *Request) (*scheduler.Capture, *call, error) {
	if r.Marked || len(r.Runs) == 0 {
		return nil, nil, fmt.Errorf("its record has no values, since its user is not of the sample")
	}
	if is := e.options.maxRows(); r.MaxRows > 0 && r.MaxRows != is {
		return nil, nil, fmt.Errorf("its nodes might make %d rows together, and here they may make %d: open the engine with the MaxRows of the record", r.MaxRows, is)
	}
	graph, err := g.Choose(r.Plan)
	if err != nil {
		return nil, nil, err
	}
	params, err := request.ReadParams(r.Params, g.Registry)
	if err != nil {
		return nil, nil, err
	}
	capture := &scheduler.Capture{AllRows: r.AllRows}
	var rows []*record.Resident
	for i := range r.Runs {
		run := &r.Runs[i]
		of := graph
		if i > 0 { // A plan that answers in another's place has no fallback of its own.
			if of, err = g.Library.Get(run.Plan); err != nil {
				return nil, nil, err
			}
		}
		tapes, err := recorder.Tapes(run, of)
		if err != nil {
			return nil, nil, err
		}
		capture.Play = append(capture.Play, tapes)
		for name, digest := range run.Residents {
			kept, err := from.Resident(name, digest)
			if err != nil {
				return nil, nil, err
			}
			rows = append(rows, kept)
		}
	}
	residents, err := recorder.NewResidents(rows, g.Registry, func(name string) *registry.Entity { return entityOf(g, name) })
	if err != nil {
		return nil, nil, err
	}
	ids := residents.IDs.Extend()
	q := Request{Plan: r.Plan, UserID: r.UserID, UserIDText: r.UserIDText, ID: r.RequestID, Require: r.Require, Traffic: r.Traffic, Trace: how.Trace, Explain: how.Explain, Scheduling: how.Scheduling}
	q.SetParams(params)
	c := e.calls.Get().(*call)
	c.generation, c.RequestID, c.Context, c.Arrived = g, r.RequestID, ctx, e.clock.Now()
	if err := c.prepare(&q, graph, nil); err != nil {
		c.free()
		return nil, nil, err
	}
	c.unserved()
	params.SetUser(r.UserIDText)
	params.SetNow(r.Now)
	if graph.TextIDs || c.Fallback != nil && c.Fallback.TextIDs {
		params.SetIDs(ids)
	}
	c.Params, c.Residents, c.Deadline, c.recorded, c.Capture, c.sampled = params, residents, 0, nil, capture, false
	return capture, c, nil
}

// entityOf returns the entity of the rows of a plan; nil: it has none, or g lacks the plan.
func entityOf(g *generation.Generation, name string) *registry.Entity {
	graph, err := g.Choose(name)
	if err != nil || graph == nil {
		return nil
	}
	return graph.Nodes[graph.Outputs[0]].Entity
}
