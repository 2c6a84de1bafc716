package scheduler

import "github.com/rankd/rankd/internal/list"

// Flow says whose a request is: waiting requests take turns by caller, and those of one caller by connection. The numbers mean
// nothing but themselves. Requests without a caller, number 0, take turns by connection alone. The zero value is a flow like any
// other. Immutable.
type Flow struct{ Caller, Connection uint64 }

// A share is what a connection, a caller or all callers together have of the queue. Shares form a tree: all callers, a caller, its
// connections. A connection without a caller stands beside the callers. A share goes when nothing of it waits or is to come.
type share struct {
	flow   Flow
	parent *share // nil: all callers

	// Admission.mu guards these.
	below  int                // shares that have this one as parent
	claim  int                // requests that may wait
	levels []list.List[share] // the shares below, by claim
	most   int                // the highest claim below
	level  list.Link[share]   // in parent.levels[claim], unless claim is 0
	// A share without others below has claim+owed requests: some are coming, the rest is in queue.
	coming int              // requests that have entered and are not taken up
	owed   int              // requests, the newest ones, that have lost their place to others and are still to be refused
	debt   list.Link[share] // in Admission.debtors

	// Loop only, or for the holder of the engine's lock.
	turns list.List[share]     // the shares below that have requests in queue: the first is next
	turn  list.Link[share]     // in parent.turns
	queue list.List[Execution] // of a share without others below
}

// add changes the claim by 1 or -1, and those of all above.
func (s *share) add(by int) {
	for ; s.parent != nil; s = s.parent {
		p := s.parent
		if s.claim > 0 {
			p.levels[s.claim].Remove(&s.level)
		}
		s.claim += by
		for s.claim >= len(p.levels) {
			p.levels = append(p.levels, list.List[share]{})
		}
		if s.claim > 0 {
			p.levels[s.claim].Push(s, &s.level)
		}
		if s.claim > p.most || p.most > 0 && p.levels[p.most].Len() == 0 {
			p.most += by
		}
	}
	s.claim += by
}

// rival returns a share that has to give one place of a full queue to s, nil if s has no better right to it: first a connection of
// the caller with the most, if s's caller would still have less with one more, then a connection of s's caller.
func (s *share) rival() *share {
	p := s.parent
	if p == nil {
		return nil
	}
	if r := p.rival(); r != nil {
		return r
	}
	if p.most <= s.claim+1 {
		return nil
	}
	for ; p.most > 0; p = p.levels[p.most].Last() {
	}
	return p
}

// enqueue adds a request to the queue. A share whose first it is gets its turn after all others.
func (s *share) enqueue(x *Execution) {
	s.queue.Push(x, &x.place)
	for ; s.parent != nil && !s.turn.In(); s = s.parent {
		s.parent.turns.Push(s, &s.turn)
	}
}

// dequeue takes a request out of the queue. If the request ran, that was the turn of its share, and of all above. Otherwise the turn
// is left to the next request.
func (s *share) dequeue(x *Execution, ran bool) {
	s.queue.Remove(&x.place)
	for ; s.parent != nil; s = s.parent {
		waits := s.queue.Len() > 0 || s.turns.Len() > 0
		if waits && !ran {
			return
		}
		s.parent.turns.Remove(&s.turn)
		if waits {
			s.parent.turns.Push(s, &s.turn)
		}
	}
}

// next returns the request whose turn it is, nil if none waits.
func (s *share) next() *Execution {
	for s.turns.Len() > 0 {
		s = s.turns.First()
	}
	return s.queue.First()
}

// sharesKept bounds the shares, and the levels of each, that are kept for reuse.
const sharesKept = 256

// shareOf returns the share of a flow. The caller holds mu.
func (a *Admission) shareOf(f Flow) *share {
	s := a.shares[f]
	if s == nil {
		parent := &a.all
		if f.Caller != 0 {
			if parent = a.callers[f.Caller]; parent == nil {
				parent = a.newShare(Flow{Caller: f.Caller}, &a.all)
				a.callers[f.Caller] = parent
			}
		}
		s = a.newShare(f, parent)
		a.shares[f] = s
	}
	return s
}

func (a *Admission) newShare(f Flow, parent *share) *share {
	s := a.spare.First()
	if s == nil {
		s = new(share)
	} else {
		a.spare.Remove(&s.turn)
	}
	s.flow, s.parent = f, parent
	parent.below++
	return s
}

// release lets a share go that nothing is left of. The caller holds mu.
func (a *Admission) release(s *share) {
	if s.claim > 0 || s.owed > 0 {
		return
	}
	delete(a.shares, s.flow)
	a.settled(s)
	p := s.parent
	a.freeShare(s)
	if p.below == 0 && p != &a.all {
		delete(a.callers, p.flow.Caller)
		a.freeShare(p)
	}
}

func (a *Admission) freeShare(s *share) {
	s.parent.below--
	s.parent = nil
	if len(s.levels) <= sharesKept && a.spare.Len() < sharesKept {
		a.spare.Push(s, &s.turn)
	}
}

// settled takes a share out of those that have requests to refuse.
func (a *Admission) settled(s *share) {
	if s.debt.In() {
		a.debtors.Remove(&s.debt)
	}
}
