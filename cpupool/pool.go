package cpupool

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alitto/pond/v2"

	"github.com/rankd/rankd/loop/clock"
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
	Post(fn func()) bool   // any goroutine
	Done() <-chan struct{} // any goroutine; closed when the loop has ended
	Hold()                 // loop only
	Release()              // loop only
	Defer(fn func())       // loop only; fn runs at the end of the iteration
	Contain()              // loop only; deferred directly, it contains a panic
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
	// Executor provides the workers. Nil means a pond pool with as many.
	Executor Executor
}

// Pool is a CPU pool that hands back to one loop. Submit and Cancel: loop
// only. The rest: any goroutine but the workers' own.
type Pool struct {
	loop     Loop
	clock    clock.Clock
	exec     Executor
	workers  int
	queueMax int

	work, flush func() // worker and flushed, bound once
	flushing    bool   // a deferred flush is to come; loop only

	mu struct { // guards what follows, and the links of queued jobs
		sync.Mutex
		queue     queue
		queuedMax int
		working   int    // workers under way; at most Pool.workers
		closed    bool   // Submit refuses
		kept      []*Job // handed back, but the loop had stopped: Close completes them
	}

	// pending counts accepted jobs that have not been handed back yet.
	pending atomic.Int64
	idle    struct {
		sync.Mutex
		cond *sync.Cond
	}

	submitted, finished, cancelled, panicked atomic.Int64
	waitTotal, waitMax, runTotal             atomic.Int64
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
		cfg.Executor = pondExecutor{pond.NewPool(cfg.Workers)}
	}
	p := &Pool{loop: l, clock: cfg.Clock, exec: cfg.Executor, workers: cfg.Workers, queueMax: cfg.QueueMax}
	p.work, p.flush = p.worker, p.flushed
	p.idle.cond = sync.NewCond(&p.idle)
	return p
}

// A Job is one piece of CPU work. Its owner fills Work and Done once; it may
// be submitted again after Done. Loop only, except that Work runs on a worker.
type Job struct {
	// Work runs on a worker. What it touches belongs to it until Done.
	Work func()
	// Done runs exactly once per accepted Submit, on the loop, never inside Submit or
	// Cancel. If the loop has stopped before the job ends, Done runs inside Pool.Close.
	// err is nil, ErrCancelled, a *PanicError, or says that Work called runtime.Goexit.
	// Nil is allowed.
	Done func(err error)

	pool       *Pool
	inUse      bool // from Submit to Done
	queued     bool
	prev, next *Job // in the queue
	err        error
	queuedAt   clock.Time
	back       func() // bound once, so that submitting again allocates nothing
}

// Submit queues j. The error is nil, ErrNilWork, ErrInUse, ErrQueueFull or ErrClosed;
// with an error nothing runs and Done is not called.
func (p *Pool) Submit(j *Job) error {
	switch {
	case j.Work == nil:
		return ErrNilWork
	case j.inUse:
		return ErrInUse
	}
	if j.back == nil {
		j.back = j.onLoop
	}
	j.pool, j.err, j.queuedAt = p, nil, p.clock.Now()
	if err := p.enqueue(j); err != nil {
		return err
	}
	j.inUse = true
	p.submitted.Add(1)
	p.loop.Hold()
	if !p.flushing {
		p.flushing = true
		p.loop.Defer(p.flush)
	}
	return nil
}

func (p *Pool) enqueue(j *Job) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.mu.closed:
		return ErrClosed
	case p.mu.queue.len >= p.queueMax:
		return ErrQueueFull
	}
	p.pending.Add(1)
	p.mu.queue.push(j)
	p.mu.queuedMax = max(p.mu.queuedMax, p.mu.queue.len)
	return nil
}

// flushed is the end of an iteration in which jobs were submitted. It starts one
// worker for all of them, which starts the next: see take.
func (p *Pool) flushed() {
	p.flushing = false
	p.startWorker()
}

// startWorker starts a worker if one is wanted.
func (p *Pool) startWorker() {
	p.mu.Lock()
	wanted := p.wantsWorker()
	p.mu.Unlock()
	if wanted {
		p.exec.Go(p.work)
	}
}

// wantsWorker reports whether another worker has something to do, and counts it.
// mu is held.
func (p *Pool) wantsWorker() bool {
	if p.mu.queue.len == 0 || p.mu.working >= p.workers {
		return false
	}
	p.mu.working++
	return true
}

// worker runs what is queued until nothing is.
func (p *Pool) worker() {
	for j := p.take(); j != nil; j = p.take() {
		j.onWorker()
	}
}

// take returns the oldest job for the worker that calls it. If it leaves others behind
// it starts another worker. It returns nil, and ends the worker, if there is none.
func (p *Pool) take() *Job {
	p.mu.Lock()
	j := p.mu.queue.pop()
	if j == nil {
		p.mu.working--
	}
	wanted := p.wantsWorker()
	p.mu.Unlock()
	if wanted {
		p.exec.Go(p.work)
	}
	return j
}

// Cancel takes back a job that no worker has started: its Work will not run, its
// place in the queue is free at once, and its Done gets ErrCancelled, later, on the loop. A
// job that has started is left alone: ErrBusy.
func (p *Pool) Cancel(j *Job) error {
	p.mu.Lock()
	if !j.queued {
		p.mu.Unlock()
		return ErrBusy
	}
	p.mu.queue.remove(j)
	p.mu.Unlock()
	j.err = ErrCancelled
	p.cancelled.Add(1)
	p.loop.Defer(j.back)
	p.settled()
	return nil
}

// onWorker runs a job that a worker has taken.
func (j *Job) onWorker() {
	p := j.pool
	start := p.clock.Now()
	wait := int64(start.Sub(j.queuedAt))
	p.waitTotal.Add(wait)
	for old := p.waitMax.Load(); wait > old && !p.waitMax.CompareAndSwap(old, wait); old = p.waitMax.Load() {
	}
	j.err = errGoexit // stands if Work never returns
	defer func() {
		p.runTotal.Add(int64(p.clock.Now().Sub(start)))
		p.finished.Add(1)
		if j.err == errGoexit {
			p.replaceWorker()
		}
		j.handBack()
	}()
	j.err = j.contain()
}

// replaceWorker has another worker do what this one cannot, because its goroutine ends.
func (p *Pool) replaceWorker() {
	p.mu.Lock()
	p.mu.working--
	p.mu.Unlock()
	p.startWorker()
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

// handBack posts the completion. A refused post means that the loop has stopped:
// the completion is left to Close.
func (j *Job) handBack() {
	p := j.pool // j may be submitted again as soon as the post is accepted
	if !p.loop.Post(j.back) {
		p.mu.Lock()
		p.mu.kept = append(p.mu.kept, j)
		p.mu.Unlock()
	}
	p.settled()
}

// onLoop is the hand-back.
func (j *Job) onLoop() {
	err := j.err
	j.pool.loop.Release()
	j.inUse = false
	if j.Done != nil {
		j.Done(err)
	}
}

// settled ends what the pending count says of a job, once it is handed back.
func (p *Pool) settled() {
	if p.pending.Add(-1) == 0 {
		p.idle.Lock()
		p.idle.cond.Broadcast()
		p.idle.Unlock()
	}
}

// WaitIdle blocks until no accepted job is queued or running and all have been handed
// back. It is called before the loop stops, so that no completion finds the loop
// gone. Not for the loop goroutine nor a worker.
func (p *Pool) WaitIdle() {
	p.startWorker() // a loop that has stopped does it no more
	p.idle.Lock()
	defer p.idle.Unlock()
	for p.pending.Load() != 0 {
		p.idle.cond.Wait()
	}
}

// Close refuses further jobs and waits for the accepted ones. If the loop has stopped
// before all of them were handed back, Close waits for its end and runs the Done of the
// rest: nobody else is left who could touch what they touch. Not for the loop
// goroutine nor a worker.
func (p *Pool) Close() {
	p.mu.Lock()
	p.mu.closed = true
	p.mu.Unlock()
	p.WaitIdle()
	p.exec.Stop()

	p.mu.Lock()
	kept := p.mu.kept
	p.mu.kept = nil
	p.mu.Unlock()
	if len(kept) > 0 {
		<-p.loop.Done()
	}
	for _, j := range kept {
		p.complete(j)
	}
}

// complete runs a hand-back in the loop's stead.
func (p *Pool) complete(j *Job) {
	defer p.loop.Contain()
	j.onLoop()
}

// Stats are counters since New, and the present depth. Immutable.
type Stats struct {
	Submitted, Finished, Cancelled, Panicked int64
	Running                                  int64 // jobs that workers have, now
	Queued, QueuedMax                        int64 // jobs waiting for a worker, now and at most
	WaitTotal, WaitMax, RunTotal             time.Duration
}

// Stats returns the counters. Any goroutine.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	queued, queuedMax := int64(p.mu.queue.len), int64(p.mu.queuedMax)
	running := p.pending.Load() - queued
	p.mu.Unlock()
	return Stats{
		Submitted: p.submitted.Load(), Finished: p.finished.Load(), Cancelled: p.cancelled.Load(),
		Panicked: p.panicked.Load(), Running: running,
		Queued: queued, QueuedMax: queuedMax,
		WaitTotal: time.Duration(p.waitTotal.Load()), WaitMax: time.Duration(p.waitMax.Load()),
		RunTotal: time.Duration(p.runTotal.Load()),
	}
}
