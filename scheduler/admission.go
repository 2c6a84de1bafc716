package scheduler

import (
	"sync"
	"sync/atomic"

	"github.com/rankd/rankd/internal/list"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/loop/latency"
	"github.com/rankd/rankd/registry"
)

// Admission is the one place where an engine admits requests. A bounded number runs, a bounded number waits, and the
// rest is refused. Waiting requests take turns by caller, and those of one caller by connection. It is deficit round
// robin: a request that runs costs the whole turn, and one that never runs costs nothing. When the queue is full, the
// caller with the most in it loses its newest request to a caller with fewer. Admission decides. The engine runs the
// requests that it admits, and reports the end of each.
//
//	Enter ─┬─▶ refused
//	       ├─▶ runs ──────────────────────────────────▶ End
//	       └─▶ waits ─┬─ Next ─▶ runs ────────────────▶ End
//	                  └─ Next, Expire, Drop, or the Enter of another: it never runs
//
// Any goroutine. But only the one that runs requests calls Next, Expire and Drop: the loop, or the holder of the
// engine's lock.
type Admission struct {
	inflightMax int64 // of requests that run; 0: no bound
	heldMax     int64 // of requests that run or wait

	// Without a bound only these two are counted, and mu is never taken.
	closed  atomic.Bool
	running atomic.Int64 // with a bound it grows under mu

	mu      sync.Mutex // guards all below
	all     share
	shares  map[Flow]*share
	callers map[uint64]*share
	spare   list.List[share]     // for reuse, by turn
	fresh   list.List[Execution] // requests that wait with a deadline, and that Fresh has not returned
	refused uint64
	expired uint64
	dropped uint64
	delays  latency.Histogram // of requests that waited and were admitted
}

// AdmissionStats count what an Admission has decided. A copy; any goroutine.
type AdmissionStats struct {
	Waiting    int               // requests that wait now
	Refused    uint64            // at once, or later in favor of a caller with fewer waiting
	Expired    uint64            // requests whose deadline passed while they waited
	Dropped    uint64            // requests that waited until their caller left, or until the engine gave up
	QueueDelay latency.Quantiles // of the requests that waited and were admitted
}

// Bound sets the bounds: inflightMax requests run at the same time and queueMax wait. An inflightMax of zero means no
// bound. Bound comes first.
func (a *Admission) Bound(inflightMax, queueMax int) {
	a.inflightMax, a.heldMax = int64(inflightMax), int64(inflightMax)+int64(queueMax)
	a.shares, a.callers = make(map[Flow]*share), make(map[uint64]*share)
}

// Close makes Enter refuse requests from now on.
func (a *Admission) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed.Store(true)
}

// Enter takes one more request: it runs at once, or waits from now on. If the queue was full, loser has lost its
// place to the request, and the engine refuses loser with ErrOverloaded. An error is ErrOverloaded or
// ErrShuttingDown: the request neither runs nor waits.
func (a *Admission) Enter(x *Execution, c clock.Clock) (waits bool, loser *Execution, err error) {
	if a.inflightMax == 0 {
		if a.closed.Load() {
			return false, nil, ErrShuttingDown
		}
		a.running.Add(1)
		return false, nil, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed.Load():
		return false, nil, ErrShuttingDown
	case a.running.Load() < a.inflightMax && a.all.waiting == 0:
		a.running.Add(1)
		return false, nil, nil
	case a.inflightMax == a.heldMax:
		a.refused++
		return false, nil, ErrOverloaded
	}
	s := a.shareOf(x.Flow)
	if a.running.Load()+int64(a.all.waiting) >= a.heldMax {
		a.refused++
		rival := s.rival()
		if rival == nil {
			a.release(s)
			return false, nil, ErrOverloaded
		}
		loser = rival.queue.Last()
		a.unlink(loser, false)
	}
	x.share, x.since = s, c.Now()
	s.enqueue(x)
	if x.Deadline != 0 {
		a.fresh.Push(x, &x.fresh)
	}
	return true, loser, nil
}

// Retract takes back the Enter of a request that nobody runs.
func (a *Admission) Retract(x *Execution) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if x.share != nil {
		a.unlink(x, false)
	} else {
		a.running.Add(-1)
	}
}

// Fresh returns each waiting request with a deadline once. It returns nil if there is none now.
func (a *Admission) Fresh() *Execution {
	a.mu.Lock()
	defer a.mu.Unlock()
	x := a.fresh.First()
	if x != nil {
		a.fresh.Remove(&x.fresh)
	}
	return x
}

// Next takes the request whose turn it is out of the queue if one more may run. It returns nil if none may. An error means that
// the request fails with it and never runs: its deadline has passed, or its caller has gone.
func (a *Admission) Next(now clock.Time) (*Execution, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	x := a.all.next()
	if x == nil || a.running.Load() >= a.inflightMax {
		return nil, nil
	}
	if err := a.expire(x, x.contextErr(), now); err != nil {
		return x, err
	}
	a.unlink(x, true)
	x.stopWait()
	a.running.Add(1)
	x.delay = max(now.Sub(x.since), 0)
	a.delays.Add(x.delay)
	return x, nil
}

// AnyUses reports whether a waiting request may use an endpoint.
func (a *Admission) AnyUses(ep *registry.Endpoint) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.shares {
		for x := s.queue.First(); x != nil; x = x.place.Next() {
			if x.Graph.Registry.Has(ep) {
				return true
			}
		}
	}
	return false
}

// Expire takes a request whose deadline has passed out of the queue, and returns the error that it fails with. It
// returns nil, and does nothing, if the deadline is still to come or the request does not wait any more.
func (a *Admission) Expire(x *Execution, now clock.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.expire(x, nil, now)
}

// expire takes a request out of the queue if its deadline has passed, or its context has ended with the error gone. It
// returns the error that the request fails with. The caller holds mu.
func (a *Admission) expire(x *Execution, gone error, now clock.Time) error {
	if x.share == nil {
		return nil
	}
	limits := bounds{arrived: x.arrived, deadline: x.Deadline}
	err := limits.over(gone, now)
	if err == nil {
		return nil
	}
	a.unlink(x, false)
	if timeout, ok := err.(*TimeoutError); ok {
		timeout.Waiting = true
		a.expired++
	} else {
		a.dropped++
	}
	return err
}

// Drop takes a request out of the queue, whatever its deadline. It returns nil if none waits.
func (a *Admission) Drop() *Execution {
	a.mu.Lock()
	defer a.mu.Unlock()
	x := a.all.next()
	if x != nil {
		a.unlink(x, false)
		a.dropped++
	}
	return x
}

// End counts the end of a request that ran. It reports whether Next may admit another one.
func (a *Admission) End() bool {
	if a.running.Add(-1); a.inflightMax == 0 {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all.waiting > 0
}

// Held returns how many requests run, or are about to, and how many wait.
func (a *Admission) Held() (running, waiting int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return int(a.running.Load()), a.all.waiting
}

// Stats returns the counters as they are now.
func (a *Admission) Stats() AdmissionStats {
	a.mu.Lock()
	defer a.mu.Unlock()
	return AdmissionStats{Waiting: a.all.waiting, Refused: a.refused, Expired: a.expired, Dropped: a.dropped, QueueDelay: latency.Of(&a.delays)}
}

// unlink takes a request out of the queue. If it runs, that was the turn of its share. The caller holds mu.
func (a *Admission) unlink(x *Execution, runs bool) {
	s := x.share
	x.share = nil
	s.dequeue(x, runs)
	if x.fresh.In() {
		a.fresh.Remove(&x.fresh)
	}
	a.release(s)
}

// Flow is that of a request: waiting requests take turns by it.
type Flow = request.Flow

// A share is what a connection, a caller or all callers together have of the queue. Shares form a tree: all callers,
// a caller, its connections. A connection without a caller is at the level of callers. A share is freed when none of
// its requests waits. Admission.mu guards it.
type share struct {
	flow   Flow
	parent *share // nil: all callers

	below   int                // shares that have this one as parent
	waiting int                // requests in its queue, or in those below
	levels  []list.List[share] // the shares below, by waiting
	most    int                // the highest waiting below
	level   list.Link[share]   // in parent.levels[waiting], unless waiting is 0

	turns list.List[share]     // the shares below that have requests in queue: the first is next
	turn  list.Link[share]     // in parent.turns
	queue list.List[Execution] // of a share without others below
}

// add changes waiting by 1 or -1, here and in all shares above.
func (s *share) add(by int) {
	for ; s.parent != nil; s = s.parent {
		p := s.parent
		if s.waiting > 0 {
			p.levels[s.waiting].Remove(&s.level)
		}
		s.waiting += by
		for s.waiting >= len(p.levels) {
			p.levels = append(p.levels, list.List[share]{})
		}
		if s.waiting > 0 {
			p.levels[s.waiting].Push(s, &s.level)
		}
		if s.waiting > p.most || p.most > 0 && p.levels[p.most].Len() == 0 {
			p.most += by
		}
	}
	s.waiting += by
}

// rival returns the share that has to give one place of a full queue to s, or nil. It is a connection of the caller
// with the most requests, if s's caller would still have fewer with one more. Otherwise it may be a connection of s's
// own caller.
func (s *share) rival() *share {
	p := s.parent
	if p == nil {
		return nil
	}
	if r := p.rival(); r != nil {
		return r
	}
	if p.most <= s.waiting+1 {
		return nil
	}
	for ; p.most > 0; p = p.levels[p.most].Last() {
	}
	return p
}

// enqueue adds a request to the queue. If a share had none before, its turn comes after all others.
func (s *share) enqueue(x *Execution) {
	s.queue.Push(x, &x.place)
	s.add(1)
	for ; s.parent != nil && !s.turn.In(); s = s.parent {
		s.parent.turns.Push(s, &s.turn)
	}
}

// dequeue takes a request out of the queue. If the request ran, that was the turn of its share, and of all shares
// above. Otherwise the next request gets the turn.
func (s *share) dequeue(x *Execution, ran bool) {
	s.queue.Remove(&x.place)
	s.add(-1)
	for ; s.parent != nil; s = s.parent {
		waits := s.waiting > 0
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

// release frees a share without requests. The caller holds mu.
func (a *Admission) release(s *share) {
	if s.waiting > 0 {
		return
	}
	delete(a.shares, s.flow)
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
