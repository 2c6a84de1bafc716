package cpupool

import "github.com/alitto/pond/v2"

// Workers run functions, at most a fixed number at a time, first come first
// served: the pool of engines that have no loop. Any goroutine.
type Workers struct{ pond pond.Pool }

// NewWorkers returns n workers with an unbounded queue: who submits waits for
// what it submitted, so the queue is bounded by the callers.
func NewWorkers(n int) *Workers { return &Workers{pond: pond.NewPool(n)} }

// Go queues fn. The error is ErrClosed; fn does not run then.
func (w *Workers) Go(fn func()) error {
	if err := w.pond.Go(fn); err != nil {
		return ErrClosed
	}
	return nil
}

// Close refuses further functions and waits for the accepted ones. Not for a
// function that runs on a worker.
func (w *Workers) Close() { w.pond.StopAndWait() }
