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
	// ErrBusy: the loop cannot close, since handles are open, callbacks are pending or requests are held; or it is too late to
	// cancel a request.
	ErrBusy = errors.New("busy")
	// ErrCancelled: the owner of a request has cancelled it (libuv's ECANCELED). Packages resp, remote and cpupool cancel by one
	// contract, that of uv_cancel. Cancel returns nil if it accepts. The request's Done then follows once, later on the loop and
	// never inside Cancel, with an error that matches ErrCancelled. The owner may use the request again from Done on, not before.
	// Cancel returns ErrBusy and changes nothing if a worker has started the request, if its Done is due, or if it is not under way.
	ErrCancelled = errors.New("cancelled")
	// ErrHandleClosed: the timer or hook was closed.
	ErrHandleClosed = errors.New("handle closed")
	// ErrNoCallback: the handle was made without a function to call.
	ErrNoCallback = errors.New("handle has no callback")
	// ErrNeverStarted: Again on a timer that was never started.
	ErrNeverStarted = errors.New("timer was never started")
	// ErrNested: Run or Iterate was called within Run, Iterate or a callback.
	ErrNested = errors.New("loop already runs")
	// ErrGoexit: a callback called runtime.Goexit, which ends the loop's goroutine. The
	// loop panics with this error.
	ErrGoexit = errors.New("loop: a callback called runtime.Goexit, and the loop ends with its goroutine")
)

// Config says what a loop is built from. Immutable once given to New. The zero
// value works.
type Config struct {
	// Clock tells the time. Nil means clock.NewReal().
	Clock clock.Clock
	// OnPanic receives the value of a callback's panic and the stack, on the loop. The loop
	// contains the panic: other callbacks go on. Nil logs it with slog.Default(). OnPanic
	// must not panic itself.
	OnPanic func(recovered any, stack []byte)
	// LateAfter is how long after its due time a timer may fire before Metrics counts it
	// as late. Zero means 10 ms, one preemption slice of the Go scheduler: a timer that
	// is later than that has waited for a processor or a callback.
	LateAfter time.Duration
	// ThreadCPU reads the processor clock of the loop's thread. Nil leaves Metrics.CallbackCPU empty.
	ThreadCPU clock.ThreadCPU
}

// The phases of a loop's life, in order. The phase never goes back.
const (
	idle int32 = iota
	running
	stopping
	stopped
)

// A Loop runs callbacks on one goroutine, always the same one, which drives it. Loop
// only, except Start, Post, Stop, Done, Metrics and Clock, which any goroutine may call.
// Before Start, the goroutine that built it counts as the loop.
type Loop struct {
	clock     clock.Clock
	onPanic   func(any, []byte)
	lateAfter time.Duration
	done      chan struct{}
	phase     atomic.Int32 // written under mu

	// From here to mu: loop only.
	host     Host       // set once, by Start
	now      clock.Time // cached
	awake    bool       // in an iteration: after its poll or in a callback of the poll
	driven   bool       // in Run or Iterate
	depth    int        // batches of callbacks on the stack
	timers   timerHeap
	due      []*Timer // batch of the timers phase; nil where a timer was stopped meanwhile
	timerSeq uint64   // number of starts; orders timers that are due together
	idle     hookList
	prepare  hookList
	check    hookList
	deferred queue
	flushing queue // work right before the flush
	closing  queue
	spare    []func() // empty; the inbox's next slice
	open     int      // handles not yet closed
	held     int      // Hold minus Release; never negative
	drained  int      // iterations of the wind-down since the host has drained
	winding  bool     // the wind-down has begun
	count    Metrics  // without PostsPending, the times of callbacks and the present wait

	meter meter

	mu struct { // guards what other goroutines touch
		sync.Mutex
		inbox   []func()   // FIFO, swapped out whole once an iteration
		asleep  bool       // the next post must wake the host; false once a post has
		waiting bool       // the host may be blocked in its poll
		since   clock.Time // when that wait began
		count   Metrics    // copy of Loop.count as of the last sleep or wake
	}
}

// New returns a loop that is not started.
func New(cfg Config) *Loop {
	if cfg.Clock == nil {
		cfg.Clock = clock.NewReal()
	}
	if cfg.OnPanic == nil {
		cfg.OnPanic = logPanic
	}
	if cfg.LateAfter == 0 {
		cfg.LateAfter = 10 * time.Millisecond
	}
	return &Loop{
		clock: cfg.Clock, onPanic: cfg.OnPanic, lateAfter: cfg.LateAfter,
		done:  make(chan struct{}),
		now:   cfg.Clock.Now(),
		meter: meter{n: 1, cpu: cfg.ThreadCPU},
	}
}

// A RunMode says when Run returns.
type RunMode int

// The modes of Run. Run returns in each of them when nothing is alive.
const (
	RunDefault RunMode = iota // only then
	RunOnce                   // after one iteration, which may wait in the poll
	RunNoWait                 // after one iteration, which does not wait
)

// Run drives a started loop from the caller's goroutine. poll waits for I/O for at most
// wait (negative: until woken; zero: not at all) and runs the callbacks of the sockets
// that are ready. Run reports whether the loop is still alive. A stopping loop is alive
// until it is wound down; a loop that was not started is not alive. RunDefault fires
// the due timers before its first iteration. RunOnce does not wait if an idle hook is
// active when the iteration begins, even if that hook then stops. Nothing has
// run if the error is ErrNested. It mirrors libuv's uv_run.
func (l *Loop) Run(mode RunMode, poll func(wait time.Duration)) (alive bool, err error) {
	if l.driven || l.depth > 0 {
		return l.Alive(), ErrNested
	}
	l.driven = true
	defer l.checkGoexit()
	l.UpdateNow()
	l.meter.begin(l.now)
	alive = l.Alive() // read first: an iteration follows the due timers even if nothing else is alive
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
	l.flushing.run(l)
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

// Iterate runs one iteration for a push host, which has polled: the phases after the
// poll, and those before the next poll. The host calls it after a batch of I/O callbacks,
// or when woken, always from one goroutine. Iterate returns how long the host may wait
// (negative: until woken; zero: poll without waiting and call it again). Before Start
// and after the end of the loop it does nothing and returns a negative wait. Within a
// callback it panics with ErrNested.
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

// Event runs an I/O callback. The first callback of a batch begins the iteration. Event
// reports whether a push host must ensure that Iterate follows this batch; it need not if
// the loop has called Wake. Event contains a panic of the callback and returns its
// value, nil if there was none.
func (l *Loop) Event(fn func()) (needsIterate bool, recovered any) {
	needsIterate = l.depth == 0 && l.wakeUp()
	l.count.Events++
	return needsIterate, l.call(fn)
}

// Clock returns the clock that the loop was built with. Any goroutine.
func (l *Loop) Clock() clock.Clock { return l.clock }

// Now returns the cached time, read at the end of the poll and again before the timers
// phase. It does not move within a callback.
func (l *Loop) Now() clock.Time { return l.now }

// UpdateNow refreshes the cached time, for a callback that has run for a long time.
func (l *Loop) UpdateNow() { l.now = l.clock.Now() }

// Alive reports whether the loop has a reason to run: an active timer or hook, a held
// request, a pending post, deferred work, work before the flush, a close callback, or its own end.
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

// Pending reports whether posts, deferred work, work before the flush or close callbacks wait to be run.
func (l *Loop) Pending() bool {
	if !l.deferred.empty() || !l.flushing.empty() || !l.closing.empty() {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.mu.inbox) > 0
}

// Iteration returns the number of the present iteration. It returns the number of
// the last one between two iterations.
func (l *Loop) Iteration() uint64 { return l.count.Iterations }

// Due returns the due time of the earliest timer, or zero if none is active.
func (l *Loop) Due() clock.Time { return l.timers.first() }

// Hold counts one request in flight, which will call back on the loop and keeps it alive
// until Release.
func (l *Loop) Hold() { l.held++ }

// Release ends one Hold. More Releases than Holds are a bug: Release panics.
func (l *Loop) Release() {
	if l.held == 0 {
		panic("loop: Release without Hold")
	}
	l.held--
}

// sleep decides how long the next poll may wait. A post wakes the host from then on.
func (l *Loop) sleep(noWait bool) (wait time.Duration) {
	now := l.clock.Now()
	wait = -1
	switch due := l.timers.first(); {
	case noWait || l.idle.active > 0 || !l.deferred.empty() || !l.flushing.empty() || !l.closing.empty():
		wait = 0
	case due != 0 && due != clock.Never:
		wait = max(0, due.Sub(now))
	}
	l.awake = false
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.mu.inbox) > 0 || l.phase.Load() == stopping && (!l.winding || l.drained > 0) {
		wait = 0 // Once the host has drained, nothing else would wake the loop for its last iteration.
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

// wakeUp begins an iteration unless one has begun. It reports whether I/O has ended the
// wait, not a call of Wake.
func (l *Loop) wakeUp() (byIO bool) {
	if l.awake {
		return false
	}
	l.awake = true
	l.UpdateNow()
	l.meter.begin(l.now)
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
