package scheduler

import (
	"context"
	"math/rand/v2"
	"time"
)

// This file has what the simulation knows of admission: bounds, refusals, the turns of requests
// that wait, and callers that go away.

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

// drawFlow gives a request to a caller and a connection. The caller and the connection with the
// lowest numbers get most requests.
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

// simQueue holds by flow how many requests wait.
type simQueue map[Flow]int

// queue counts the requests that wait, and notes since when each does.
func (w *simWorld) queue() simQueue {
	queue := simQueue{}
	for flow, s := range w.engine.admission.shares {
		for waiting := s.queue.First(); waiting != nil; waiting = waiting.place.Next() {
			w.requests[waiting.UserID-1].since = waiting.since
		}
		queue[flow] = s.queue.Len()
	}
	return queue
}

// places counts the requests that run, or are about to, or wait.
func (w *simWorld) places() (n int) {
	for _, q := range w.requests {
		if q.taken && q.answers == 0 && !q.overloaded {
			n++
		}
	}
	return n
}

// of returns how many requests of the caller of a flow wait.
func (q simQueue) of(f Flow) (sum int) {
	for flow, n := range q {
		if callerOf(flow) == callerOf(f) {
			sum += n
		}
	}
	return sum
}

// mayTakeFrom reports whether a newcomer has a better claim to a place than a flow that has it.
func (q simQueue) mayTakeFrom(loser, newcomer Flow) bool {
	most, own := 0, q.of(newcomer)
	for flow := range q {
		most = max(most, q.of(flow))
	}
	if most > own+1 {
		if q.of(loser) < most {
			return false
		}
	} else if callerOf(loser) != callerOf(newcomer) || q[loser] <= q[newcomer]+1 {
		return false
	}
	for flow, n := range q { // The loser has more requests than any other connection of its caller.
		if callerOf(flow) == callerOf(loser) && n > q[loser] {
			return false
		}
	}
	return true
}

// ask submits a request, and checks whether the engine takes it: because there is room, or at
// the cost of a flow that has more.
func (w *simWorld) ask(q *simRequest) {
	before, places := w.queue(), w.places()
	running, waiting := w.engine.admission.Held()
	w.check(running+waiting == places, "%d requests have places, counted %d", places, running+waiting)
	newest := map[Flow]int64{}
	for flow, s := range w.engine.admission.shares {
		newest[flow] = s.queue.Last().UserID
	}
	q.came = w.sim.Now()
	w.submitting = true
	err := w.engine.Submit(&q.req, func(r *Result) { w.answered(q, r) })
	w.submitting = false
	full := w.cfg.maxInflight > 0 && places >= w.cfg.maxInflight+w.cfg.maxQueue
	if err != nil {
		w.logf("refusal of %d: %v", q.user, err)
		if q.refused {
			w.check(err == ErrShuttingDown, "request %d came after Close and got %v", q.user, err)
		} else {
			w.check(err == ErrOverloaded && full, "request %d was refused with %v beside %d others", q.user, err, places)
			for flow := range before {
				w.check(!before.mayTakeFrom(flow, q.flow), "request %d of %v was refused, and %v has more", q.user, q.flow, flow)
			}
			q.overloaded = true
		}
		w.answers[kindOf(err)]++
		q.answers++
		return
	}
	w.check(!q.refused, "request %d came after Close and was taken", q.user)
	q.taken = true
	w.held++
	after, lost := w.queue(), 0
	if s := w.engine.admission.shares[q.flow]; s != nil && s.queue.Last().UserID == q.user {
		after[q.flow]--
	}
	for flow, n := range before {
		for ; n > after[flow]; n-- {
			lost++
			w.requests[newest[flow]-1].overloaded = true
			w.check(before.mayTakeFrom(flow, q.flow), "request %d of %v took the place of %v: %v", q.user, q.flow, flow, before)
		}
	}
	w.check(full == (lost == 1) && lost <= 1, "request %d was taken beside %d others, and %d are refused for it", q.user, places, lost)
}

// leaves takes the answer to a request.
func (w *simWorld) leaves(q *simRequest, r *Result) {
	failed := w.engine.counted().Failed
	q.left, q.delay, q.ran = w.sim.Now(), r.QueueDelay, r.Err == nil || failed > w.failed
	w.failed = failed
	if r.Err != ErrOverloaded {
		return
	}
	w.check(q.overloaded, "request %d was refused, and another has lost its place", q.user)
	w.check(len(q.begun) == 0, "request %d was refused, and has begun", q.user)
}

// checkAdmission checks the queue when the loop has nothing left to do at an instant.
func (w *simWorld) checkAdmission() {
	a, e := &w.engine.admission, w.engine
	running, waiting := a.Held()
	w.check(running == e.runs.Len(), "%d requests run, counted %d", e.runs.Len(), running)
	w.check(w.held == running+waiting, "%d requests are unanswered, %d run and %d wait", w.held, running, waiting)
	w.check(waiting <= w.cfg.maxQueue, "%d requests wait", waiting)
	w.check(waiting == 0 || running == w.cfg.maxInflight, "%d requests wait, and only %d of %d run", waiting, running, w.cfg.maxInflight)
	w.check(a.fresh.Len() == 0, "%d requests wait without a timer", a.fresh.Len())
	for r := e.runs.First(); r != nil; r = r.link.Next() {
		if s := a.shares[w.requests[r.Req.UserID-1].flow]; s != nil && s.queue.Len() > 0 {
			waits := s.queue.First().UserID
			w.check(r.Req.UserID < waits, "request %d runs, and request %d of the same flow, which came before, waits", r.Req.UserID, waits)
		}
	}
	all := 0
	for flow, s := range a.shares {
		w.check(s.waiting == s.queue.Len() && s.waiting > 0, "the share of %v has %d requests, counted %d", flow, s.queue.Len(), s.waiting)
		all += s.waiting
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
	w.check(all == waiting, "%d requests wait, shares have %d", waiting, all)
}

// checkTurns checks the turns of each request that waited. Another connection of its caller
// began at most one request more than its own connection meanwhile. Another caller began at
// most one more than its own caller did. So a newcomer waits for one request of each other flow
// at most. A request that may or may not have begun meanwhile counts in favor of the engine.
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

// checkBegun checks each request that the engine has taken: it has begun, or it has left the
// queue in another way.
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
	running, waiting := w.engine.admission.Held()
	w.check(len(w.engine.admission.shares) == 0 && len(w.engine.admission.callers) == 0, "shares are left after the last answer")
	w.check(w.held == 0 && running+waiting == 0, "%d requests are unanswered, and %d hold a place, after the last answer", w.held, running+waiting)
}
