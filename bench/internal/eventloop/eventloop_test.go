package eventloop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// A library that gnet uses starts two goroutines from init.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

func TestPosts(t *testing.T) {
	for _, producers := range []int{1, 3} {
		r, err := Posts(1000, producers)
		require.NoError(t, err)
		assert.Equal(t, 1000, r.Total)
		assert.Equal(t, producers, r.Producers)
		assert.Positive(t, r.WallMS)
		assert.InEpsilon(t, 1000/r.WallMS*1000, r.PerSecond, 1e-6)
	}
	_, err := Posts(0, 2)
	assert.NoError(t, err)
}

func TestTimersAllFireAndNoneEarly(t *testing.T) {
	const n = 2*timersActive + 7 // three waves
	r, err := Timers(n, time.Millisecond)
	require.NoError(t, err)
	assert.Equal(t, n, r.Total)
	assert.EqualValues(t, n, r.Latency.Count)
	assert.GreaterOrEqual(t, r.WallMS, 3.0, "a wave waits for its timers")
	assert.GreaterOrEqual(t, r.Latency.Min, 0.0)
	assert.LessOrEqual(t, r.Latency.P50, r.Latency.P99)
}

func TestSleepVsPool(t *testing.T) {
	const tasks, workers, sleep = 20, 2, 5 * time.Millisecond
	r, err := SleepVsPool(tasks, sleep, workers)
	require.NoError(t, err)
	assert.EqualValues(t, tasks, r.CoroLatency.Count)
	assert.EqualValues(t, tasks, r.PoolLatency.Count)
	assert.GreaterOrEqual(t, r.CoroLatency.Min, 5000.0*0.999)
	assert.GreaterOrEqual(t, r.PoolWallMS, 5.0*tasks/workers, "two at a time")
	assert.InEpsilon(t, r.PoolWallMS/r.CoroWallMS, r.Speedup, 1e-9)
}
