package reactor

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
)

// The tests of this file check on a real host what the original engine promises of starting,
// posting and stopping. Package loop checks its promises about time, which stands still in
// those tests.

// do runs fn on the loop and waits for it. fn uses assert, because require would end the loop's
// goroutine.
func do(t testing.TB, r *Reactor, fn func()) {
	t.Helper()
	done := make(chan struct{})
	require.True(t, r.Loop().Post(func() { defer close(done); fn() }))
	<-done
}

// postAll posts fn from producers goroutines, n times each, and returns how many
// posts were accepted.
func postAll(r *Reactor, producers, n int, fn func()) int {
	var accepted atomic.Int64
	var all sync.WaitGroup
	for range producers {
		all.Go(func() {
			for range n {
				if r.Loop().Post(fn) {
					accepted.Add(1)
				}
			}
		})
	}
	all.Wait()
	return int(accepted.Load())
}

func TestPostedCallbackRuns(t *testing.T) {
	r := started(t)
	value := make(chan int, 1)
	require.True(t, r.Loop().Post(func() { value <- 42 }))
	assert.Equal(t, 42, <-value)
}

func TestPostsOfManyProducersAllRun(t *testing.T) {
	for _, test := range []struct{ producers, posts int }{{1, 100}, {1, 10_000}, {8, 1000}, {16, 500}, {8, 10_000}} {
		t.Run(fmt.Sprintf("%d producers of %d posts", test.producers, test.posts), func(t *testing.T) {
			checkPosts(t, test.producers, test.posts)
		})
	}
}

// checkPosts checks that all posts run, each once.
func checkPosts(t *testing.T, producers, n int) {
	r := started(t)
	ran := 0
	assert.Equal(t, producers*n, postAll(r, producers, n, func() { ran++ }))
	end(r)
	assert.Equal(t, producers*n, ran)
}

func TestPostsOfAProducerKeepTheirOrder(t *testing.T) {
	const producers, posts = 4, 50_000
	r := started(t)
	next := make([]int, producers)
	var all sync.WaitGroup
	for p := range producers {
		all.Go(func() {
			for i := range posts {
				r.Loop().Post(func() {
					if next[p] == i {
						next[p]++
					}
				})
			}
		})
	}
	all.Wait()
	end(r)
	for _, n := range next {
		assert.Equal(t, posts, n)
	}
}

func TestPostBeforeStartIsRefused(t *testing.T) {
	r := New(Config{})
	assert.False(t, r.Loop().Post(func() { t.Error("ran") }))
	require.NoError(t, r.Start())
	do(t, r, func() {})
	end(r)
}

func TestPostAfterStopIsRefused(t *testing.T) {
	r := started(t)
	end(r)
	assert.False(t, r.Loop().Post(func() { t.Error("ran") }))
}

func TestFiftyCycles(t *testing.T) {
	before := descriptors(t)
	for range 50 {
		r := New(Config{})
		require.NoError(t, r.Start())
		do(t, r, func() {})
		end(r)
	}
	assert.Equal(t, before, descriptors(t))
}

func TestStopFromACallback(t *testing.T) {
	r := started(t)
	do(t, r, r.Stop)
	<-r.Loop().Done()
}

func TestStopThreeTimes(t *testing.T) {
	r := started(t)
	for range 3 {
		r.Stop()
		<-r.Loop().Done()
	}
}

// Go has no destructors. A deferred end ends a reactor that nothing else has stopped.
func TestEndWithPostsOnTheirWay(t *testing.T) {
	var ran int
	func() {
		r := New(Config{})
		require.NoError(t, r.Start())
		defer end(r)
		postAll(r, 1, 100, func() { ran++ })
	}()
	assert.Equal(t, 100, ran)
}

func TestNeverStarted(t *testing.T) {
	before := descriptors(t)
	r := New(Config{})
	r.Stop()
	assert.Equal(t, before, descriptors(t))
}

func TestPostsRacingAStop(t *testing.T) {
	for range 20 {
		r := started(t)
		executed := 0
		first := make(chan struct{})
		var once sync.Once
		accepted := make(chan int)
		go func() {
			n := 0
			for r.Loop().Post(func() { executed++; once.Do(func() { close(first) }) }) {
				n++
			}
			accepted <- n
		}()
		<-first
		end(r)
		assert.Equal(t, <-accepted, executed, "what was accepted runs, and nothing else")
		assert.False(t, r.Loop().Post(func() { t.Error("ran") }))
	}
}

func TestStopOnTheLoopDrains(t *testing.T) {
	r := started(t)
	executed := 0
	busy, release := make(chan struct{}), make(chan struct{})
	r.Loop().Post(func() {
		close(busy)
		<-release
		r.Stop()
	})
	<-busy
	assert.Equal(t, 800, postAll(r, 4, 200, func() { executed++ }))
	close(release)
	<-r.Loop().Done()
	assert.Equal(t, 800, executed)
	assert.False(t, r.Loop().Post(func() { t.Error("ran") }))
}

// The original process ends at a callback that throws. rankd goes on.
func TestPanicInACallbackIsContained(t *testing.T) {
	panics := make(chan any, 1)
	r := New(Config{OnPanic: func(v any, _ []byte) { panics <- v }})
	require.NoError(t, r.Start())
	defer end(r)
	r.Loop().Post(func() { panic("boom") })
	assert.Equal(t, "boom", <-panics)
	do(t, r, func() {})
}

func TestNestedPosts(t *testing.T) {
	r := started(t)
	deepest := make(chan int, 1)
	var nest func(depth int)
	nest = func(depth int) {
		if depth == 100 {
			deepest <- depth
			return
		}
		r.Loop().Post(func() { nest(depth + 1) })
	}
	r.Loop().Post(func() { nest(1) })
	assert.Equal(t, 100, <-deepest)
}

// A loop that kept callbacks after their run would keep everything that they refer to.
func TestWhatACallbackCapturedIsCollectedAndItsCleanupMayPost(t *testing.T) {
	const objects = 10
	r := started(t)
	var posted atomic.Int64
	for range objects {
		object := new([1024]byte)
		runtime.AddCleanup(object, func(l *loop.Loop) {
			l.Post(func() { posted.Add(1) })
		}, r.Loop())
		do(t, r, func() { object[0]++ })
	}
	for posted.Load() < objects {
		runtime.GC()
	}
}

func TestTwentyCyclesOfTwoHundredPosts(t *testing.T) {
	for range 20 {
		checkPosts(t, 1, 200)
	}
}

func TestStartTwiceAndStartAfterStop(t *testing.T) {
	r := started(t)
	before := descriptors(t)
	require.NoError(t, r.Start())
	assert.Equal(t, before, descriptors(t))
	end(r)
	assert.ErrorIs(t, r.Start(), loop.ErrStopped)
}

// A loop that was closed before the start does not accept a host. The poller that was made for
// it is closed.
func TestStartOfAClosedLoopLeavesNothing(t *testing.T) {
	before := descriptors(t)
	r := New(Config{})
	require.NoError(t, r.Loop().Close())
	for range 2 {
		assert.ErrorIs(t, r.Start(), loop.ErrStopped)
		assert.Equal(t, before, descriptors(t))
	}
	p := newProbe()
	p.dial(r, "127.0.0.1:1")
	assert.Equal(t, 0, r.dialing, "as before any start")
}

func TestTwoReactorsSideBySide(t *testing.T) {
	a, b := started(t), started(t)
	do(t, a, func() { do(t, b, func() {}) })
}

func TestTimersFireWithoutIO(t *testing.T) {
	r := started(t)
	l := r.Loop()
	var order []int
	done := make(chan struct{})
	do(t, r, func() {
		for i, delay := range []int{30, 1, 10} {
			began := l.Clock().Now()
			wait := ms(delay)
			assert.NoError(t, l.NewTimer(func() {
				assert.GreaterOrEqual(t, l.Clock().Now().Sub(began), wait)
				if order = append(order, i); len(order) == 3 {
					close(done)
				}
			}).Start(wait, 0))
		}
	})
	<-done
	assert.Equal(t, []int{1, 2, 0}, order)
}

// The Go timer is set for a loop timer that is stopped before it fires. The later timer that is
// left must still fire.
func TestTimerAfterAStoppedOne(t *testing.T) {
	r := started(t)
	fired := make(chan struct{})
	do(t, r, func() {
		first := r.Loop().NewTimer(func() { t.Error("fired") })
		assert.NoError(t, first.Start(ms(5), 0))
		assert.NoError(t, r.Loop().NewTimer(func() { close(fired) }).Start(ms(15), 0))
		r.Loop().Post(first.Stop)
	})
	<-fired
}

// A task that posts itself does not starve I/O or timers. The number of iterations without a
// poll is bounded, not only their time, since on a clock that stands still no timer fires.
func TestSelfPostingTaskStarvesNeitherIONorTimers(t *testing.T) {
	for name, clk := range map[string]clock.Clock{"the clock goes": nil, "the clock stands still": new(clock.Manual)} {
		t.Run(name, func(t *testing.T) {
			r := New(Config{Clock: clk})
			require.NoError(t, r.Start())
			t.Cleanup(func() { end(r) })
			c := newProbe()
			stop := false
			var again func()
			again = func() {
				if !stop {
					r.Loop().Post(again)
				}
			}
			addr := echoServer(t)
			do(t, r, func() {
				again()
				c.dial(r, addr)
				_ = c.conn.Write([]byte("hello"))
			})
			assert.NoError(t, <-c.connected)
			assert.Equal(t, "hello", <-c.data)
			if clk == nil {
				fired := make(chan struct{})
				do(t, r, func() { assert.NoError(t, r.Loop().NewTimer(func() { close(fired) }).Start(ms(1), 0)) })
				<-fired
			}
			do(t, r, func() { stop = true })
		})
	}
}

// The poller's goroutine ends without having been told to.
func TestPollerThatEndsOfItself(t *testing.T) {
	r := started(t)
	c := newProbe()
	addr := echoServer(t)
	do(t, r, func() { c.dial(r, addr) })
	require.NoError(t, <-c.connected)
	ran := make(chan struct{})
	do(t, r, func() {
		_ = r.poller.Execute(t.Context(), runnable(func() error { return errShutdown }))
		r.Loop().Post(func() { close(ran) })
	})
	<-ran
	assert.ErrorIs(t, <-c.closed, loop.ErrStopped)
	<-r.Loop().Done()
}

func TestNoSpace(t *testing.T) {
	allowNoDescriptors(t)
	r := New(Config{})
	assert.ErrorContains(t, r.Start(), "start reactor")
}
