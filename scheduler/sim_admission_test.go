package scheduler

import (
	"context"
	"math/rand/v2"
	"time"
)

// This file has what the simulation knows of admission: bounds, refusals, the queue, and callers that go away.

// drawAdmission draws the bounds of a world. Most worlds have none.
func (w *simWorld) drawAdmission() {
	w.crowding = rand.New(rand.NewPCG(w.seed, 0x61646d6974))
	if w.crowding.Float64() < 0.3 {
		w.cfg.maxInflight, w.cfg.maxQueue = 1+w.crowding.IntN(6), w.crowding.IntN(12)
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

// admitted takes what Submit has returned. The engine refuses a request if, and only if, it holds as many as it may.
func (w *simWorld) admitted(q *simRequest, err error) {
	heldMax := w.cfg.maxInflight + w.cfg.maxQueue
	full := w.cfg.maxInflight > 0 && w.held == heldMax
	if err == nil {
		w.check(!full, "request %d was taken beside %d others", q.user, w.held)
		w.held++
		return
	}
	w.logf("refusal of %d: %v", q.user, err)
	w.check(err == ErrOverloaded && full, "request %d was refused with %v beside %d of %d others", q.user, err, w.held, heldMax)
	w.answers[kindOf(err)]++
	q.answers++
	q.overloaded = true
}

// checkAdmission checks the queue when the loop has nothing left to do at an instant.
func (w *simWorld) checkAdmission() {
	a, e := &w.engine.admission, w.engine
	w.check(a.Running() == e.runs.len(), "%d requests run, counted %d", e.runs.len(), a.Running())
	w.check(w.held == e.runs.len()+a.Queued(), "%d requests are unanswered, %d run and %d wait", w.held, e.runs.len(), a.Queued())
	if a.Queued() == 0 {
		return
	}
	w.check(a.Running() == w.cfg.maxInflight, "%d requests wait, and only %d of %d run", a.Queued(), a.Running(), w.cfg.maxInflight)
	last := int64(0)
	for waiting := a.oldest; waiting != nil; waiting = waiting.next {
		user := waiting.Request.UserID
		w.check(user > last, "request %d waits behind request %d", user, last)
		w.check(!waiting.Request.Deadline.Passed(w.sim.Now()), "request %d waits past its deadline", user)
		w.check(len(w.requests[user-1].begun) == 0, "request %d waits, and has begun", user)
		last = user
	}
	for _, r := range e.runs.items {
		w.check(r.req.UserID < a.oldest.Request.UserID, "request %d runs, and request %d, which came before, waits", r.req.UserID, a.oldest.Request.UserID)
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
	s := w.engine.admission.Stats()
	w.check(s.Refused == refused, "%d requests were refused, counted %d", refused, s.Refused)
	begun := w.engine.counts.Requests
	w.check(begun+s.Expired+s.Dropped == taken, "%d requests begun, %d expired and %d dropped of %d", begun, s.Expired, s.Dropped, taken)
	held := w.engine.admission.held.Load()
	w.check(w.held == 0 && held == 0, "%d requests are unanswered, and %d hold a place, after the last answer", w.held, held)
}
