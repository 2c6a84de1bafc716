package loop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/loop"
)

// The steady state allocates nothing, once the queues have grown.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	h := looptest.New(t)
	nothing := func() {}
	poll := func(time.Duration) {}
	iterate := func() { _, _ = h.Loop.Run(loop.RunNoWait, poll) }
	tm, repeat := h.Loop.NewTimer(nothing), h.Loop.NewTimer(nothing)
	hook := h.Loop.NewCheck(nothing)
	for name, fn := range map[string]func(){
		"post": func() {
			for range 100 {
				h.Loop.Post(nothing)
			}
			iterate()
		},
		"defer":       func() { h.Loop.Defer(nothing); iterate() },
		"start, stop": func() { _ = tm.Start(time.Hour, 0); tm.Stop() },
		"fire":        func() { _ = tm.Start(0, 0); iterate() },
		"repeat": func() {
			if !repeat.Active() {
				_ = repeat.Start(ms, ms)
			}
			h.Clock.Advance(ms)
			iterate()
		},
		"hook":     func() { _ = hook.Start(); iterate(); hook.Stop() },
		"callback": func() { h.Loop.Event(nothing) },
	} {
		for range 10 {
			fn()
		}
		assert.Zero(t, testing.AllocsPerRun(100, fn), name)
	}
}
