package rankd

import (
	"github.com/rankd/rankd/reactor"
	"github.com/rankd/rankd/scheduler"
)

// Reactor returns the loop of an engine with the Reactor model, and nil with another model. A front gives it the
// connections of its clients, and calls Start from their callbacks: no goroutine stands between socket and scheduler. Their owner
// closes these connections before he closes the engine. A callback on the loop must not block. Not stable yet.
func (e *Engine) Reactor() *reactor.Reactor {
	if async, ok := e.scheduler.(*scheduler.Async); ok {
		return async.Reactor()
	}
	return nil
}
