package rankd

import (
	"errors"
	"runtime/debug"
	"time"

	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/trace"
)

var errRequestTrace = errors.New("trace is set, and this engine lets no request ask for it")

// sample reports whether the present request is one that the engine's sink gets.
func (e *Engine) sample() bool {
	every := uint64(e.options.TraceSample)
	return every > 0 && (e.asked.Add(1)-1)%every == 0
}

// recording completes the recording of a request that has ended, gives it to the engine's sink if it is due there, and
// returns it if the request asked for it.
func (c *call) recording(result *scheduler.Result) *trace.Recording {
	r := result.Recording
	if r == nil {
		return nil
	}
	r.RequestID, r.At = c.id, time.Now().Add(r.Arrived.Sub(r.Ended)).Round(0).UTC()
	if c.sampled {
		c.engine.emit(r)
	}
	if !c.traced {
		return nil
	}
	return r.Keep()
}

// emit gives a recording to the engine's sink. It logs a panic of the sink.
func (e *Engine) emit(r *trace.Recording) {
	defer func() {
		if recovered := recover(); recovered != nil {
			e.options.Logger.Error("panic in the trace sink", "panic", recovered, "stack", string(debug.Stack()))
		}
	}()
	e.options.TraceSink.Take(r)
}
