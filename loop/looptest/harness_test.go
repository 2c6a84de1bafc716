package looptest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop/looptest"
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
	h.Turn()
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
