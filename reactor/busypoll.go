package reactor

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// DefaultBusyPoll is the default time that a reactor polls before it sleeps. A Redis on the same machine or rack
// replies sooner.
const DefaultBusyPoll = 100 * time.Microsecond

// Bounds of busy polling.
const (
	busyPollConns = 8  // with more connections the reactor sleeps at once: poll looks at each of them
	busyPollDoubt = 10 // at most 1,023 waits go without a poll
)

// A busyPoll looks for replies for a moment before the loop sleeps. Waking a thread costs 5 to 50 µs on
// a virtual machine, as much as the round trip itself (docs/threading.md has the gain by requests in flight).
//
// The loop polls only while a connection waits for an answer. It does not poll after a long iteration: many requests
// are in flight then, and the loop seldom sleeps. While it polls, it yields its processor to threads that want to run.
//
// A poll is in vain if no answer comes, or if a post comes first: requests that arrive need the processor time
// themselves. After polls in vain, some waits go without one. If more than one poll in three is in vain, polls become
// rare, so that a distant server costs next to nothing.
//
// Loop only, except for wake.
type busyPoll struct {
	longest time.Duration // 0: never
	now     func() time.Time
	ready   func([]unix.PollFd) bool // whether one of them is readable or broken
	yield   func()                   // lets other threads run on this processor

	woken atomic.Bool // another goroutine has submitted a task
	began time.Time   // of the loop's iteration; zero if none has begun since the last wait
	skips int         // waits that go without a poll
	doubt int         // grows with polls in vain, and shrinks with the others: skips is 2^doubt - 1
	fds   []unix.PollFd
}

func newBusyPoll(longest time.Duration) busyPoll {
	return busyPoll{longest: longest, now: time.Now, ready: func(fds []unix.PollFd) bool {
		n, err := unix.Poll(fds, 0)
		return n != 0 || err != nil
	}, yield: yieldThread}
}

// wake ends a poll that is under way. Any goroutine.
func (p *busyPoll) wake() { p.woken.Store(true) }

// begin notes the time at which the loop's iteration begins.
func (p *busyPoll) begin() {
	if p.longest > 0 && p.began.IsZero() {
		p.began = p.now()
		p.woken.Store(false)
	}
}

// wait polls the connections until one of them is ready, somebody wakes the loop, or the time is up. The
// timer of the loop wakes it, too.
func (p *busyPoll) wait(conns map[*conn]struct{}) {
	if p.longest <= 0 || p.began.IsZero() {
		return
	}
	took := p.now().Sub(p.began)
	p.began = time.Time{}
	if took > p.longest || len(conns) > busyPollConns || !p.gather(conns) {
		return
	}
	if p.skips > 0 {
		p.skips--
		return
	}
	for until := p.now().Add(p.longest); p.now().Before(until); {
		if p.woken.Load() {
			break
		}
		if p.ready(p.fds) {
			p.doubt = max(p.doubt-1, 0)
			p.skips = 1<<p.doubt - 1
			return
		}
		p.yield()
	}
	p.doubt = min(p.doubt+2, busyPollDoubt)
	p.skips = 1<<p.doubt - 1
}

// gather lists the descriptors of all connections. It reports whether one of them waits for an answer.
func (p *busyPoll) gather(conns map[*conn]struct{}) (expecting bool) {
	p.fds = p.fds[:0]
	for c := range conns {
		if c.gc != nil {
			p.fds = append(p.fds, unix.PollFd{Fd: int32(c.gc.Fd()), Events: unix.POLLIN})
			expecting = expecting || c.expecting
		}
	}
	return expecting
}
