package looptest_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/loop"
)

func TestAdvanceStepsToEachDueTime(t *testing.T) {
	h := looptest.New(t)
	start := h.Clock.Now()
	var fired []time.Duration
	record := func() { fired = append(fired, h.Clock.Now().Sub(start)) }
	for _, delay := range []time.Duration{30, 10, 20, 50} {
		require.NoError(t, h.Loop.NewTimer(record).Start(delay*time.Millisecond, 0))
	}
	h.Advance(40 * time.Millisecond)
	assert.Equal(t, []time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond}, fired)
	assert.Equal(t, 40*time.Millisecond, h.Clock.Now().Sub(start))
	h.Advance(10 * time.Millisecond)
	assert.Len(t, fired, 4)
}

func TestSettleRunsWhatCallbacksCause(t *testing.T) {
	h := looptest.New(t)
	var order []string
	note := func(s string) func() { return func() { order = append(order, s) } }
	h.Loop.Post(func() {
		h.Loop.Post(note("post"))
		h.Loop.Defer(note("deferred"))
		h.Loop.NewTimer(nil).Close(note("closed"))
		require.NoError(t, h.Loop.NewTimer(note("timer")).Start(0, 0))
	})
	h.Settle()
	assert.Equal(t, []string{"deferred", "closed", "timer", "post"}, order)
}

func TestPollAndFlushBracketAnIteration(t *testing.T) {
	h := looptest.New(t)
	var order []string
	h.OnPoll = func() { order = append(order, "poll") }
	h.OnFlush = func() { order = append(order, "flush") }
	h.Loop.Post(func() { order = append(order, "post") })
	h.Iterate()
	assert.Equal(t, []string{"flush", "poll", "post"}, order)
}

func TestStopDrainsTheHost(t *testing.T) {
	h := looptest.New(t)
	calls := 0
	h.OnDrain = func() bool { calls++; return calls < 3 }
	h.Stop()
	assert.Equal(t, 3, calls)
	assert.False(t, h.Loop.Post(func() {}))
	h.Stop()
}

// endedTB is a test, as a callback sees it, that has called FailNow or SkipNow.
type endedTB struct {
	testing.TB
	failed, skipped bool
}

func (tb *endedTB) Failed() bool   { return tb.failed }
func (tb *endedTB) Skipped() bool  { return tb.skipped }
func (tb *endedTB) Cleanup(func()) {}
func (tb *endedTB) Fatalf(string, ...any) {
	tb.failed = true
	runtime.Goexit()
}

// A callback that ends the test by FailNow does not end the process. A callback that ends the
// loop's goroutine in another way does.
func TestFailNowInACallbackEndsTheTestOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		tb   endedTB
		want any
	}{
		"failed":  {endedTB{TB: t, failed: true}, nil},
		"skipped": {endedTB{TB: t, skipped: true}, nil},
		"goexit":  {endedTB{TB: t}, loop.ErrGoexit},
	} {
		t.Run(name, func(t *testing.T) {
			var recovered any
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { recovered = recover() }()
				h := looptest.New(&tc.tb)
				defer h.Stop()
				h.Loop.Post(runtime.Goexit)
				h.Iterate()
				t.Error("the goroutine goes on")
			}()
			<-done
			assert.Equal(t, tc.want, recovered)
		})
	}
}

func TestIterationWithinACallbackFailsTheTest(t *testing.T) {
	tb := &endedTB{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		h := looptest.New(tb)
		defer h.Stop()
		h.Loop.Post(h.Iterate)
		h.Iterate()
		t.Error("the goroutine goes on")
	}()
	<-done
	assert.True(t, tb.failed)
}
