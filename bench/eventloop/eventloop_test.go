package eventloop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rankd/rankd/internal/devredis"
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

func TestOffload(t *testing.T) {
	for _, payload := range []int{0, 4096} {
		r, err := Offload(500, 8, 2, payload)
		require.NoError(t, err)
		assert.EqualValues(t, 500, r.Latency.Count, "each job once")
		assert.Positive(t, r.PerSecond)
		assert.Equal(t, payload, r.PayloadBytes)
	}
	few, err := Offload(3, 64, 2, 0)
	require.NoError(t, err)
	assert.EqualValues(t, 3, few.Latency.Count)
}

func TestInterference(t *testing.T) {
	redis, err := devredis.Start()
	require.NoError(t, err)
	defer redis.Close()
	var r *InterferenceResult
	for range 50 { // A busy machine may answer nothing in time.
		r, err = Interference(2, 100*time.Millisecond, redis.Addr())
		require.NoError(t, err)
		if r.Reply.Count > 0 {
			break
		}
	}
	assert.Empty(t, r.Error)
	assert.Positive(t, r.Jobs)
	for name, l := range map[string]Latency{"post": r.Post, "timer": r.Timer, "reply": r.Reply} {
		assert.Positive(t, l.Count, name)
		assert.Positive(t, l.Max, name)
	}

	idle, err := Interference(0, 20*time.Millisecond, "")
	require.NoError(t, err)
	assert.Zero(t, idle.Jobs)
	assert.Zero(t, idle.Reply)
	assert.Positive(t, idle.Post.Count)
}

func TestInterferenceSaysThatRedisDoesNotAnswer(t *testing.T) {
	redis, err := devredis.Start()
	require.NoError(t, err)
	addr := redis.Addr()
	redis.Close()
	r, err := Interference(0, 100*time.Millisecond, addr)
	require.NoError(t, err)
	assert.Contains(t, r.Error, addr)
	assert.Zero(t, r.Reply.Count)
}

func TestRoundTrips(t *testing.T) {
	redis, err := devredis.Start()
	require.NoError(t, err)
	defer redis.Close()
	r, err := RoundTrips(20, 2, redis.Addr())
	require.NoError(t, err)
	assert.EqualValues(t, 20, r.Request.Count)
	assert.EqualValues(t, 20, r.Plain.Count)
	assert.InEpsilon(t, r.Request.P50/r.Plain.P50, r.Ratio, 1e-9)
	_, err = RoundTrips(1, 2, "127.0.0.1:1")
	assert.Error(t, err)
}
