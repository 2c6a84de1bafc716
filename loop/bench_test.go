package loop_test

import (
	"testing"
	"time"

	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/loop"
)

// BenchmarkPost measures a post and its run. The producers and the loop are on different
// goroutines.
func BenchmarkPost(b *testing.B) {
	looptest.BenchmarkPost(b, func(b *testing.B) *loop.Loop { return newThreaded(b, loop.Config{}).Loop })
}

// BenchmarkTimers measures timers among 1000 active ones.
func BenchmarkTimers(b *testing.B) {
	setup := func(b *testing.B) (*loop.Loop, []*loop.Timer) {
		l := loop.New(loop.Config{})
		timers := make([]*loop.Timer, 1000)
		for i := range timers {
			timers[i] = l.NewTimer(func() {})
			_ = timers[i].Start(time.Hour+time.Duration(i*7919%1000)*time.Second, 0)
		}
		b.ReportAllocs()
		return l, timers
	}
	b.Run("start and stop", func(b *testing.B) {
		l, _ := setup(b)
		tm := l.NewTimer(func() {})
		for i := 0; b.Loop(); i++ {
			_ = tm.Start(time.Duration(i%1000)*time.Second, 0)
			tm.Stop()
		}
	})
	b.Run("restart", func(b *testing.B) {
		_, timers := setup(b)
		for i := 0; b.Loop(); i++ {
			_ = timers[i%1000].Start(time.Hour+time.Duration(i%997)*time.Second, 0)
		}
	})
	b.Run("start and fire", func(b *testing.B) {
		v := newVirtual(b)
		timers := make([]*loop.Timer, 1000)
		for i := range timers {
			timers[i] = v.NewTimer(func() {})
		}
		b.ReportAllocs()
		poll := func(wait time.Duration) { v.clock.Advance(wait) }
		for i := 0; b.Loop(); i++ {
			if i%1000 == 0 {
				_, _ = v.Run(loop.RunDefault, poll) // fires the thousand timers before
			}
			_ = timers[i%1000].Start(time.Duration(i*7919%100)*ms, 0)
		}
	})
}

// BenchmarkIteration measures an iteration with a single post.
func BenchmarkIteration(b *testing.B) {
	v := newVirtual(b)
	v.Hold()
	fn := func() {}
	poll := func(time.Duration) {}
	b.ReportAllocs()
	for b.Loop() {
		v.Post(fn)
		_, _ = v.Run(loop.RunNoWait, poll)
	}
}
