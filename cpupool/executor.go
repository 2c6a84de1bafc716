package cpupool

import "github.com/alitto/pond/v2"

// Executor provides workers. A simulation brings its own. Any goroutine.
type Executor interface {
	// Go calls run once, later, on a worker. The pool has at most Config.Workers of
	// these calls under way at a time.
	Go(run func())
	// Stop waits until all calls of run have returned. The pool calls Go no more.
	Stop()
}

// pondExecutor is the executor of a real pool: workers of pond's.
type pondExecutor struct{ pond pond.Pool }

// Go implements Executor.
func (x pondExecutor) Go(run func()) {
	// pond refuses only once it is stopped, and the pool stops it when no job is left.
	_ = x.pond.Go(run)
}

// Stop implements Executor.
func (x pondExecutor) Stop() { x.pond.StopAndWait() }
