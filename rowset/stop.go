package rowset

import "errors"

// ErrStopped is what a computation returns that was stopped before its end.
var ErrStopped = errors.New("stopped: the result is no longer wanted")

// A Stop tells a long computation that nobody waits for its result any more.
// Computations that take one ask every few thousand rows, and then return
// ErrStopped; a nil Stop never stops them. Any goroutine; *task.Ctx is one.
type Stop interface {
	// Cancelled reports whether to stop. Once true it stays true. It is called
	// often, and should cost no more than an atomic load.
	Cancelled() bool
}
