package rankd

import (
	"context"
	"math"
	"runtime/debug"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/trace"
)

// sample reports whether the present request, whose caller gave ctx, is one that the engine's sink gets.
func (e *Engine) sample(ctx context.Context) bool {
	if e.chooser != nil && !e.chooser.Wants(ctx) {
		return false
	}
	switch every := uint64(e.options.TraceSample); every {
	case 0:
		return false
	case 1: // nothing to count, which all goroutines that submit would do in one place
		return true
	default:
		return (e.asked.Add(1)-1)%every == 0
	}
}

// calendar is a reading of the calendar, and of the engine's clock at the same time. Immutable.
type calendar struct {
	date time.Time
	at   clock.Time
}

// calendarAge is how old a reading of the calendar may be that another instant is dated by.
const calendarAge = time.Second

// date returns the date of the present instant. It reads the calendar, which costs two readings of the clock, only now and then.
func (e *Engine) date(now clock.Time) time.Time {
	if e.options.Now != nil {
		return e.options.Now()
	}
	c := e.calendar.Load()
	if c == nil || now.Sub(c.at) > calendarAge {
		c = &calendar{date: time.Now().Round(0).UTC(), at: e.clock.Now()}
		e.calendar.Store(c)
	}
	return c.date.Add(now.Sub(c.at))
}

// recording completes the recording of a request that has ended, gives it to the engine's sink if it is due there, and
// returns it if the request asked for it.
func (c *call) recording(result *scheduler.Result) *trace.Recording {
	r := result.Recording
	if r == nil {
		return nil
	}
	arrived, _ := c.run.Params.Now()
	r.Context, r.RequestID, r.At = c.run.Context, c.id, time.UnixMicro(int64(math.Round(arrived*1e6))).UTC()
	if c.sampled {
		c.engine.emit(r)
	}
	if !c.traced {
		return nil
	}
	return r.Keep()
}

// ended returns when a request ended whose result is there now: as its trace says, if it is recorded.
func (e *Engine) ended(result *scheduler.Result) clock.Time {
	if result.Recording != nil {
		return result.Recording.Ended
	}
	return e.clock.Now()
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
