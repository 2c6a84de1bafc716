package cpupool

import "github.com/alitto/pond/v2"

// Executor provides workers. A simulation has its own. Any goroutine.
type Executor interface {
	// Go has a worker call run once, later. The pool keeps at most Config.Workers of these
	// calls under way at a time.
	Go(run func())
	// Stop waits until all calls of run have returned. The pool does not call Go after it.
	Stop()
}

// pondExecutor has a pond pool's workers. It is the default. Any goroutine.
type pondExecutor struct{ pond pond.Pool }

// Go implements Executor.
func (x pondExecutor) Go(run func()) {
	// pond refuses only after its stop, and the pool stops it when no job is left.
	_ = x.pond.Go(run)
}

// Stop implements Executor.
func (x pondExecutor) Stop() { x.pond.StopAndWait() }
