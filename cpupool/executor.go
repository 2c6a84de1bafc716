package cpupool

import (
	"sync"

	"github.com/alitto/pond/v2"
)

// Executor runs functions on workers.
type Executor interface {
	// Go has run called once, later, on a worker; functions are begun in the order of
	// their calls. With an error, ErrQueueFull or ErrClosed, it never is. Loop only.
	Go(run func()) error
	// Flush follows the calls of Go of one iteration of the loop: what they gave
	// is begun from now on, if not before. Loop only.
	Flush()
	// RunningWorkers returns the number of workers that are alive. Any goroutine.
	RunningWorkers() int64
	// Stop refuses further functions and waits for the accepted ones. Any goroutine
	// but a worker.
	Stop()
}

// pondExecutor is the executor of a real pool. It has a queue of its own in
// front of pond's, for the loop's sake: to start a worker costs the one who does it
// a wake-up of a sleeping thread, some 10 µs on a virtual machine, ten times the work of a small
// node. Given one by one, each of an iteration's jobs would find the worker of the one
// before just gone. So they are collected, and Flush starts one worker for all; a
// worker that leaves something behind starts the next one, at its own expense. Nothing
// is lost by it: a hand-back is taken up in the next iteration at the earliest.
type pondExecutor struct {
	pond     pond.Pool
	workers  int
	queueMax int

	mu       sync.Mutex // guards what follows
	queue    []func()   // FIFO; queue[head:] wait
	head     int
	draining int // pond tasks that drain the queue, running or about to; at most workers
	closed   bool
}

func newPond(workers, queueMax int) *pondExecutor {
	return &pondExecutor{pond: pond.NewPool(workers), workers: workers, queueMax: queueMax}
}

// Go implements Executor.
func (x *pondExecutor) Go(run func()) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.closed:
		return ErrClosed
	case len(x.queue)-x.head >= x.queueMax:
		return ErrQueueFull
	}
	if x.head > len(x.queue)/2 && len(x.queue) == cap(x.queue) { // make room by moving, not by growing
		n := copy(x.queue, x.queue[x.head:])
		clear(x.queue[n:])
		x.queue, x.head = x.queue[:n], 0
	}
	x.queue = append(x.queue, run)
	return nil
}

// Flush implements Executor.
func (x *pondExecutor) Flush() {
	x.mu.Lock()
	start := x.wantsWorker()
	x.mu.Unlock()
	if start {
		x.startWorker()
	}
}

// wantsWorker reports whether another worker has something to do, and counts it.
// mu is held.
func (x *pondExecutor) wantsWorker() bool {
	if x.head == len(x.queue) || x.draining >= x.workers {
		return false
	}
	x.draining++
	return true
}

// startWorker starts a worker that is counted already.
func (x *pondExecutor) startWorker() {
	if x.pond.Go(x.drain) != nil { // stopped: those that run finish the queue
		x.mu.Lock()
		x.draining--
		x.mu.Unlock()
	}
}

// drain is a worker: it runs what is queued until nothing is.
func (x *pondExecutor) drain() {
	drained := false
	defer func() {
		if !drained { // run left through runtime.Goexit, and this goroutine ends with it
			x.startWorker()
		}
	}()
	for {
		x.mu.Lock()
		if x.head == len(x.queue) {
			x.queue, x.head = x.queue[:0], 0
			x.draining--
			x.mu.Unlock()
			drained = true
			return
		}
		run := x.queue[x.head]
		x.queue[x.head] = nil
		x.head++
		more := x.wantsWorker()
		x.mu.Unlock()
		if more {
			x.startWorker()
		}
		run()
	}
}

// RunningWorkers implements Executor.
func (x *pondExecutor) RunningWorkers() int64 { return x.pond.RunningWorkers() }

// Stop implements Executor.
func (x *pondExecutor) Stop() {
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.Flush()
	x.pond.StopAndWait()
}
