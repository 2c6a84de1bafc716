package loop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/loop/latency"
)

// busyThread is the test's thread. Its processor clock moves only while it works.
type busyThread struct {
	clock    *clock.Manual
	id       int
	used     time.Duration
	readings int
}

func (b *busyThread) read() (thread int, used time.Duration) {
	b.readings++
	return b.id, b.used
}

func (b *busyThread) work(d time.Duration) { b.used += d; b.clock.Advance(d) }
func (b *busyThread) wait(d time.Duration) { b.clock.Advance(d) }

// The own time of a callback leaves out the time in which the callback had no processor. It is
// the wall time if the callback is short or has changed threads.
func TestCallbackCPU(t *testing.T) {
	const us = time.Microsecond
	for _, c := range []struct {
		name      string
		before    func(b *busyThread) // another callback
		callback  func(b *busyThread)
		wall, cpu time.Duration
	}{
		{"works", nil, func(b *busyThread) { b.work(3 * ms) }, 3 * ms, 3 * ms},
		{"has no processor for a while", nil, func(b *busyThread) { b.work(us); b.wait(5 * ms); b.work(2 * us) }, 5*ms + 3*us, 3 * us},
		{"short", nil, func(b *busyThread) { b.work(us); b.wait(50 * us) }, 51 * us, 51 * us},
		{"changes threads", nil, func(b *busyThread) { b.wait(5 * ms); b.id++; b.used = time.Hour }, 5 * ms, 5 * ms},
		{"changes to a thread that has worked less", nil, func(b *busyThread) { b.wait(5 * ms); b.id++; b.used = 0 }, 5 * ms, 5 * ms},
		{"follows a short one", func(b *busyThread) { b.work(100 * us) }, func(b *busyThread) { b.work(us); b.wait(5 * ms) }, 5*ms + us, 101 * us},
		{"follows a long one", func(b *busyThread) { b.work(4 * ms) }, func(b *busyThread) { b.work(us); b.wait(5 * ms) }, 5*ms + us, us},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &busyThread{clock: clock.NewManual(), id: 1}
			v := newVirtualOn(t, loop.Config{Clock: b.clock, ThreadCPU: b.read})
			v.Event(func() { b.work(ms) }) // a first reading
			if c.before != nil {
				v.Event(func() { c.before(b) })
			}
			var times loop.CallbackTimes
			v.Event(func() { v.CountIn(&times); c.callback(b) })
			assert.Equal(t, c.wall, latency.Of(&times.Wall).Max)
			assert.Equal(t, c.cpu, latency.Of(&times.CPU).Max)
			m := v.Metrics()
			assert.Equal(t, m.CallbackTime.Count, m.CallbackCPU.Count)
			v.Iterate()
		})
	}
}

// The loop may change threads while it sleeps. The next callback's own time is still known.
func TestCallbackCPUAfterASleep(t *testing.T) {
	b := &busyThread{clock: clock.NewManual(), id: 1}
	v := newVirtualOn(t, loop.Config{Clock: b.clock, ThreadCPU: b.read})
	v.Event(func() { b.work(ms) })
	v.Iterate()
	b.wait(ms)
	b.id, b.used = 2, 0
	var times loop.CallbackTimes
	v.Event(func() { v.CountIn(&times); b.work(time.Microsecond); b.wait(5 * ms) })
	v.Iterate()
	assert.Equal(t, 5*ms+time.Microsecond, latency.Of(&times.Wall).Max)
	assert.Equal(t, time.Microsecond, latency.Of(&times.CPU).Max)
}

// The thread's clock is read once in 200 µs at most, however many callbacks there are.
func TestTheThreadsClockIsReadRarely(t *testing.T) {
	b := &busyThread{clock: clock.NewManual(), id: 1}
	v := newVirtualOn(t, loop.Config{Clock: b.clock, ThreadCPU: b.read})
	for range 10_000 {
		v.Event(func() { b.work(time.Microsecond) })
	}
	assert.InDelta(t, 50, b.readings, 2)
	v.Iterate()
}

// The loop does not report processor time if the system does not.
func TestWithoutAThreadsClock(t *testing.T) {
	v := newVirtual(t)
	var times loop.CallbackTimes
	v.Event(func() { v.CountIn(&times); v.clock.Advance(ms) })
	v.Iterate()
	m := v.Metrics()
	assert.NotZero(t, m.CallbackTime.Count)
	assert.Equal(t, latency.Quantiles{}, m.CallbackCPU)
	assert.EqualValues(t, 1, latency.Of(&times.Wall).Count)
	assert.Zero(t, latency.Of(&times.CPU).Count)
}

// A callback that works for two owners counts once for each of them. The next callback counts
// for neither.
func TestCountIn(t *testing.T) {
	v := newVirtual(t)
	var a, b loop.CallbackTimes
	v.Event(func() {
		for range 3 {
			v.CountIn(&a)
			v.CountIn(&b)
		}
		v.clock.Advance(2 * ms)
	})
	v.Event(func() { v.clock.Advance(7 * ms) })
	v.Event(func() { v.CountIn(&b); v.clock.Advance(3 * ms) })
	v.Iterate()
	assert.Equal(t, latency.Quantiles{Count: 1, P50: 2 * ms, P99: 2 * ms, P999: 2 * ms, Max: 2 * ms}, latency.Of(&a.Wall))
	assert.EqualValues(t, 2, latency.Of(&b.Wall).Count)
	assert.Equal(t, 3*ms, latency.Of(&b.Wall).Max)
}

// Each callback, or each group of eight posts, is measured once. An empty measurement would
// lower the quantiles.
func TestNoMeasurementIsEmpty(t *testing.T) {
	for phase, want := range map[string]uint64{"timers": 3, "posts": 3, "hooks": 3, "events": 3} {
		t.Run(phase, func(t *testing.T) {
			v := newVirtual(t)
			v.Iterate() // the iteration for which Start has woken the host
			before := v.Metrics().CallbackTime.Count
			work := func() { v.clock.Advance(time.Microsecond) }
			switch phase {
			case "timers":
				for range 3 {
					startTimer(t, v.NewTimer(work), 0, 0)
				}
			case "posts":
				for range 24 {
					require.True(t, v.Post(work))
				}
			case "hooks":
				for range 3 {
					require.NoError(t, v.NewCheck(work).Start())
				}
			case "events":
				for range 3 {
					v.Event(work)
				}
			}
			v.Iterate()
			assert.Equal(t, want, v.Metrics().CallbackTime.Count-before)
		})
	}
}
