package cpupool

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// handLoop is a loop turned by the test: posts queue up until run is called.
type handLoop struct {
	mu      sync.Mutex
	arrived *sync.Cond
	posts   []func()
	held    int
	stopped bool
}

func newHandLoop() *handLoop {
	l := new(handLoop)
	l.arrived = sync.NewCond(&l.mu)
	return l
}

func (l *handLoop) Post(fn func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return false
	}
	l.posts = append(l.posts, fn)
	l.arrived.Signal()
	return true
}

func (l *handLoop) Hold()    { l.held++ }
func (l *handLoop) Release() { l.held-- }

// Defer runs fn at once: each call of the test is an iteration of its own.
func (l *handLoop) Defer(fn func()) { fn() }

// run waits for n posts and runs them on the test's goroutine.
func (l *handLoop) run(n int) {
	for range n {
		l.mu.Lock()
		for len(l.posts) == 0 {
			l.arrived.Wait()
		}
		fn := l.posts[0]
		l.posts = l.posts[1:]
		l.mu.Unlock()
		fn()
	}
}

func (l *handLoop) pending() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.posts)
}

func newTestPool(t *testing.T, cfg Config) (*Pool, *handLoop) {
	l := newHandLoop()
	p := New(l, cfg)
	t.Cleanup(p.Close)
	return p, l
}

// block occupies all workers until the returned function is called; it then
// runs the blockers' hand-backs.
func block(t *testing.T, p *Pool, l *handLoop, workers int) (release func()) {
	started, gate := make(chan struct{}), make(chan struct{})
	for range workers {
		require.NoError(t, p.Submit(&Job{Work: func() { started <- struct{}{}; <-gate }}))
	}
	for range workers {
		<-started
	}
	return func() { close(gate); l.run(workers) }
}

func TestB37_WorkOnceOffTheLoopDoneOnceOnIt(t *testing.T) {
	p, l := newTestPool(t, Config{})
	var works, dones atomic.Int32
	j := &Job{Work: func() { works.Add(1) }}
	j.Done = func(err error) { dones.Add(1); assert.NoError(t, err) }
	require.NoError(t, p.Submit(j))
	assert.Equal(t, 1, l.held, "an accepted job keeps the loop alive")
	l.run(1)
	assert.Zero(t, l.held)
	p.WaitIdle()
	assert.EqualValues(t, 1, works.Load())
	assert.EqualValues(t, 1, dones.Load())
	assert.Zero(t, l.pending())
}

func TestB38_NilWorkIsRefused(t *testing.T) {
	p, l := newTestPool(t, Config{})
	assert.ErrorIs(t, p.Submit(&Job{Done: func(error) { t.Error("called") }}), ErrNilWork)
	p.WaitIdle()
	assert.Zero(t, l.pending())
	assert.Zero(t, l.held)
}

func TestB39_CancelOfQueuedJobs(t *testing.T) {
	p, l := newTestPool(t, Config{Workers: 2})
	release := block(t, p, l, 2)
	var worked, cancelled int
	var jobs []*Job
	for range 16 {
		j := &Job{Work: func() { worked++ }, Done: func(err error) {
			if errors.Is(err, ErrCancelled) {
				cancelled++
			}
		}}
		require.NoError(t, p.Submit(j))
		jobs = append(jobs, j)
	}
	for _, j := range jobs {
		assert.NoError(t, p.Cancel(j))
		assert.ErrorIs(t, p.Cancel(j), ErrBusy, "a second cancel")
	}
	release()
	l.run(16)
	p.WaitIdle()
	assert.Zero(t, worked)
	assert.Equal(t, 16, cancelled)
	assert.EqualValues(t, 16, p.Stats().Cancelled)
}

func TestB40_CancelCompletesLater(t *testing.T) {
	p, l := newTestPool(t, Config{Workers: 1})
	release := block(t, p, l, 1)
	done := false
	j := &Job{Work: func() {}, Done: func(err error) { done = true; assert.ErrorIs(t, err, ErrCancelled) }}
	require.NoError(t, p.Submit(j))
	require.NoError(t, p.Cancel(j))
	assert.False(t, done, "not inside Cancel")
	assert.ErrorIs(t, p.Submit(j), ErrInUse, "not free before Done")
	release()
	l.run(1)
	assert.True(t, done)
	require.NoError(t, p.Submit(j), "free after Done")
	p.WaitIdle()
}

func TestB41_CancelOfARunningJobIsBusy(t *testing.T) {
	p, l := newTestPool(t, Config{})
	started, gate := make(chan struct{}), make(chan struct{})
	completed := false
	j := &Job{Work: func() { close(started); <-gate }, Done: func(err error) { completed = err == nil }}
	require.NoError(t, p.Submit(j))
	<-started
	assert.ErrorIs(t, p.Cancel(j), ErrBusy)
	close(gate)
	l.run(1)
	assert.True(t, completed)
	assert.ErrorIs(t, p.Cancel(j), ErrBusy, "a finished job")
}

func TestB43_QueuedJobsHoldTheLoopAndAreNeverDropped(t *testing.T) {
	p, l := newTestPool(t, Config{Workers: 1})
	release := block(t, p, l, 1)
	done := 0
	for range 5 {
		require.NoError(t, p.Submit(&Job{Work: func() {}, Done: func(error) { done++ }}))
	}
	assert.Equal(t, 6, l.held, "a loop that is held refuses to close")
	release()
	l.run(5)
	assert.Equal(t, 5, done)
	assert.Zero(t, l.held)
}

func TestPanicBecomesAnError(t *testing.T) {
	p, l := newTestPool(t, Config{})
	var got error
	require.NoError(t, p.Submit(&Job{Work: func() { panic("boom") }, Done: func(err error) { got = err }}))
	l.run(1)
	var pe *PanicError
	require.ErrorAs(t, got, &pe)
	assert.Equal(t, "boom", pe.Value)
	assert.Contains(t, string(pe.Stack), "pool_test.go")

	require.NoError(t, p.Submit(&Job{Work: runtime.Goexit, Done: func(err error) { got = err }}))
	l.run(1)
	assert.ErrorIs(t, got, errGoexit)

	require.NoError(t, p.Submit(&Job{Work: func() {}, Done: func(err error) { got = err }}), "the pool goes on")
	l.run(1)
	assert.NoError(t, got)
}

func TestAFullQueueIsAnErrorNotAWait(t *testing.T) {
	p, l := newTestPool(t, Config{Workers: 1, QueueMax: 2})
	release := block(t, p, l, 1)
	ran := 0
	work := func() { ran++ }
	var refused *Job
	accepted := 0
	for refused == nil {
		j := &Job{Work: work}
		if err := p.Submit(j); err != nil {
			require.ErrorIs(t, err, ErrQueueFull)
			refused = j
			break
		}
		accepted++
		require.LessOrEqual(t, accepted, 2)
	}
	assert.EqualValues(t, accepted, p.Stats().Queued, "what was refused does not wait")
	release()
	l.run(accepted)
	p.WaitIdle()
	assert.Equal(t, accepted, ran)
	assert.Zero(t, p.Stats().Queued)
	require.NoError(t, p.Submit(refused), "a refused job may be submitted again")
	l.run(1)
}

func TestCloseWaitsAndRefuses(t *testing.T) {
	l := newHandLoop()
	p := New(l, Config{Workers: 2})
	var ran atomic.Int32
	for range 100 {
		require.NoError(t, p.Submit(&Job{Work: func() { ran.Add(1) }}))
	}
	p.Close()
	assert.EqualValues(t, 100, ran.Load())
	assert.Equal(t, 100, l.pending(), "all hand-backs are posted")
	l.run(100)
	assert.ErrorIs(t, p.Submit(&Job{Work: func() {}}), ErrClosed)
}

func TestAStoppedLoopIsNoHarm(t *testing.T) {
	p, l := newTestPool(t, Config{})
	gate := make(chan struct{})
	require.NoError(t, p.Submit(&Job{Work: func() { <-gate }, Done: func(error) { t.Error("called") }}))
	l.mu.Lock()
	l.stopped = true
	l.mu.Unlock()
	close(gate)
	p.WaitIdle()
}

func TestStats(t *testing.T) {
	p, l := newTestPool(t, Config{Workers: 1})
	release := block(t, p, l, 1)
	for range 3 {
		require.NoError(t, p.Submit(&Job{Work: func() {}}))
	}
	s := p.Stats()
	assert.EqualValues(t, 3, s.Queued)
	assert.EqualValues(t, 4, s.Submitted)
	release()
	l.run(3)
	p.WaitIdle()
	s = p.Stats()
	assert.EqualValues(t, 4, s.Finished)
	assert.Zero(t, s.Queued)
	assert.Positive(t, s.WaitMax)
	assert.GreaterOrEqual(t, s.WaitTotal, s.WaitMax)
}

// BenchmarkOffload is a job there and back, one at a time and many at once.
func BenchmarkOffload(b *testing.B) {
	for _, inflight := range []int{1, 64} {
		b.Run(map[int]string{1: "one", 64: "64inflight"}[inflight], func(b *testing.B) {
			l := newHandLoop()
			p := New(l, Config{Workers: 2})
			defer p.Close()
			jobs := make([]Job, inflight)
			for i := range jobs {
				jobs[i].Work = func() {}
			}
			b.ReportAllocs()
			for i := range jobs {
				j := &jobs[i]
				left := b.N/inflight + 1
				j.Done = func(error) {
					if left--; left > 0 {
						_ = p.Submit(j)
					}
				}
				_ = p.Submit(j)
			}
			l.run((b.N/inflight + 1) * inflight)
		})
	}
}
