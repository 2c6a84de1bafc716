package cpupool

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alitto/pond/v2"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
)

// Errors of Submit and Done. A job that was cancelled has loop.ErrCancelled.
var (
	ErrNilWork   = errors.New("cpu pool: job without work")
	ErrInUse     = errors.New("cpu pool: job is already submitted")
	ErrQueueFull = errors.New("cpu pool: queue is full")
	ErrClosed    = errors.New("cpu pool: closed")
	ErrGoexit    = errors.New("cpu pool: work called runtime.Goexit")
)

// PanicError is the error that Done gets if Work has panicked. Immutable.
type PanicError struct {
	Value any
	Stack []byte // of the panicking worker
}

// Error implements error: one line, without the stack. It shows an excerpt of a long value.
func (e *PanicError) Error() string { return "panic: " + errtext.Text(fmt.Sprint(e.Value)) }

// Loop is the part of an event loop that the pool uses. It hands jobs back, and keeps the
// loop alive while jobs are under way (libuv's active requests). Each method says who may
// call it.
type Loop interface {
	Post(fn func()) bool   // any goroutine
	Done() <-chan struct{} // any goroutine; closed when the loop has ended
	Hold()                 // loop only
	Release()              // loop only
	Defer(fn func())       // loop only; fn runs at the end of the iteration
	Contain()              // loop only; deferred directly, it contains a panic
}

// Config says how to build a pool. The zero value works. Immutable.
type Config struct {
	// Workers is the number of jobs that run at once. Zero means 2.
	Workers int
	// QueueMax bounds the jobs that wait for a worker; beyond it Submit returns ErrQueueFull. Zero means 65536. A
	// healthy program never reaches it, because the engine limits requests in flight to a few hundred.
	QueueMax int
	// Clock measures how long jobs wait and run. Nil means a real clock.
	Clock clock.Clock
	// Executor provides the workers. Nil means a pond pool of that size.
	Executor Executor
}

// Pool is a CPU pool that hands jobs back to one loop. Submit and Cancel: loop only. Other
// methods: any goroutine except the workers.
type Pool struct {
	loop     Loop
	clock    clock.Clock
	exec     Executor
	workers  int
	queueMax int

	work, start func() // methods worker and startFirst, bound once
	starting    bool   // startFirst is deferred; loop only

	mu struct { // guards these fields, and the places of jobs in the queue
		sync.Mutex
		queue     queue
		queuedMax int
		working   int    // workers under way; at most Pool.workers
		numbers   []int  // of workers that do not run, or have not taken a job yet
		closed    bool   // Submit refuses
		kept      []*Job // finished after the loop had stopped: Close completes them
	}

	// pending counts accepted jobs that have not been handed back.
	pending atomic.Int64
	idle    struct {
		sync.Mutex
		cond *sync.Cond
	}

	submitted, finished, cancelled, panicked atomic.Int64
	waitTotal, waitMax, runTotal             atomic.Int64
}

// New returns a pool that hands jobs back to l.
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
	p.work, p.start = p.worker, p.startFirst
	p.idle.cond = sync.NewCond(&p.idle)
	for n := cfg.Workers - 1; n >= 0; n-- {
		p.mu.numbers = append(p.mu.numbers, n)
	}
	return p
}

// A Job is one piece of CPU work. Its owner sets Work and Done once, and may submit it
// again after Done. Loop only, except that Work runs on a worker.
type Job struct {
	// Work runs on a worker. The data that it touches belongs to it until Done.
	Work func()
	// Done runs exactly once per accepted Submit, on the loop, never inside Submit or
	// Cancel. If the loop has stopped before the job ends, Done runs inside Pool.Close.
	// err is nil, loop.ErrCancelled, a *PanicError or ErrGoexit.
	// Done may be nil.
	Done func(err error)
	// Worker is the number of the worker that runs Work, or ran it last: 0, 1, ... Work and Done may read it.
	Worker int
	// Due orders the queue: jobs with an earlier Due start first. Jobs with the same Due, such as zero, start in the
	// order of their submission. The owner sets it before Submit.
	Due clock.Time
	// Queued is when Submit accepted the job, and Started when its worker took it. Work and Done may read them
	// instead of the clock.
	Queued, Started clock.Time

	pool   *Pool
	inUse  bool   // from Submit to Done
	place  int    // in the queue: see jobHeap; 0: not in it
	number uint64 // of the submission
	err    error
	back   func() // bound once, so that submitting again allocates nothing
}

// Submit queues j. Neither Work nor Done runs if it returns an error
// (ErrNilWork, ErrInUse, ErrQueueFull, ErrClosed).
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
	j.pool, j.err, j.Queued = p, nil, p.clock.Now()
	if err := p.enqueue(j); err != nil {
		return err
	}
	j.inUse = true
	p.submitted.Add(1)
	p.loop.Hold()
	if !p.starting {
		p.starting = true
		p.loop.Defer(p.start)
	}
	return nil
}

func (p *Pool) enqueue(j *Job) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.mu.closed:
		return ErrClosed
	case p.mu.queue.Len() >= p.queueMax:
		return ErrQueueFull
	}
	p.pending.Add(1)
	p.mu.queue.push(j)
	p.mu.queuedMax = max(p.mu.queuedMax, p.mu.queue.Len())
	return nil
}

// startFirst runs at the end of an iteration in which jobs were submitted. It starts one
// worker, which starts the next one if jobs are left: see take.
func (p *Pool) startFirst() {
	p.starting = false
	p.startWorker()
}

// startWorker starts a worker if the queue wants one.
func (p *Pool) startWorker() {
	p.mu.Lock()
	wanted := p.wantsWorker()
	p.mu.Unlock()
	if wanted {
		p.exec.Go(p.work)
	}
}

// wantsWorker reports whether another worker has something to do, and counts it as
// working. The caller holds mu.
func (p *Pool) wantsWorker() bool {
	if p.mu.queue.Len() == 0 || p.mu.working >= p.workers {
		return false
	}
	p.mu.working++
	return true
}

// worker runs queued jobs until the queue is empty. After a pause it is a new goroutine, with a small
// stack.
func (p *Pool) worker() {
	growStack(0)
	number := noNumber
	for j := p.take(&number); j != nil; j = p.take(&number) {
		j.Worker = number
		j.onWorker()
	}
}

// growStack makes the stack grow now, when there is little to copy. Without it, the stack grew twice during the first
// job, which took a seventh of a job of 10 µs to copy its dozen frames.
//
//go:noinline
func growStack(at int) byte {
	var room [4 << 10]byte
	return room[at]
}

// noNumber is the number of a worker that has not taken a job.
const noNumber = -1

// take returns the first job to the worker that calls it, and starts another worker if jobs are left. If the queue is
// empty, it returns nil, and the worker ends. The worker keeps its number in between.
func (p *Pool) take(number *int) *Job {
	p.mu.Lock()
	j := p.mu.queue.pop()
	if j == nil {
		p.retire(*number)
	} else {
		if last := len(p.mu.numbers) - 1; *number == noNumber {
			*number, p.mu.numbers = p.mu.numbers[last], p.mu.numbers[:last]
		}
	}
	wanted := p.wantsWorker()
	p.mu.Unlock()
	if wanted {
		p.exec.Go(p.work)
	}
	return j
}

// retire counts a worker as ended and takes its number back. The caller holds mu.
func (p *Pool) retire(number int) {
	p.mu.working--
	if number != noNumber {
		p.mu.numbers = append(p.mu.numbers, number)
	}
}

// Cancel removes a job that no worker has started, under the contract of loop.ErrCancelled. Its Work will not run,
// and its place in the queue is free at once.
func (p *Pool) Cancel(j *Job) error {
	p.mu.Lock()
	queued := p.mu.queue.remove(j)
	p.mu.Unlock()
	if !queued {
		return loop.ErrBusy
	}
	j.err = loop.ErrCancelled
	p.cancelled.Add(1)
	p.loop.Defer(j.back)
	p.settled()
	return nil
}

// onWorker runs a job that a worker has taken.
func (j *Job) onWorker() {
	p := j.pool
	start := p.clock.Now()
	j.Started = start
	wait := int64(start.Sub(j.Queued))
	p.waitTotal.Add(wait)
	for old := p.waitMax.Load(); wait > old && !p.waitMax.CompareAndSwap(old, wait); old = p.waitMax.Load() {
	}
	number := j.Worker
	j.err = ErrGoexit // stays if Work never returns
	defer func() {
		p.runTotal.Add(int64(p.clock.Now().Sub(start)))
		p.finished.Add(1)
		if j.err == ErrGoexit {
			p.replaceWorker(number)
		}
		j.handBack()
	}()
	j.err = j.contain()
}

// replaceWorker starts another worker in place of one whose goroutine ends.
func (p *Pool) replaceWorker(number int) {
	p.mu.Lock()
	p.retire(number)
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

// handBack posts the completion. The loop refuses the post if it has stopped: Close then
// completes the job.
func (j *Job) handBack() {
	p := j.pool // j may be submitted again as soon as the post is accepted
	if !p.loop.Post(j.back) {
		p.mu.Lock()
		p.mu.kept = append(p.mu.kept, j)
		p.mu.Unlock()
	}
	p.settled()
}

// onLoop completes the job on the loop.
func (j *Job) onLoop() {
	err := j.err
	j.pool.loop.Release()
	j.inUse = false
	if j.Done != nil {
		j.Done(err)
	}
}

// settled counts a job as handed back.
func (p *Pool) settled() {
	if p.pending.Add(-1) == 0 {
		p.idle.Lock()
		p.idle.cond.Broadcast()
		p.idle.Unlock()
	}
}

// WaitIdle blocks until all accepted jobs have been handed back. Call it before the loop
// stops, so that the loop completes them. Any goroutine except the loop and the workers.
func (p *Pool) WaitIdle() {
	p.startWorker() // a stopped loop does not run startFirst
	p.idle.Lock()
	defer p.idle.Unlock()
	for p.pending.Load() != 0 {
		p.idle.cond.Wait()
	}
}

// Close refuses further jobs and waits for the accepted ones. If the loop stops before it
// has taken all of them back, Close waits for its end and runs the remaining Done
// functions. That is safe: no other goroutine touches their data any more. Any
// goroutine except the loop and the workers.
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

// complete completes a job in place of the loop.
func (p *Pool) complete(j *Job) {
	defer p.loop.Contain()
	j.onLoop()
}

// Stats are counters since New and the present depth of the queue. Immutable.
type Stats struct {
	Submitted, Finished, Cancelled, Panicked int64
	Running                                  int64 // jobs that workers have now
	Queued, QueuedMax                        int64 // jobs waiting for a worker, now and at most
	WaitTotal, WaitMax, RunTotal             time.Duration
}

// Stats returns the counters. Any goroutine.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	queued, queuedMax := int64(p.mu.queue.Len()), int64(p.mu.queuedMax)
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
