package cpupool

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rankd/rankd/clock"
)

// Errors of Submit, Cancel and Done.
var (
	ErrNilWork   = errors.New("cpu pool: job without work")
	ErrInUse     = errors.New("cpu pool: job is already submitted")
	ErrQueueFull = errors.New("cpu pool: queue is full")
	ErrClosed    = errors.New("cpu pool: closed")
	ErrBusy      = errors.New("cpu pool: job has already started")
	ErrCancelled = errors.New("cpu pool: job was cancelled")

	errGoexit = errors.New("cpu pool: work called runtime.Goexit")
)

// PanicError is what Done gets when Work panicked.
type PanicError struct {
	Value any
	Stack []byte // of the panicking worker
}

// Error implements error: one line, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Loop is what the pool needs of an event loop: a way back to it, and a way
// to keep it alive while jobs are on their way (libuv's active requests).
type Loop interface {
	Post(fn func()) bool // any goroutine
	Hold()               // loop only
	Release()            // loop only
	Defer(fn func())     // loop only; fn runs at the end of the iteration
}

// Config sets a pool up. The zero value works.
type Config struct {
	// Workers is how many jobs run at once. Zero means 2.
	Workers int
	// QueueMax bounds the jobs that wait for a worker; Submit returns
	// ErrQueueFull beyond it. Zero means 65536, which at the engine's limit of a few
	// hundred requests in flight is never reached by a healthy program.
	QueueMax int
	// Clock measures waits and runs. Nil means a real clock.
	Clock clock.Clock
	// Executor runs the jobs in place of the pool's own workers; Workers and QueueMax
	// are its business then. Nil means workers of pond's. A simulation brings its own.
	Executor Executor
}

// Pool is a CPU pool that hands back to one loop. Submit and Cancel: loop
// only. The rest: any goroutine but the workers' own.
type Pool struct {
	loop  Loop
	clock clock.Clock
	exec  Executor

	flush    func() // flushed, bound once
	flushing bool   // a deferred flush is to come; loop only

	// pending counts accepted jobs whose hand-back has not been posted yet.
	pending atomic.Int64
	idle    struct {
		sync.Mutex
		cond *sync.Cond
	}

	submitted, finished, cancelled, panicked, queued, queuedMax atomic.Int64
	waitTotal, waitMax, runTotal                                atomic.Int64
}

// New returns a pool that hands back to l.
func New(l Loop, cfg Config) *Pool {
	if cfg.Workers <= 0 {
		cfg.Workers = 2
	}
	if cfg.QueueMax <= 0 {
		cfg.QueueMax = 65536
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.NewReal()
	}
	if cfg.Executor == nil {
		cfg.Executor = newPond(cfg.Workers, cfg.QueueMax)
	}
	p := &Pool{loop: l, clock: cfg.Clock, exec: cfg.Executor}
	p.flush = p.flushed
	p.idle.cond = sync.NewCond(&p.idle)
	return p
}

// The life of a Job. Only the transitions out of queued race, between a
// worker and Cancel; the compare-and-swap there decides, once.
const (
	stateFree int32 = iota
	stateQueued
	stateRunning
	stateCancelled
)

// A Job is one piece of CPU work. Its owner fills Work and Done once; it may
// be submitted again after Done. Loop only, except that Work runs on a worker.
type Job struct {
	// Work runs on a worker. What it touches belongs to it until Done.
	Work func()
	// Done runs on the loop, exactly once per accepted Submit, never inside
	// Submit or Cancel. err is nil, ErrCancelled, or a *PanicError. Nil is allowed.
	Done func(err error)

	pool     *Pool
	state    atomic.Int32
	err      error
	queuedAt clock.Time
	run      func() // bound once, so that submitting again allocates nothing
	back     func()
}

// Submit queues j. The error is nil, ErrNilWork, ErrInUse, ErrQueueFull or ErrClosed;
// with an error nothing runs and Done is not called.
func (p *Pool) Submit(j *Job) error {
	if j.Work == nil {
		return ErrNilWork
	}
	if !j.state.CompareAndSwap(stateFree, stateQueued) {
		return ErrInUse
	}
	if j.run == nil {
		j.run, j.back = j.onWorker, j.onLoop
	}
	j.pool, j.err, j.queuedAt = p, nil, p.clock.Now()
	p.pending.Add(1)
	// Counted before the executor has it: a worker may take the job before Go returns.
	p.queuedMax.Store(max(p.queuedMax.Load(), p.queued.Add(1)))
	if err := p.exec.Go(j.run); err != nil {
		p.queued.Add(-1)
		j.state.Store(stateFree)
		p.settled()
		return err
	}
	p.submitted.Add(1)
	p.loop.Hold()
	if !p.flushing {
		p.flushing = true
		p.loop.Defer(p.flush)
	}
	return nil
}

// flushed is the end of an iteration in which jobs were submitted.
func (p *Pool) flushed() {
	p.flushing = false
	p.exec.Flush()
}

// Cancel takes back a job that no worker has started: its Work will not run
// and its Done gets ErrCancelled, later, on the loop. A job that has started is left alone:
// ErrBusy.
func (p *Pool) Cancel(j *Job) error {
	if !j.state.CompareAndSwap(stateQueued, stateCancelled) {
		return ErrBusy
	}
	// The job stays in the executor's queue; the worker that meets it hands it back.
	return nil
}

// onWorker is what the executor runs.
func (j *Job) onWorker() {
	defer j.handBack() // deferred: Work may leave through runtime.Goexit
	p := j.pool
	p.queued.Add(-1)
	if !j.state.CompareAndSwap(stateQueued, stateRunning) {
		j.err = ErrCancelled
		p.cancelled.Add(1)
		return
	}
	start := p.clock.Now()
	wait := int64(start.Sub(j.queuedAt))
	p.waitTotal.Add(wait)
	for old := p.waitMax.Load(); wait > old && !p.waitMax.CompareAndSwap(old, wait); old = p.waitMax.Load() {
	}
	j.err = errGoexit // stands if Work never returns
	j.err = j.contain()
	p.runTotal.Add(int64(p.clock.Now().Sub(start)))
	p.finished.Add(1)
}

// contain runs Work and turns a panic into an error.
func (j *Job) contain() (err error) {
	defer func() {
		if v := recover(); v != nil {
			j.pool.panicked.Add(1)
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	j.Work()
	return nil
}

// handBack posts the completion. A refused post means that the loop has
// stopped: nobody is left to be told.
func (j *Job) handBack() {
	p := j.pool // j may be submitted again as soon as the post is accepted
	p.loop.Post(j.back)
	p.settled()
}

// onLoop is the hand-back.
func (j *Job) onLoop() {
	err := j.err
	j.pool.loop.Release()
	j.state.Store(stateFree)
	if j.Done != nil {
		j.Done(err)
	}
}

func (p *Pool) settled() {
	if p.pending.Add(-1) == 0 {
		p.idle.Lock()
		p.idle.cond.Broadcast()
		p.idle.Unlock()
	}
}

// WaitIdle blocks until no accepted job is queued or running and all
// hand-backs are posted. It is called before the loop stops, so that no
// completion finds the loop gone. Not for the loop goroutine nor a worker.
func (p *Pool) WaitIdle() {
	p.idle.Lock()
	defer p.idle.Unlock()
	for p.pending.Load() != 0 {
		p.idle.cond.Wait()
	}
}

// Close refuses further jobs and waits for the accepted ones. Not for the
// loop goroutine nor a worker.
func (p *Pool) Close() {
	p.exec.Stop()
	p.WaitIdle()
}

// Stats are counters since New, and the present depth.
type Stats struct {
	Submitted, Finished, Cancelled, Panicked int64
	Running                                  int64 // workers alive
	Queued, QueuedMax                        int64 // jobs waiting for a worker, now and at most
	WaitTotal, WaitMax, RunTotal             time.Duration
}

// Stats returns the counters. Any goroutine.
func (p *Pool) Stats() Stats {
	return Stats{
		Submitted: p.submitted.Load(), Finished: p.finished.Load(), Cancelled: p.cancelled.Load(),
		Panicked: p.panicked.Load(), Running: p.exec.RunningWorkers(),
		Queued: p.queued.Load(), QueuedMax: p.queuedMax.Load(),
		WaitTotal: time.Duration(p.waitTotal.Load()), WaitMax: time.Duration(p.waitMax.Load()),
		RunTotal: time.Duration(p.runTotal.Load()),
	}
}
