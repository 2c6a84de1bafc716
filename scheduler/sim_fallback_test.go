package scheduler

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/trace"
)

// This file has what the simulation knows of plans with too few rows, and of plans that answer in their place. It counts
// rows in the results of the reference, and knows a fallback as a second request of the same user.

// drawFalls draws whether the plans of a world have minimums. Most have none.
func (w *simWorld) drawFalls() {
	rng := rand.New(rand.NewPCG(w.seed, 0x66616c6c))
	if rng.Float64() < 0.2 {
		w.falls = rng
	}
}

// beEnough gives the plan minimums, what happens below them, and outputs that are pages. The nodes of the pages come last.
func (m *planMaker) beEnough(name string, outputs []string, order []int) ([]string, []int) {
	rng := m.w.falls
	var minimums []string
	for i := range outputs {
		if rng.IntN(3) == 0 {
			id := m.id(len(m.nodes))
			m.text = append(m.text, fmt.Sprintf(`{"node_id": %q, "op": "take", "inputs": [%s], "params": {"count": %d, "offset": %d}`,
				id, outputs[i], 1+rng.IntN(6), rng.IntN(8)))
			order, m.nodes, outputs[i] = append(order, len(m.nodes)), append(m.nodes, plannedNode{}), fmt.Sprintf("%q", id)
		}
		minimums = append(minimums, fmt.Sprint(rng.IntN(9)))
	}
	below := []string{"mark", "error", "another", "another"}[rng.IntN(4)]
	if below == "another" && m.policy == "" {
		m.policy = fmt.Sprintf(`, "lenient": {"answer_by": "%d%%"}`, 1+rng.IntN(99))
	}
	m.policy += fmt.Sprintf(`, "min_rows": [%s], "below": %q`, strings.Join(minimums, ","), below)
	return outputs, order
}

// drawFallback gives a request the plan that its own names. That is any other plan of the world.
func (w *simWorld) drawFallback(q *simRequest) {
	others := slices.DeleteFunc(slices.Clone(w.plans), func(g *plan.Graph) bool { return g == q.graph })
	if w.falls == nil || q.graph.Below.Plan() == "" || len(q.required) > 0 || len(others) == 0 {
		return
	}
	q.req.Fallback, q.req.Record = others[w.falls.IntN(len(others))], trace.Off
	then := *q
	then.graph, then.begun, then.spans, then.lateBodies, then.faults = q.req.Fallback, map[int]bool{}, map[int]*simSpan{}, map[int]bool{}, map[int][]fault{}
	q.then = &then
	if q.deadline != 0 { // That of the plan is its share.
		q.deadline = q.arrived.Add(partOf(q.graph.AnswerBy, q.deadline.Sub(q.arrived)))
	}
	w.logf("request %d falls back to %s, from %v on", q.user, then.graph.Name, time.Duration(q.deadline))
}

// partOf returns that share of d, rounded to a lower number of nanoseconds.
func partOf(p plan.Percent, d time.Duration) time.Duration {
	if d < 0 {
		return -partOf(p, -d)
	}
	high, low := bits.Mul64(uint64(d), uint64(p))
	part, _ := bits.Div64(high, low, 100)
	return time.Duration(part)
}

// checkFell notes when a fallback runs, and checks that its time was kept for it.
func (w *simWorld) checkFell(r *run, now clock.Time) {
	q := w.requests[r.Req.UserID-1]
	switch {
	case q.then == nil:
	case r.Req.Graph == q.then.graph:
		w.check(r.Req.Fallback == nil, "request %d may fall back again", q.user)
		if q.then.fell == 0 {
			q.then.fell = now
		}
	default:
		w.check(len(q.then.begun) == 0, "request %d runs its own plan again", q.user)
		w.check(w.stalled || q.deadline == 0 || now < q.deadline.Add(lateness), "request %d: the plan runs on after its share of the time, %s", q.user, q.graph.AnswerBy)
	}
}

// judgeFall checks whether the right plan has answered, and returns the request as that plan had it.
func (w *simWorld) judgeFall(q *simRequest, r *Result) *simRequest {
	then := q.then
	over := q.req.Deadline.Passed(w.sim.Now()) || q.req.Context != nil && q.req.Context.Err() != nil
	answers := q
	switch instead, failed := r.Instead(), r.FailedFallback(); {
	case instead != nil:
		w.answers["of a fallback"]++
		w.check(instead.Of == q.graph && failed == nil, "request %d has the answer of another plan in place of %s", q.user, instead.Of.Name)
		w.checkWhy(q, instead.Err)
		w.check(!helpless(instead.Err), "request %d fell back although it failed with %v", q.user, instead.Err)
		answers = then
		if short := (*BelowMinimumError)(nil); r.Err != nil && errors.As(instead.Err, &short) && !errors.Is(r.Err, ErrBelowMinimum) {
			w.check(helpless(r.Err), "request %d had %d rows, and got %v", q.user, short.Rows, r.Err)
		}
	case failed != nil:
		w.answers["in place of a fallback that failed"]++
		w.check(failed.Of == then.graph && r.Err == nil, "request %d has a fallback that failed, and %v", q.user, r.Err)
		w.check(r.Short() != nil, "request %d has all its rows, and a fallback", q.user)
		w.checkWhy(then, failed.Err)
	default:
		w.check(len(then.begun) == 0, "request %d does not say that its fallback ran", q.user)
		never := errors.Is(r.Err, ErrOverloaded) || errors.Is(r.Err, ErrNotAdmitted)
		w.check(r.Err == nil && r.Short() == nil || over || never || helpless(r.Err), "request %d got %v, and has too few rows: %v, and did not fall back", q.user, r.Err, r.Short())
	}
	return answers
}

// helpless reports whether another plan would not help.
func helpless(err error) bool {
	return errors.Is(err, ErrAbandoned) || errors.Is(err, ErrShuttingDown) || errors.As(err, new(*expr.ParamError))
}

// checkWhy checks why a plan did not answer. What its lenient nodes have lost is not known.
func (w *simWorld) checkWhy(q *simRequest, err error) {
	if q.graph.Lenient || w.cfg.maxRows > 0 {
		return
	}
	want := w.lab.reference(q, nil)
	var short *BelowMinimumError
	if errors.As(err, &short) {
		all := want.short(q)
		w.check(len(want.failures) == 0 && len(all) > 0 && all[0] == short.Short, "request %d: the plan %s was left because %v, and has too few rows in %v", q.user, q.graph.Name, err, all)
		return
	}
	w.check(slices.Contains(want.failures, err.Error()) || w.mayFail(q, err), "request %d: the plan %s was left because %v", q.user, q.graph.Name, err)
}

// short returns the outputs with too few rows.
func (ref *reference) short(q *simRequest) (all []plan.Short) {
	for i, least := range q.graph.MinRows {
		n, rows := q.graph.Nodes[q.graph.Outputs[i]], ref.outputs[i].N
		for page := n; ; page = q.graph.Nodes[page.Inputs[0]] {
			loses := page.OnError != plan.OnErrorFail && page.OnError != plan.OnErrorSkip && page.OnError != plan.OnErrorNull
			if loses || len(page.Inputs) != 1 {
				break
			}
			if page.Op == "core::take" {
				rows = ref.results[page.Inputs[0]].N
				least = min(least, int(page.Params.Int("offset")+page.Params.Int("count")))
				break
			}
			if page.Schema.KeepsRows == nil || !page.Schema.KeepsRows(page) {
				break
			}
		}
		if rows < least {
			all = append(all, plan.Short{Output: fmt.Sprint(i), Index: i, Rows: rows, MinRows: least})
		}
	}
	return all
}

// checkEnough compares what an answer says of too few rows with the reference. It reports whether they are the error.
func (w *simWorld) checkEnough(q *simRequest, r *Result, want *reference) bool {
	var below *BelowMinimumError
	isBelow := errors.As(r.Err, &below)
	if r.Err != nil && !isBelow || len(want.failures) > 0 {
		return false
	}
	short := want.short(q)
	if len(short) > 0 {
		w.answers["too few rows"]++
	}
	if q.graph.Below == plan.BelowError && len(short) > 0 {
		w.answers["below minimum"]++
		w.check(isBelow && below.Short == short[0] && r.Outputs == nil, "request %d got %v, and has too few rows: %v", q.user, r.Err, short)
		return true
	}
	w.check(!isBelow && slices.Equal(r.Short(), short), "request %d got %v, says that it has too few rows: %v, and has in %v", q.user, r.Err, r.Short(), short)
	return false
}
