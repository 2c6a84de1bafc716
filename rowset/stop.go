package rowset

import "errors"

// ErrStopped says that a Stop ended a computation early.
var ErrStopped = errors.New("stopped: the result is no longer wanted")

// A Stop tells a long computation that nobody waits for its result any more. The
// computation asks every few thousand rows and returns ErrStopped once told. A nil
// Stop never stops it. Any goroutine. *task.Ctx is a Stop.
type Stop interface {
	// Cancelled reports whether to stop. Once true it stays true. Computations call it
	// often, so it should cost no more than an atomic load.
	Cancelled() bool
}

// inChunks calls do for ranges [lo, hi) of n rows, until stop says so. A nil stop never does. The error is ErrStopped.
func inChunks(stop Stop, n int, do func(lo, hi int)) error {
	for lo := 0; lo < n; lo += stopRows {
		if stop != nil && stop.Cancelled() {
			return ErrStopped
		}
		do(lo, min(n, lo+stopRows))
	}
	return nil
}
