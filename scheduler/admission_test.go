package scheduler_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
)

// countedSleep returns a request for two nodes. The first notes that it began, and the second
// sleeps for 10 ms.
func countedSleep(t *testing.T, b *bubble, began *atomic.Int64) *scheduler.Execution {
	return &scheduler.Execution{UserID: 1, Graph: graph(t, b.tasks, "s", node("n", "began", "", "", ""), sleepNode("s", "n", ms(10)))}
}

func beganTask(began *atomic.Int64) task.Spec {
	return task.Spec{Op: "test::began", Output: task.Source, Run: func(*task.Ctx) (rowset.RowSet, error) {
		began.Add(1)
		return rowset.Dense(new(rowset.Batch)), nil
	}}
}

// admissionTest runs a test with each engine. The engine runs inflight requests at once and
// lets queue requests wait.
func admissionTest(t *testing.T, inflight, queue int, test func(t *testing.T, b *bubble, sleep func() *scheduler.Execution, began *atomic.Int64)) {
	var began atomic.Int64
	inBubbles(t, bubbleEngines, scheduler.Config{MaxInflight: inflight, MaxQueue: queue}, func(t *testing.T, b *bubble) {
		began.Store(0)
		test(t, b, func() *scheduler.Execution { return countedSleep(t, b, &began) }, &began)
	}, beganTask(&began))
}

// All three models keep to the same bounds, at the same instants.
func TestSoManyRunAndSoManyWait(t *testing.T) {
	admissionTest(t, 2, 3, func(t *testing.T, b *bubble, sleep func() *scheduler.Execution, began *atomic.Int64) {
		var taken []*bubbleResult
		for range 5 {
			taken = append(taken, b.start(sleep()))
		}
		refused := b.start(sleep())
		require.True(t, refused.answered())
		assert.Equal(t, scheduler.ErrOverloaded, refused.Err)
		assert.EqualValues(t, 2, began.Load())
		m := b.Metrics()
		assert.Equal(t, 2, m.Live)
		assert.Equal(t, 3, m.Admission.Waiting)
		assert.EqualValues(t, 1, m.Admission.Refused)
		for i, r := range taken {
			<-r.done
			require.NoError(t, r.Err)
			assert.Equal(t, ms(10*(1+i/2)), r.at, i)
			assert.Equal(t, ms(10*(i/2)), r.QueueDelay, i)
		}
		m = b.Metrics()
		assert.EqualValues(t, 3, m.Admission.QueueDelay.Count)
		assert.Equal(t, ms(20), m.Admission.QueueDelay.Max)
		assert.Zero(t, m.Admission.Waiting)
		require.NoError(t, b.run(sleep()).Err, "there is room again")
	})
}

// A request fails at its deadline, whatever else runs. It never begins, and another request may
// take its place.
func TestADeadlinePassesInTheQueue(t *testing.T) {
	admissionTest(t, 1, 2, func(t *testing.T, b *bubble, sleep func() *scheduler.Execution, began *atomic.Int64) {
		within := func(limit int) *bubbleResult {
			x := sleep()
			x.Arrived = b.clock.Now()
			x.Deadline = x.Arrived.Add(ms(limit))
			return b.start(x)
		}
		first, late, behind := b.start(sleep()), within(4), b.start(sleep())
		<-late.done
		assert.Equal(t, ms(4), late.at)
		assert.Equal(t, ms(4), late.QueueDelay)
		assert.ErrorIs(t, late.Err, scheduler.ErrNotAdmitted)
		assert.ErrorIs(t, late.Err, scheduler.ErrRequestDeadline)
		assert.EqualError(t, late.Err, "request deadline exceeded: 4ms elapsed, limit 4ms, waiting for admission")
		assert.EqualValues(t, 1, began.Load())
		takesItsPlace, refused := b.start(sleep()), b.start(sleep())
		require.True(t, refused.answered())
		assert.Equal(t, scheduler.ErrOverloaded, refused.Err)
		for at, r := range map[int]*bubbleResult{10: first, 20: behind, 26: takesItsPlace} {
			<-r.done
			require.NoError(t, r.Err)
			assert.Equal(t, ms(at), r.at)
		}
		assert.EqualValues(t, 3, began.Load())
		assert.EqualValues(t, 1, b.Metrics().Admission.Expired)
	})
}

// Requests whose callers have gone do not run, and the requests after them do not wait for
// them.
func TestAnAbandonedRequestIsNotAdmitted(t *testing.T) {
	admissionTest(t, 1, 3, func(t *testing.T, b *bubble, sleep func() *scheduler.Execution, began *atomic.Int64) {
		first := b.start(sleep())
		asks, goes := context.WithCancel(t.Context())
		var abandoned []*bubbleResult
		for range 2 {
			x := sleep()
			x.Context = asks
			abandoned = append(abandoned, b.start(x))
		}
		last := b.start(sleep())
		goes()
		<-last.done
		assert.Equal(t, ms(20), last.at)
		require.NoError(t, last.Err)
		require.True(t, first.answered())
		for _, r := range abandoned {
			require.True(t, r.answered())
			assert.Equal(t, scheduler.ErrAbandoned, r.Err)
			assert.Equal(t, ms(10), r.at)
		}
		assert.EqualValues(t, 2, began.Load())
		assert.EqualValues(t, 2, b.Metrics().Admission.Dropped)
	})
}

func TestCloseAnswersWhatWaits(t *testing.T) {
	for name, c := range map[string]struct {
		grace     int
		succeeded int
	}{
		"for ever":          {grace: 1000, succeeded: 3},
		"until one is done": {grace: 15, succeeded: 1},
		"not at all":        {grace: 0, succeeded: 0},
	} {
		t.Run(name, func(t *testing.T) {
			admissionTest(t, 1, 2, func(t *testing.T, b *bubble, sleep func() *scheduler.Execution, began *atomic.Int64) {
				var taken []*bubbleResult
				for range 3 {
					taken = append(taken, b.start(sleep()))
				}
				require.False(t, taken[0].answered())
				b.Close(ms(c.grace))
				for i, r := range taken {
					require.True(t, r.answered())
					if i < c.succeeded {
						assert.NoError(t, r.Err, i)
						continue
					}
					assert.ErrorIs(t, r.Err, scheduler.ErrShuttingDown, i)
					assert.Equal(t, ms(c.grace), r.at, i)
				}
				refused := b.start(sleep())
				require.True(t, refused.answered())
				assert.Equal(t, scheduler.ErrShuttingDown, refused.Err)
			})
		})
	}
}

// A caller that asks again as soon as it is answered finds its old place free.
func TestAnAnswerLeavesItsPlace(t *testing.T) {
	admissionTest(t, 1, 0, func(t *testing.T, b *bubble, sleep func() *scheduler.Execution, began *atomic.Int64) {
		answered := make(chan error, 1)
		left := 5
		var again func(*scheduler.Result)
		again = func(r *scheduler.Result) {
			if left--; r.Err != nil || left == 0 {
				answered <- r.Err
				return
			}
			if err := b.Submit(sleep(), again); err != nil {
				answered <- err
			}
		}
		require.NoError(t, b.Submit(sleep(), again))
		require.NoError(t, <-answered)
		assert.EqualValues(t, 5, began.Load())
	})
}

func TestWithoutABoundAllRun(t *testing.T) {
	admissionTest(t, 0, 0, func(t *testing.T, b *bubble, sleep func() *scheduler.Execution, began *atomic.Int64) {
		var all []*bubbleResult
		for range 100 {
			all = append(all, b.start(sleep()))
		}
		for _, r := range all {
			<-r.done
			require.NoError(t, r.Err)
			assert.Zero(t, r.QueueDelay)
		}
		assert.Zero(t, b.Metrics().Admission)
	})
}

// Waiting requests are served in turns by caller, and those of one caller in turns by
// connection. In a full queue, a request of a flow with fewer takes the place of another one.
// That is the newest of the greediest connection of the greediest caller.
func TestWaitingRequestsTakeTurns(t *testing.T) {
	admissionTest(t, 1, 6, func(t *testing.T, b *bubble, sleep func() *scheduler.Execution, began *atomic.Int64) {
		start := func(caller, connection uint64) *bubbleResult {
			x := sleep()
			x.Flow = scheduler.Flow{Caller: caller, Connection: connection}
			r := b.start(x)
			synctest.Wait()
			return r
		}
		first := start(1, 1)
		greedy := []*bubbleResult{start(1, 1), start(1, 1), start(1, 1), start(1, 1)}
		beside := start(1, 2) // of the same caller
		alone := start(0, 1)  // of no caller
		require.False(t, greedy[3].answered())
		late := start(0, 2)
		require.True(t, greedy[3].answered(), "the newest of the greediest connection has left the full queue")
		assert.Equal(t, scheduler.ErrOverloaded, greedy[3].Err)
		refused := start(1, 1)
		require.True(t, refused.answered())
		assert.Equal(t, scheduler.ErrOverloaded, refused.Err)
		for at, r := range []*bubbleResult{nil, first, greedy[0], alone, late, beside, greedy[1], greedy[2]} {
			if r != nil {
				<-r.done
				require.NoError(t, r.Err)
				assert.Equal(t, ms(10*at), r.at)
			}
		}
		assert.EqualValues(t, 2, b.Metrics().Admission.Refused)
		assert.EqualValues(t, 7, began.Load())
	})
}
