package scheduler

import (
	"sync"
	"sync/atomic"

	"github.com/rankd/rankd/internal/list"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/loop/latency"
)

// Admission is the one place where an engine lets requests in. So many run, so many wait, and the rest is refused. Those that wait
// take turns by caller, and those of a caller by connection: deficit round robin, in which a request that runs costs the whole turn,
// and one that never runs costs nothing. When the queue is full, the caller with the most in it loses its newest request to one who
// has less. Admission decides. The engine runs the requests that it admits, and reports the end of each.
//
//	Enter ─┬─▶ refused
//	       ├─▶ Retract                  the engine is closing
//	       └─▶ TakeUp ─┬─▶ Refused
//	                   ├─▶ Runs ─────────────────▶ End
//	                   └─▶ Waits, Wait ─┬─ Next ─▶ runs ──▶ End
//	                                    └─ Next, Expire, Displaced or Drop: it never runs
//
// Any goroutine calls Enter and Retract. All else belongs to the loop, or to the holder of the engine's lock.
type Admission struct {
	inflightMax int   // of requests that run; 0: no bound, and nothing below is counted but running
	heldMax     int64 // of requests that run or wait

	held    atomic.Int64 // requests with a right to run or wait: Enter counts up to heldMax
	refused atomic.Uint64

	mu      sync.Mutex // guards these and the rights of shares, which Enter needs once requests have to wait
	shares  map[Flow]*share
	callers map[uint64]*share
	all     share
	debtors list.List[share] // with more requests to refuse than are coming
	spare   list.List[share] // for reuse, by turn

	running int
	waiting int
	expired uint64
	dropped uint64
	delays  latency.Histogram // of requests that waited and were admitted
}

// AdmissionStats count what an Admission has decided. A copy; any goroutine.
type AdmissionStats struct {
	Waiting    int               // requests that wait now
	Refused    uint64            // at once, or later in favor of a caller that had fewer waiting
	Expired    uint64            // requests whose deadline passed while they waited
	Dropped    uint64            // requests that waited until their caller had gone, or the engine gave up
	QueueDelay latency.Quantiles // of the requests that waited and were admitted
}

// Verdict is what becomes of a request that is taken up.
type Verdict uint8

// The verdicts.
const (
	Refused Verdict = iota // It has lost its right to another since it entered.
	Runs                   // End is to be called.
	Waits                  // Wait is to be called.
)

// Bound sets the bounds: inflightMax requests run at the same time and queueMax wait. An inflightMax of zero means no
// bound. Bound comes first.
func (a *Admission) Bound(inflightMax, queueMax int) {
	a.inflightMax, a.heldMax = inflightMax, int64(inflightMax)+int64(queueMax)
	a.shares, a.callers = make(map[Flow]*share), make(map[uint64]*share)
}

// Enter counts one more request in, or refuses it. Any goroutine.
func (a *Admission) Enter(x *Execution) bool {
	if a.inflightMax == 0 || a.hold(int64(a.inflightMax)) {
		return true
	}
	if a.heldMax > int64(a.inflightMax) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if x.share = a.claim(x.Flow); x.share != nil {
			return true
		}
	}
	a.refused.Add(1) // A refusal writes nothing else that other requests read.
	return false
}

// hold counts one more request if fewer than most are counted.
func (a *Admission) hold(most int64) bool {
	for {
		held := a.held.Load()
		if held >= most {
			return false
		}
		if a.held.CompareAndSwap(held, held+1) {
			return true
		}
	}
}

// claim returns the share of a flow with a claim for one more request. When the queue is full, another share loses one. If none has
// to, claim returns nil. The caller holds mu.
func (a *Admission) claim(f Flow) *share {
	s := a.shareOf(f)
	if !a.hold(a.heldMax) {
		loser := s.rival()
		if loser == nil {
			a.release(s)
			return nil
		}
		loser.add(-1)
		if loser.owed++; loser.owed > loser.coming && !loser.debt.In() {
			a.debtors.Push(loser, &loser.debt)
		}
	}
	s.add(1)
	s.coming++
	return s
}

// Retract takes back an Enter that TakeUp has not followed. Any goroutine.
func (a *Admission) Retract(x *Execution) {
	if s := x.share; s != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		x.share = nil
		s.coming--
		a.leave(s)
		a.restore()
	} else if a.inflightMax > 0 {
		a.held.Add(-1)
	}
}

// restore gives a place that has become free back to a share that lost one. The caller holds mu.
func (a *Admission) restore() {
	for s := a.debtors.First(); s != nil; s = s.debt.Next() {
		if s.owed <= s.coming { // Those that are coming will be refused, or give back what they take.
			continue
		}
		if a.hold(a.heldMax) {
			s.owed--
			s.add(1)
		}
		return
	}
}

// leave counts a request out that never runs. The caller holds mu.
func (a *Admission) leave(s *share) {
	if s.owed > 0 { // Its place is another's already.
		s.owed--
	} else {
		s.add(-1)
		a.held.Add(-1)
	}
	a.release(s)
}

// TakeUp decides on a request that has entered. If it contends, others may have to leave the queue for it: Displaced says which.
func (a *Admission) TakeUp(x *Execution) (v Verdict, contends bool) {
	runs := a.inflightMax == 0 || a.running < a.inflightMax && a.waiting == 0
	if s := x.share; s != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		contends = true
		if s.coming--; s.owed > s.coming {
			x.share = nil
			a.refused.Add(1)
			a.leave(s)
			return Refused, true
		}
		if runs {
			x.share = nil
			s.add(-1)
			a.release(s)
		}
	}
	if !runs {
		return Waits, contends
	}
	a.running++
	return Runs, contends
}

// Wait puts a request at the end of its connection's queue. It calls left when the request leaves the queue; nil: nobody asks.
func (a *Admission) Wait(x *Execution, now clock.Time, left func()) {
	x.since, x.left = now, left
	if x.share == nil {
		a.mu.Lock()
		x.share = a.shareOf(x.Flow)
		x.share.add(1)
		a.mu.Unlock()
	}
	x.share.enqueue(x)
	a.waiting++
}

// Next takes the request whose turn it is out of the queue if one more may run. It returns nil if none may. An error means that
// the request fails with it and never runs: it has lost its place, its deadline has passed, or its caller has gone.
func (a *Admission) Next(now clock.Time) (*Execution, error) {
	if a.waiting == 0 || a.running >= a.inflightMax {
		return nil, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if x := a.displaced(); x != nil {
		return x, ErrOverloaded
	}
	x := a.all.next()
	if err := a.expire(x, now); err != nil {
		return x, err
	}
	if err := x.contextErr(); err != nil {
		a.remove(x)
		limits := bounds{arrived: x.arrived, deadline: x.Deadline}
		err = limits.abandoned(err, now)
		if timeout, ok := err.(*TimeoutError); ok {
			timeout.Waiting = true
			a.expired++
		} else {
			a.dropped++
		}
		return x, err
	}
	s := x.share
	a.unlink(x, true)
	s.add(-1)
	a.release(s)
	a.running++
	x.delay = now.Sub(x.since)
	a.delays.Add(x.delay)
	return x, nil
}

// AnyWaits reports whether some request in the queue is such a one. The engine's goroutine.
func (a *Admission) AnyWaits(such func(*Execution) bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.shares {
		for x := s.queue.First(); x != nil; x = x.place.Next() {
			if such(x) {
				return true
			}
		}
	}
	return false
}

// Displaced takes a request out of the queue that has lost its place to another, to be refused with ErrOverloaded. It returns nil if
// there is none. It follows the TakeUp of each request that contends.
func (a *Admission) Displaced() *Execution {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.displaced()
}

func (a *Admission) displaced() *Execution {
	for s := a.debtors.First(); s != nil; s = a.debtors.First() {
		if s.owed > s.coming { // Otherwise those that are coming are newer.
			x := s.queue.Last()
			a.refused.Add(1)
			a.remove(x)
			return x
		}
		a.settled(s)
	}
	return nil
}

// Expire takes a request whose deadline has passed out of the queue, and returns the error that it fails with. It
// returns nil, and does nothing, if the deadline is still to come or the request does not wait any more.
func (a *Admission) Expire(x *Execution, now clock.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.expire(x, now)
}

func (a *Admission) expire(x *Execution, now clock.Time) error {
	if x.share == nil || !x.Deadline.Passed(now) {
		return nil
	}
	a.remove(x)
	a.expired++
	timeout := late(ErrRequestDeadline, x.arrived, x.Deadline, now)
	timeout.Waiting = true
	return timeout
}

// Drop takes a request out of the queue, whatever its deadline. It returns nil if none waits.
func (a *Admission) Drop() *Execution {
	if a.waiting == 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	x := a.all.next()
	a.remove(x)
	a.dropped++
	return x
}

// End counts the end of a request that ran. It reports whether Next may let another one in.
func (a *Admission) End() bool {
	a.running--
	if a.inflightMax > 0 {
		a.held.Add(-1)
	}
	return a.waiting > 0
}

// Free returns how many more requests may run, if there is a bound.
func (a *Admission) Free() int { return a.inflightMax - a.running }

// Running returns how many requests run.
func (a *Admission) Running() int { return a.running }

// Queued returns how many requests wait.
func (a *Admission) Queued() int { return a.waiting }

// Stats returns the counters as they are now.
func (a *Admission) Stats() AdmissionStats {
	return AdmissionStats{Waiting: a.waiting, Refused: a.refused.Load(), Expired: a.expired, Dropped: a.dropped, QueueDelay: latency.Of(&a.delays)}
}

// remove takes a request that will not run out of the queue. The caller holds mu.
func (a *Admission) remove(x *Execution) {
	s := x.share
	a.unlink(x, false)
	a.leave(s)
}

func (a *Admission) unlink(x *Execution, ran bool) {
	x.share.dequeue(x, ran)
	x.share = nil
	a.waiting--
	if x.left != nil {
		x.left()
		x.left = nil
	}
}
