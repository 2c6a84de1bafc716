package scheduler

import (
	"context"
	"math/rand/v2"
	"time"
)

// This file has what the simulation knows of admission: bounds, refusals, the turns of those that wait, and callers that go away.

// drawAdmission draws the bounds of a world. Most worlds have none.
func (w *simWorld) drawAdmission() {
	w.crowding = rand.New(rand.NewPCG(w.seed, 0x61646d6974))
	if w.crowding.Float64() < 0.3 {
		w.cfg.maxInflight, w.cfg.maxQueue = 1+w.crowding.IntN(6), w.crowding.IntN(12)
		w.crowds = [2]uint64{1 + w.crowding.Uint64N(3), 1 + w.crowding.Uint64N(4)}
	}
}

// drawAbandoned has the caller of some requests go away.
func (w *simWorld) drawAbandoned(q *simRequest) {
	if w.cfg.maxInflight == 0 || w.crowding.Float64() < 0.8 {
		return
	}
	ctx, goes := context.WithCancel(context.Background())
	q.req.Context = ctx
	w.sim.After(time.Duration(w.crowding.Int64N(int64(20*time.Millisecond))), func() {
		w.logf("the caller of %d goes away", q.user)
		goes()
	})
}

// drawFlow gives a request to a caller and a connection. The first of them ask for most.
func (w *simWorld) drawFlow(q *simRequest) {
	if w.cfg.maxInflight > 0 && w.crowding.Float64() < 0.7 {
		callers, connections := w.crowds[0], w.crowds[1]
		q.flow = Flow{Caller: w.crowding.Uint64N(1 + w.crowding.Uint64N(callers)), Connection: w.crowding.Uint64N(1 + w.crowding.Uint64N(connections))}
		q.req.Flow = q.flow
	}
}

// callerOf returns the first flow of a caller, or the flow itself if it has no caller.
func callerOf(f Flow) Flow {
	if f.Caller != 0 {
		f.Connection = 0
	}
	return f
}

// simQueue is who has a right to a place in the queue, counted from the requests.
type simQueue struct {
	claims map[Flow]int
	all    int // of flows, and of requests that came while there was a place to run at
}

// queue counts who has a right to a place. Of a share it reads only what it owes.
func (w *simWorld) queue() simQueue {
	inside := simQueue{claims: map[Flow]int{}}
	a := &w.engine.admission
	runs, waits := map[int64]bool{}, map[int64]bool{}
	for r := w.engine.runs.First(); r != nil; r = r.link.Next() {
		runs[r.Req.UserID] = true
	}
	for _, s := range a.shares {
		for waiting := s.queue.First(); waiting != nil; waiting = waiting.place.Next() {
			waits[waiting.UserID] = true
			w.requests[waiting.UserID-1].since = waiting.since
		}
	}
	for _, q := range w.requests {
		if q.taken && q.answers == 0 {
			if !runs[q.user] && (q.contends || waits[q.user]) {
				inside.claims[q.flow]++
			} else {
				inside.all++
			}
		}
	}
	for flow, s := range a.shares {
		inside.claims[flow] -= s.owed
	}
	for _, n := range inside.claims {
		inside.all += n
	}
	return inside
}

// of returns the right of the caller of a flow.
func (q simQueue) of(f Flow) (sum int) {
	for flow, n := range q.claims {
		if callerOf(flow) == callerOf(f) {
			sum += n
		}
	}
	return sum
}

// mayTakeFrom reports whether a newcomer has a better right to a place than a flow.
func (q simQueue) mayTakeFrom(loser, newcomer Flow) bool {
	most, own := 0, q.of(newcomer)
	for flow := range q.claims {
		most = max(most, q.of(flow))
	}
	if most > own+1 {
		if q.of(loser) < most {
			return false
		}
	} else if callerOf(loser) != callerOf(newcomer) || q.claims[loser] <= q.claims[newcomer]+1 {
		return false
	}
	for flow, n := range q.claims { // The loser is the connection of its caller with the most.
		if callerOf(flow) == callerOf(loser) && n > q.claims[loser] {
			return false
		}
	}
	return true
}

// ask submits a request, and checks whether the engine takes it: with room, or at the cost of another that has more.
func (w *simWorld) ask(q *simRequest) {
	before, owed := w.queue(), map[Flow]int{}
	for flow, s := range w.engine.admission.shares {
		owed[flow] = s.owed
	}
	w.check(w.cfg.maxInflight == 0 || w.engine.admission.held.Load() == int64(before.all), "%d requests have places, counted %d", before.all, w.engine.admission.held.Load())
	q.came = w.sim.Now()
	w.submitting = true
	err := w.engine.Submit(&q.req, func(r *Result) { w.answered(q, r) })
	w.submitting = false
	full := w.cfg.maxInflight > 0 && before.all >= w.cfg.maxInflight+w.cfg.maxQueue
	q.contends = w.cfg.maxInflight > 0 && before.all >= w.cfg.maxInflight
	if err != nil {
		w.logf("refusal of %d: %v", q.user, err)
		w.check(err == ErrOverloaded && full, "request %d was refused with %v beside %d others", q.user, err, before.all)
		for flow := range before.claims {
			w.check(!before.mayTakeFrom(flow, q.flow), "request %d of %v was refused, and %v has more", q.user, q.flow, flow)
		}
		w.answers[kindOf(err)]++
		q.answers++
		q.overloaded = true
		return
	}
	q.taken = true
	w.held++
	lost := 0
	for flow, s := range w.engine.admission.shares {
		for ; owed[flow] < s.owed; owed[flow]++ {
			lost++
			w.check(before.mayTakeFrom(flow, q.flow), "request %d of %v took the place of %v: %v", q.user, q.flow, flow, before.claims)
		}
	}
	w.check(full == (lost == 1) && lost <= 1, "request %d was taken beside %d others, and %d are refused for it", q.user, before.all, lost)
}

// leaves takes the answer to a request. If the request was taken and then refused, it was the newest of its flow.
func (w *simWorld) leaves(q *simRequest, r *Result) {
	failed := w.engine.counted().Failed
	q.left, q.delay, q.ran = w.sim.Now(), r.QueueDelay, r.Err == nil || failed > w.failed
	w.failed = failed
	if r.Err != ErrOverloaded {
		return
	}
	q.overloaded = true
	w.check(len(q.begun) == 0, "request %d was refused, and has begun", q.user)
	if s := w.engine.admission.shares[q.flow]; s != nil {
		for waiting := s.queue.First(); waiting != nil; waiting = waiting.place.Next() {
			w.check(waiting.UserID < q.user, "request %d was refused, and request %d of the same flow waits", q.user, waiting.UserID)
		}
	}
}

// checkAdmission checks the queue when the loop has nothing left to do at an instant.
func (w *simWorld) checkAdmission() {
	a, e := &w.engine.admission, w.engine
	w.check(a.Running() == e.runs.Len(), "%d requests run, counted %d", e.runs.Len(), a.Running())
	w.check(w.held == e.runs.Len()+a.Queued(), "%d requests are unanswered, %d run and %d wait", w.held, e.runs.Len(), a.Queued())
	w.check(w.cfg.maxInflight == 0 || a.held.Load() == int64(w.held), "%d requests are unanswered, counted %d", w.held, a.held.Load())
	w.check(a.Queued() <= w.cfg.maxQueue, "%d requests wait", a.Queued())
	w.check(a.Queued() == 0 || a.Running() == w.cfg.maxInflight, "%d requests wait, and only %d of %d run", a.Queued(), a.Running(), w.cfg.maxInflight)
	for r := e.runs.First(); r != nil; r = r.link.Next() {
		if s := a.shares[w.requests[r.Req.UserID-1].flow]; s != nil && s.queue.Len() > 0 {
			waits := s.queue.First().UserID
			w.check(r.Req.UserID < waits, "request %d runs, and request %d of the same flow, which came before, waits", r.Req.UserID, waits)
		}
	}
	claims := 0
	for flow, s := range a.shares {
		w.check(s.owed == 0 && s.coming == 0 && s.claim == s.queue.Len() && s.claim > 0, "the share of %v has %d requests, claims %d, owes %d, and %d are coming",
			flow, s.queue.Len(), s.claim, s.owed, s.coming)
		claims += s.claim
		last := int64(0)
		for waiting := s.queue.First(); waiting != nil; waiting = waiting.place.Next() {
			q := w.requests[waiting.UserID-1]
			w.check(q.flow == flow, "request %d of %v waits as one of %v", q.user, q.flow, flow)
			w.check(q.user > last, "request %d waits behind request %d", q.user, last)
			w.check(!waiting.Deadline.Passed(w.sim.Now()), "request %d waits past its deadline", q.user)
			w.check(len(q.begun) == 0, "request %d waits, and has begun", q.user)
			q.since = waiting.since
			last = q.user
		}
	}
	w.check(claims == a.Queued() && a.all.claim == claims, "%d requests wait, shares have %d", a.Queued(), claims)
}

// checkTurns checks for each request that waited: while it did, another connection of its caller began at most one request
// more than its own connection, and another caller at most one more than its own. So a newcomer waits for one of each other at most.
// What may have begun while it waited counts for its own.
func (w *simWorld) checkTurns() {
	for _, q := range w.requests {
		if q.since == 0 || !q.ran {
			continue
		}
		end, own, ofCaller, others, callers := q.since.Add(q.delay), 1, 1, map[Flow]int{}, map[Flow]int{}
		for _, p := range w.requests {
			if p == q || !p.ran {
				continue
			}
			first, last := p.came, p.left // between which it began
			if p.since != 0 {
				first = p.since.Add(p.delay)
				last = first
			}
			switch {
			case callerOf(p.flow) != callerOf(q.flow):
				if p.since != 0 && first > q.since && last < end {
					callers[callerOf(p.flow)]++
				}
			case last >= q.since && first <= end:
				ofCaller++
				if p.flow == q.flow {
					own++
				} else if p.since != 0 && first > q.since && last < end {
					others[p.flow]++
				}
			}
		}
		for flow, n := range others {
			w.check(n <= own, "request %d of %v waited while %d of %v began, and %d of its own connection", q.user, q.flow, n, flow, own-1)
		}
		for flow, n := range callers {
			w.check(n <= ofCaller, "request %d of %v waited while %d of the caller of %v began, and %d of its own", q.user, q.flow, n, flow, ofCaller-1)
		}
	}
}

// checkBegun checks that each request that the engine has taken has begun, or has left the queue in another way.
func (w *simWorld) checkBegun() {
	taken, refused := uint64(0), uint64(0)
	for _, q := range w.requests {
		switch {
		case q.overloaded:
			refused++
		case !q.refused:
			taken++
		}
	}
	w.checkTurns()
	s := w.engine.admission.Stats()
	w.check(s.Refused == refused, "%d requests were refused, counted %d", refused, s.Refused)
	begun := w.engine.counted().Requests
	w.check(begun+s.Expired+s.Dropped == taken, "%d requests begun, %d expired and %d dropped of %d", begun, s.Expired, s.Dropped, taken)
	held := w.engine.admission.held.Load()
	w.check(len(w.engine.admission.shares) == 0 && len(w.engine.admission.callers) == 0, "shares are left after the last answer")
	w.check(w.held == 0 && held == 0, "%d requests are unanswered, and %d hold a place, after the last answer", w.held, held)
}
