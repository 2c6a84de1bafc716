package cpupool

import (
	"errors"

	"github.com/alitto/pond/v2"
)

// Executor runs functions on workers. Any goroutine.
type Executor interface {
	// Go has run called once, later, on a worker; functions are begun in the order of
	// their calls. With an error, ErrQueueFull or ErrClosed, it never is.
	Go(run func()) error
	// RunningWorkers returns the number of workers that are alive.
	RunningWorkers() int64
	// Stop refuses further functions and waits for the accepted ones.
	Stop()
}

// pondExecutor is the executor of a real pool.
type pondExecutor struct{ pond pond.Pool }

func newPond(workers, queueMax int) Executor {
	return pondExecutor{pond.NewPool(workers, pond.WithQueueSize(queueMax), pond.WithNonBlocking(true))}
}

func (x pondExecutor) Go(run func()) error {
	switch err := x.pond.Go(run); {
	case err == nil:
		return nil
	case errors.Is(err, pond.ErrQueueFull):
		return ErrQueueFull
	default:
		return ErrClosed
	}
}

func (x pondExecutor) RunningWorkers() int64 { return x.pond.RunningWorkers() }

func (x pondExecutor) Stop() { x.pond.StopAndWait() }
