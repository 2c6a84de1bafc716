package scheduler

import (
	"time"

	"github.com/rankd/rankd/cpupool"
)

// simExecutor stands for the workers of the CPU pool. Each worker is a coroutine, which
// suspends in virtual time for as long as its work takes. The pool's own code runs on it.
type simExecutor struct {
	w       *simWorld
	queue   []func() // workers to be started
	idle    []*simWorker
	current *simWorker // whose coroutine runs; nil on the loop
}

// simWorker is one worker.
type simWorker struct {
	exec *simExecutor
	co   *coroutine
	wake func() // bound once
}

func (x *simExecutor) reset(w *simWorld, workers int) {
	x.w, x.queue, x.current = w, x.queue[:0], nil
	x.idle = x.idle[:0]
	for _, worker := range w.lab.workers[:workers] {
		worker.exec = x
		x.idle = append(x.idle, worker)
	}
}

func newSimWorker() *simWorker {
	worker := &simWorker{co: newCoroutine()}
	worker.wake = func() { worker.enter(worker.co.resume) }
	return worker
}

// Go implements cpupool.Executor. No work begins inside it.
func (x *simExecutor) Go(run func()) {
	x.queue = append(x.queue, run)
	x.w.sim.After(x.w.between(0, 200*time.Microsecond), x.dispatch)
}

// dispatch gives the oldest start to an idle worker, if there are both.
func (x *simExecutor) dispatch() {
	if len(x.queue) == 0 || len(x.idle) == 0 {
		return
	}
	run := x.queue[0]
	x.queue = x.queue[1:]
	worker := x.idle[len(x.idle)-1]
	x.idle = x.idle[:len(x.idle)-1]
	worker.enter(func() bool { return worker.co.start(run) })
}

// enter resumes the worker's work until it takes time or ends.
func (worker *simWorker) enter(resume func() (ended bool)) {
	x := worker.exec
	x.current = worker
	ended := resume()
	x.current = nil
	if ended {
		x.idle = append(x.idle, worker)
		x.dispatch()
	}
}

// burn has a worker's present work take that long.
func (x *simExecutor) burn(d time.Duration) {
	worker := x.current
	x.w.sim.After(d, worker.wake)
	worker.co.suspend()
}

// Stop implements cpupool.Executor.
func (x *simExecutor) Stop() {}

// simCPU is the pool as the engine sees it. It counts the pool's refusals, and checks the order
// of the jobs that wait.
type simCPU struct {
	*cpupool.Pool
	w *simWorld
}
