package loop

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rankd/rankd/loop/clock"
)

// Errors of the loop and its handles.
var (
	// ErrStopped: the loop is stopping or has stopped; nothing can be started.
	ErrStopped = errors.New("loop stopped")
	// ErrBusy: handles are open, callbacks are pending or requests are held.
	ErrBusy = errors.New("loop busy")
	// ErrHandleClosed: the timer or hook was closed.
	ErrHandleClosed = errors.New("handle closed")
	// ErrNoCallback: the handle was made without a function to call.
	ErrNoCallback = errors.New("handle has no callback")
	// ErrNeverStarted: Again on a timer that was never started.
	ErrNeverStarted = errors.New("timer was never started")
	// ErrNested: Run or Turn was called within a Run, a Turn or a callback.
	ErrNested = errors.New("loop already runs")
	// ErrGoexit: a callback called runtime.Goexit, which ends the loop's goroutine. The loop
	// panics with it.
	ErrGoexit = errors.New("loop: a callback called runtime.Goexit, and the loop ends with its goroutine")
)

// Config says what a loop is built from. Immutable once given to New. The zero
// value works.
type Config struct {
	// Clock tells the time. Nil means clock.NewReal().
	Clock clock.Clock
	// OnPanic is told, on the loop, that a callback panicked: what it panicked
	// with, and the stack. The panic is contained: other callbacks go on. Nil drops
	// it; it is still counted in Metrics. It must not panic itself.
	OnPanic func(recovered any, stack []byte)
	// LateAfter is how long after its due time a timer may fire before Metrics
	// counts it as late. Zero means 10 ms, one preemption slice of the Go
	// scheduler: what is later than that waited for a processor or a callback.
	LateAfter time.Duration
}

// The phases of a loop's life, in order; there is no way back.
const (
	idle int32 = iota
	running
	stopping
	stopped
)

// A Loop runs callbacks on one goroutine: the one that drives it, always the
// same. Loop only, except Start, Post, Stop, Done, Metrics and Clock, which any
// goroutine may call. Before Start, the goroutine that built it counts as the loop.
type Loop struct {
	clock     clock.Clock
	onPanic   func(any, []byte)
	lateAfter time.Duration
	done      chan struct{}
	phase     atomic.Int32 // written under mu

	// From here to mu: loop only.
	host     Host       // set once, by Start
	now      clock.Time // cached
	awake    bool       // in an iteration, past its poll or in one of the poll's callbacks
	driven   bool       // in a Run or a Turn
	depth    int        // batches of callbacks on the stack
	timers   timerHeap
	due      []*Timer // batch of the timers phase; nil where stopped meanwhile
	timerSeq uint64   // taken by each start: orders timers that are due together
	idle     hookList
	prepare  hookList
	check    hookList
	deferred queue
	closing  queue
	spare    []func()   // empty; the inbox's next slice
	open     int        // handles not yet closed
	held     int        // Hold minus Release; never negative
	drained  int        // iterations of the wind-down since the host has drained
	winding  bool       // the wind-down has begun
	mark     clock.Time // end of the last measured callback
	count    Metrics    // without what depends on the moment

	mu struct { // guards what other goroutines touch
		sync.Mutex
		inbox   []func()   // FIFO, swapped out whole once an iteration
		asleep  bool       // the next post must wake the host; false once one has
		waiting bool       // the host may be blocked in its poll
		since   clock.Time // when that wait began
		count   Metrics    // copy of the loop's own, as of its last sleep or wake
	}
}

// New returns a loop that is not started.
func New(cfg Config) *Loop {
	if cfg.Clock == nil {
		cfg.Clock = clock.NewReal()
	}
	if cfg.LateAfter == 0 {
		cfg.LateAfter = 10 * time.Millisecond
	}
	return &Loop{
		clock: cfg.Clock, onPanic: cfg.OnPanic, lateAfter: cfg.LateAfter,
		done: make(chan struct{}),
		now:  cfg.Clock.Now(),
	}
}

// A RunMode says when Run returns.
type RunMode int

// The modes of Run. In each of them Run returns when nothing is alive.
const (
	RunDefault RunMode = iota // not before
	RunOnce                   // after one iteration, which may wait in the poll
	RunNoWait                 // after one iteration, which does not wait
)

// Run drives a started loop from the caller's goroutine. poll waits for I/O for
// at most wait (negative: until woken; zero: not at all) and runs the callbacks of
// what is ready. Run reports whether the loop is alive still. A stopping loop is
// alive until it is wound down; one that is not started is not. RunDefault fires the
// timers that are due before its first iteration. RunOnce does not wait if an idle hook
// is active when the iteration begins, even if that hook then stops. Errors: ErrNested,
// and nothing has run.
func (l *Loop) Run(mode RunMode, poll func(wait time.Duration)) (alive bool, err error) {
	if l.driven || l.depth > 0 {
		return l.Alive(), ErrNested
	}
	l.driven = true
	defer l.checkGoexit()
	l.UpdateNow()
	l.mark = l.now
	alive = l.Alive() // timers that are due now do not change it: an iteration follows them
	if mode == RunDefault && l.phase.Load() == running {
		l.runTimers()
	}
	for alive {
		mayWait := mode == RunDefault || mode == RunOnce && l.idle.active == 0
		l.beforePoll()
		poll(l.sleep(!mayWait || !l.Alive()))
		l.afterPoll()
		alive = l.Alive()
		if mode != RunDefault {
			break
		}
	}
	l.pause()
	l.driven = false
	return alive, nil
}

// beforePoll is the half of an iteration that precedes the poll.
func (l *Loop) beforePoll() {
	l.idle.run(l)
	l.prepare.run(l)
	l.host.Flush()
}

// afterPoll is the half of an iteration that follows the poll.
func (l *Loop) afterPoll() {
	l.wakeUp()
	l.runInbox()
	l.runCheck()
	l.runClosing()
	if l.phase.Load() >= stopping {
		l.windDown()
		return
	}
	l.UpdateNow()
	l.runTimers()
}

// Turn runs what follows a batch of I/O callbacks, or a wake, and all that
// precedes the next poll. It is how a push host drives the loop, always from one
// goroutine. It returns how long the host may wait (negative: until woken; zero:
// poll what is ready and turn again). Before Start and after the end of the loop it does
// nothing and returns a negative wait. Within a callback it panics with ErrNested.
func (l *Loop) Iterate() (wait time.Duration) {
	if l.driven || l.depth > 0 {
		panic(ErrNested)
	}
	if !l.begun() {
		return -1
	}
	l.driven = true
	defer l.checkGoexit()
	l.afterPoll()
	wait = -1
	if l.begun() {
		l.beforePoll()
		wait = l.sleep(false)
	}
	l.driven = false
	return wait
}

// begun reports whether the loop has started and not ended.
func (l *Loop) begun() bool {
	phase := l.phase.Load()
	return phase == running || phase == stopping
}

// Event runs an I/O callback, and with the first of a batch begins the iteration. It
// reports whether a push host has to see to it that Turn follows this batch (if not, a
// turn is on its way), and returns what the callback panicked with, nil if it did not.
// The panic is contained.
func (l *Loop) Event(fn func()) (turn bool, recovered any) {
	turn = l.depth == 0 && l.wakeUp()
	l.count.Events++
	return turn, l.call(fn)
}

// Clock returns the clock that the loop was built with. Any goroutine.
func (l *Loop) Clock() clock.Clock { return l.clock }

// Now returns the cached time: as of the end of the poll, or of the beginning of
// the timers phase. It does not move within a callback.
func (l *Loop) Now() clock.Time { return l.now }

// UpdateNow refreshes the cached time, for a callback that has run for long.
func (l *Loop) UpdateNow() { l.now = l.clock.Now() }

// Alive reports whether the loop has something to run for: an active timer or
// hook, a held request, a pending post, deferred work or close callback, or
// its own end.
func (l *Loop) Alive() bool {
	switch l.phase.Load() {
	case stopping:
		return true
	case running:
		return l.timers.len() > 0 || l.held > 0 || l.idle.active+l.prepare.active+l.check.active > 0 || l.Pending()
	default:
		return false
	}
}

// Pending reports whether posts, deferred work or close callbacks wait to be run.
func (l *Loop) Pending() bool {
	if !l.deferred.empty() || !l.closing.empty() {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.mu.inbox) > 0
}

// Iteration returns the number of the present iteration, or of the last one between two.
func (l *Loop) Iteration() uint64 { return l.count.Iterations }

// Due returns when the earliest timer is due, or zero if none is active.
func (l *Loop) Due() clock.Time { return l.timers.first() }

// Hold counts one request in flight: something that will call back on the loop
// and keeps it alive until Release.
func (l *Loop) Hold() { l.held++ }

// Release ends what one Hold began. Releasing more than was held is a bug and panics.
func (l *Loop) Release() {
	if l.held == 0 {
		panic("loop: Release without Hold")
	}
	l.held--
}

// sleep precedes the poll: it decides how long that may wait, and from then on a
// post wakes the host.
func (l *Loop) sleep(noWait bool) (wait time.Duration) {
	now := l.clock.Now()
	wait = -1
	switch due := l.timers.first(); {
	case noWait || l.idle.active > 0 || !l.deferred.empty() || !l.closing.empty():
		wait = 0
	case due != 0 && due != clock.Never:
		wait = max(0, due.Sub(now))
	}
	l.awake = false
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.mu.inbox) > 0 || l.phase.Load() == stopping && !l.winding {
		wait = 0
	}
	l.mu.asleep = wait != 0
	l.mu.waiting, l.mu.since = wait != 0, now
	l.mu.count = l.count
	return wait
}

// pause follows the last iteration of a Run.
func (l *Loop) pause() {
	l.awake = false
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.count = l.count
}

// wakeUp begins an iteration, unless it has begun. It reports whether nobody woke
// the loop: what did was I/O.
func (l *Loop) wakeUp() (byIO bool) {
	if l.awake {
		return false
	}
	l.awake = true
	l.UpdateNow()
	l.mark = l.now
	l.count.Iterations++
	l.mu.Lock()
	defer l.mu.Unlock()
	byIO, l.mu.asleep = l.mu.asleep, false
	if l.mu.waiting {
		l.mu.waiting = false
		l.count.Idle += l.now.Sub(l.mu.since)
	}
	l.mu.count = l.count
	return byIO
}
