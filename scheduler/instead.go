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

// Instead says that a request has the answer, or the error, of another plan than it asked for. Immutable; any goroutine.
type Instead struct {
	Of  *plan.Graph // that the request asked for
	Err error       // why that plan did not answer: a *BelowMinimumError if it had too few rows
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
	case errors.Is(err, ErrAbandoned), errors.Is(err, ErrShuttingDown), errors.Is(err, ErrFault), errors.As(err, new(*expr.ParamError)):
		return false
	}
	x.Graph, x.Fallback, x.instead, x.resumed = x.Fallback, nil, &Instead{Of: x.Graph, Err: err}, now
	return true
}
