package scheduler

import (
	"errors"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
)

// A plan may name another one that answers in its place: see plan.Below. To the caller, to the admission and to the
// counts both are one request.
//
//	admitted ─▶ a run of Graph, by its share of the time ─┬─ enough rows ─────────────────────────────────▶ done
//	                                                      └─ FallsBack ─▶ a run of Fallback, in the rest ─▶ done

// Instead says that a request has the answer, or the error, of another plan than one that should have answered. Immutable; any
// goroutine.
type Instead struct {
	Of  *plan.Graph // that should have answered
	Err error       // why that plan did not answer: a *BelowMinimumError if it had too few rows
}

// former is what a plan with too few rows has left, while its fallback runs.
type former struct {
	result *Result // nil: it has failed
	served Served
}

// shareOf returns when a share of the time from an instant to the deadline is over, zero if there is none.
func shareOf(p plan.Percent, from, deadline clock.Time) clock.Time {
	if p == 0 || deadline == 0 {
		return 0
	}
	return from.Add(p.Of(deadline.Sub(from)))
}

// apportion gives a run its part of the request's time. A plan with a fallback has its share of it. What the plan calls
// a share of its time counts in that part.
func (x *Execution) apportion(b *bounds) {
	if x.Fallback != nil {
		b.deadline = b.answerBy
		b.answerBy = shareOf(x.Graph.AnswerBy, x.arrived, b.deadline)
	} else if x.instead != nil {
		b.answerBy = shareOf(x.Graph.AnswerBy, x.resumed, b.deadline)
	}
}

// FallsBack reports whether the fallback of the request answers instead, and makes it the plan that runs next. A plan
// that fails has too few rows, too, unless its request is at fault, or is over.
func (r *Run) FallsBack(result *Result, now clock.Time) bool {
	x, err := r.Req, result.Err
	switch short := result.Short(); {
	case x.Fallback == nil || x.contextErr() != nil || x.Deadline.Passed(now):
		return false
	case err == nil && short == nil:
		return false
	case err == nil:
		err = &BelowMinimumError{short[0]}
	case isFinal(err):
		return false
	}
	x.Graph, x.Fallback, x.instead, x.resumed = x.Fallback, nil, &Instead{Of: x.Graph, Err: err}, now
	return true
}

// isFinal reports whether no other plan can help a request that fails with err: it is at fault, or over.
func isFinal(err error) bool {
	return errors.Is(err, ErrAbandoned) || errors.Is(err, ErrShuttingDown) || errors.Is(err, ErrFault) || errors.As(err, new(*expr.ParamError))
}

// Keep keeps what a plan with too few rows has made: it is the answer if the fallback fails, too. The engine calls it after
// FallsBack.
func (x *Execution) Keep(result *Result) {
	if result.Err != nil {
		return
	}
	if x.former.result = result; x.Served != nil {
		x.former.served, *x.Served = *x.Served, Served{}
	}
}

// Settled returns the result of a request whose last run has ended with this one. If that was of a fallback, which has failed,
// the result is that of the plan with too few rows, unless the fallback wants an error for too few.
func (x *Execution) Settled(last *Result) *Result {
	f := x.former
	x.former = former{}
	if f.result == nil || last.Err == nil || isFinal(last.Err) || errors.Is(last.Err, ErrBelowMinimum) {
		f.served.Release()
		return last
	}
	m := f.result.said()
	m.failedFallback = &Instead{Of: x.Graph, Err: last.Err}
	f.result.remarks, f.result.Recording, f.result.Cost, f.result.QueueDelay = &m, last.Recording, last.Cost, last.QueueDelay
	if x.Graph, x.instead = x.instead.Of, nil; x.Served != nil {
		*x.Served = f.served
	}
	return f.result
}
