package cpupool

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// handLoop is a loop that the test drives. Posts and deferred work queue up until run is
// called.
type handLoop struct {
	onPost func() // if set, called by Post
	done   chan struct{}

	deferred, batch []func()
	held            int

	mu      sync.Mutex // guards what follows
	arrived *sync.Cond
	posts   []func()
	stopped bool
}

func newHandLoop() *handLoop {
	l := &handLoop{done: make(chan struct{})}
	l.arrived = sync.NewCond(&l.mu)
	return l
}

func (l *handLoop) Post(fn func()) bool {
	if l.onPost != nil {
		l.onPost()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return false
	}
	l.posts = append(l.posts, fn)
	l.arrived.Signal()
	return true
}

func (l *handLoop) Done() <-chan struct{} { return l.done }
func (l *handLoop) Hold()                 { l.held++ }
func (l *handLoop) Release()              { l.held-- }
func (l *handLoop) Defer(fn func())       { l.deferred = append(l.deferred, fn) }
func (l *handLoop) Contain()              { _ = recover() }

// endIteration runs what was deferred.
func (l *handLoop) endIteration() {
	l.deferred, l.batch = l.batch[:0], l.deferred
	for _, fn := range l.batch {
		fn()
	}
}

// run waits for n posts and runs them on the test's goroutine, each in its own iteration.
func (l *handLoop) run(n int) {
	l.endIteration()
	for range n {
		l.mu.Lock()
		for len(l.posts) == 0 {
			l.arrived.Wait()
		}
		fn := l.posts[0]
		l.posts = l.posts[1:]
		l.mu.Unlock()
		fn()
		l.endIteration()
	}
}

// stop has the loop refuse posts. It ends when done is closed.
func (l *handLoop) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
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

// block occupies all workers until the returned function is called, which then runs the
// blockers' hand-backs.
func block(t *testing.T, p *Pool, l *handLoop, workers int) (release func()) {
	started, gate := make(chan struct{}), make(chan struct{})
	for range workers {
		require.NoError(t, p.Submit(&Job{Work: func() { started <- struct{}{}; <-gate }}))
	}
	l.endIteration()
	for range workers {
		receive(t, started)
	}
	free := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(free) // before the pool closes, whatever has failed
	return func() { free(); l.run(workers) }
}

// receive fails the test if nothing comes.
func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(10 * time.Second):
		require.FailNow(t, "nothing has come")
		panic("not reached")
	}
}

func TestWorkOnceOffTheLoopDoneOnceOnIt(t *testing.T) {
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

func TestNilWorkIsRefused(t *testing.T) {
	p, l := newTestPool(t, Config{})
	assert.ErrorIs(t, p.Submit(&Job{Done: func(error) { t.Error("called") }}), ErrNilWork)
	p.WaitIdle()
	assert.Zero(t, l.pending())
	assert.Zero(t, l.held)
}

func TestCancelOfQueuedJobs(t *testing.T) {
	p, l := newTestPool(t, Config{Workers: 2})
	release := block(t, p, l, 2)
	var worked, cancelled int
	var jobs []*Job
	for range 16 {
		j := &Job{Work: func() { worked++ }, Done: func(err error) {
			if errors.Is(err, loop.ErrCancelled) {
				cancelled++
			}
		}}
		require.NoError(t, p.Submit(j))
		jobs = append(jobs, j)
	}
	for _, j := range jobs {
		assert.NoError(t, p.Cancel(j))
		assert.ErrorIs(t, p.Cancel(j), loop.ErrBusy, "a second cancel")
	}
	assert.Zero(t, cancelled, "not inside Cancel")
	l.endIteration()
	assert.Equal(t, 16, cancelled, "while the workers are blocked still")
	assert.Equal(t, 2, l.held)
	release()
	p.WaitIdle()
	assert.Zero(t, worked)
	assert.Zero(t, l.pending())
	assert.EqualValues(t, 16, p.Stats().Cancelled)
}

func TestCancelCompletesLater(t *testing.T) {
	p, l := newTestPool(t, Config{Workers: 1})
	release := block(t, p, l, 1)
	done := false
	j := &Job{Work: func() {}, Done: func(err error) { done = true; assert.ErrorIs(t, err, loop.ErrCancelled) }}
	require.NoError(t, p.Submit(j))
	require.NoError(t, p.Cancel(j))
	assert.False(t, done, "not inside Cancel")
	assert.ErrorIs(t, p.Submit(j), ErrInUse, "not free before Done")
	l.endIteration()
	assert.True(t, done)
	ran := false
	j.Work, j.Done = func() { ran = true }, nil
	require.NoError(t, p.Submit(j), "free after Done")
	release()
	l.run(1)
	assert.True(t, ran)
}

// This test uses a real loop.
func TestCancelOnALoop(t *testing.T) {
	h := looptest.New(t)
	p := New(h.Loop, Config{Workers: 1})
	defer p.Close()
	started, gate := make(chan struct{}), make(chan struct{})
	require.NoError(t, p.Submit(&Job{Work: func() { close(started); <-gate }}))
	h.Iterate()
	receive(t, started)
	var inside bool
	var dones []error
	h.Loop.Post(func() {
		inside = true
		j := &Job{Work: func() { t.Error("ran") }}
		j.Done = func(err error) { assert.False(t, inside); dones = append(dones, err) }
		assert.NoError(t, p.Submit(j))
		assert.NoError(t, p.Cancel(j))
		inside = false
	})
	h.Settle()
	assert.Equal(t, []error{loop.ErrCancelled}, dones, "though the worker is blocked")
	close(gate)
}

func TestCancelledJobsFreeTheQueueAtOnce(t *testing.T) {
	p, l := newTestPool(t, Config{Workers: 1, QueueMax: 4})
	release := block(t, p, l, 1)
	var order []int
	jobs := make([]*Job, 4)
	for i := range jobs {
		jobs[i] = &Job{Work: func() { order = append(order, i) }}
		require.NoError(t, p.Submit(jobs[i]))
	}
	assert.ErrorIs(t, p.Submit(&Job{Work: func() {}}), ErrQueueFull)
	for _, i := range []int{1, 0, 3} { // from the middle, the front, the back
		require.NoError(t, p.Cancel(jobs[i]))
	}
	assert.EqualValues(t, 1, p.Stats().Queued)
	for i := 4; i < 7; i++ {
		require.NoError(t, p.Submit(&Job{Work: func() { order = append(order, i) }}))
	}
	assert.ErrorIs(t, p.Submit(&Job{Work: func() {}}), ErrQueueFull)
	release()
	l.run(4)
	assert.Equal(t, []int{2, 4, 5, 6}, order, "first come first served")
}

func TestCancelOfARunningJobIsBusy(t *testing.T) {
	p, l := newTestPool(t, Config{})
	started, gate := make(chan struct{}), make(chan struct{})
	completed := false
	j := &Job{Work: func() { close(started); <-gate }, Done: func(err error) { completed = err == nil }}
	require.NoError(t, p.Submit(j))
	l.endIteration()
	receive(t, started)
	assert.ErrorIs(t, p.Cancel(j), loop.ErrBusy)
	close(gate)
	l.run(1)
	assert.True(t, completed)
	assert.ErrorIs(t, p.Cancel(j), loop.ErrBusy, "a finished job")
}

func TestQueuedJobsHoldTheLoopAndAreNeverDropped(t *testing.T) {
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

	require.NoError(t, p.Submit(&Job{Work: func() { panic(strings.Repeat("x", 1<<20)) }, Done: func(err error) { got = err }}))
	l.run(1)
	assert.Equal(t, "panic: "+strings.Repeat("x", 200)+"… (1048576 bytes)", got.Error())

	require.NoError(t, p.Submit(&Job{Work: runtime.Goexit, Done: func(err error) { got = err }}))
	l.run(1)
	assert.ErrorIs(t, got, ErrGoexit)

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

// TestDoneComesOnceThoughTheLoopHasStopped: the loop refuses the hand-back. Close then waits
// for the loop's end and completes the job.
func TestDoneComesOnceThoughTheLoopHasStopped(t *testing.T) {
	for name, tc := range map[string]struct {
		work func(gate chan struct{})
		want error
	}{
		"ended":  {func(gate chan struct{}) { <-gate }, nil},
		"goexit": {func(gate chan struct{}) { <-gate; runtime.Goexit() }, ErrGoexit},
	} {
		t.Run(name, func(t *testing.T) {
			l := newHandLoop()
			p := New(l, Config{Workers: 1})
			gate := make(chan struct{})
			var ended atomic.Bool
			var dones []error
			done := func(err error) {
				assert.True(t, ended.Load(), "the loop may touch what Done touches")
				dones = append(dones, err)
				assert.ErrorIs(t, p.Submit(&Job{Work: func() {}}), ErrClosed)
				panic("contained, as on the loop")
			}
			for range 2 { // one runs when the loop stops, one waits
				require.NoError(t, p.Submit(&Job{Work: func() { tc.work(gate) }, Done: done}))
			}
			l.endIteration()
			l.stop()
			close(gate)
			p.WaitIdle()
			assert.Empty(t, dones)
			go func() { ended.Store(true); close(l.done) }()
			p.Close()
			assert.Equal(t, []error{tc.want, tc.want}, dones)
			assert.Zero(t, l.held)
			p.Close()
			assert.Len(t, dones, 2)
		})
	}
}

// This test uses a real loop, which stops between Submit and the end of the iteration.
func TestJobsOfALoopThatStopsAreCompleted(t *testing.T) {
	h := looptest.New(t)
	p := New(h.Loop, Config{Workers: 1})
	gate := make(chan struct{})
	var order []string
	job := func(name string) *Job {
		return &Job{
			Work: func() { <-gate },
			Done: func(err error) { assert.NoError(t, err); order = append(order, name) },
		}
	}
	require.NoError(t, p.Submit(job("before")))
	h.Iterate()
	h.Loop.Post(func() { assert.NoError(t, p.Submit(job("late"))) })
	h.Stop()
	require.NoError(t, p.Submit(job("after the end")))
	close(gate)
	p.Close()
	assert.Equal(t, []string{"before", "late", "after the end"}, order)
}

// TestGoexitWhileThePoolCloses: work ends its worker with runtime.Goexit. The worker is
// replaced, so queued jobs still run, whenever Close comes.
func TestGoexitWhileThePoolCloses(t *testing.T) {
	for _, workers := range []int{1, 2} {
		l := newHandLoop()
		p := New(l, Config{Workers: workers})
		started, gate := make(chan struct{}, 10), make(chan struct{})
		var dones []error
		for range 5 {
			require.NoError(t, p.Submit(&Job{
				Work: func() { started <- struct{}{}; <-gate; runtime.Goexit() },
				Done: func(err error) { dones = append(dones, err) },
			}))
		}
		l.endIteration()
		receive(t, started)
		closed := make(chan struct{})
		go func() { p.Close(); close(closed) }()
		probe, probes := error(nil), 0
		for ; probe == nil; probes++ { // until Close has begun
			probe = p.Submit(&Job{Work: func() {}})
		}
		assert.ErrorIs(t, probe, ErrClosed)
		close(gate)
		receive(t, closed)
		l.run(5 + probes - 1)
		assert.Equal(t, []error{ErrGoexit, ErrGoexit, ErrGoexit, ErrGoexit, ErrGoexit}, dones)
		assert.Zero(t, p.Stats().Running)
	}
}

// The jobs of one iteration run at the same time, though its end starts only one worker.
func TestAWorkerStartsTheNext(t *testing.T) {
	p, l := newTestPool(t, Config{Workers: 3})
	started, gate := make(chan struct{}), make(chan struct{})
	for range 3 {
		require.NoError(t, p.Submit(&Job{Work: func() { started <- struct{}{}; <-gate }}))
	}
	l.endIteration()
	for range 3 {
		receive(t, started)
	}
	close(gate)
	l.run(3)
}

// goExecutor starts a goroutine for each worker.
type goExecutor struct {
	starts  atomic.Int32
	working sync.WaitGroup
	stopped bool
}

func (x *goExecutor) Go(run func()) { x.starts.Add(1); x.working.Go(run) }
func (x *goExecutor) Stop()         { x.working.Wait(); x.stopped = true }

func TestAnIterationStartsOneWorkerAndNeverMoreThanThereMayBe(t *testing.T) {
	exec := new(goExecutor)
	p, l := newTestPool(t, Config{Workers: 2, Executor: exec})
	var began atomic.Int32
	gate := make(chan struct{})
	work := func() { began.Add(1); <-gate }
	for range 10 {
		require.NoError(t, p.Submit(&Job{Work: work}))
	}
	assert.Zero(t, exec.starts.Load(), "not before the iteration ends")
	assert.Len(t, l.deferred, 1)
	for range 3 {
		l.endIteration()
		require.NoError(t, p.Submit(&Job{Work: work}))
	}
	l.endIteration()
	require.Eventually(t, func() bool { return began.Load() == 2 }, 10*time.Second, time.Millisecond)
	assert.EqualValues(t, 2, exec.starts.Load())
	assert.EqualValues(t, 2, p.Stats().Running)
	close(gate)
	l.run(13)
	assert.EqualValues(t, 2, exec.starts.Load(), "workers go on while jobs wait")
	assert.EqualValues(t, 13, began.Load())
	p.Close()
	assert.True(t, exec.stopped)
}

// A job counts, and WaitIdle waits for it, until its hand-back is posted.
func TestAJobIsCountedBeforeItIsHandedBack(t *testing.T) {
	p, l := newTestPool(t, Config{Workers: 1})
	var atPost []Stats
	l.onPost = func() { atPost = append(atPost, p.Stats()) }
	for _, work := range []func(){func() {}, runtime.Goexit, func() { panic("boom") }} {
		require.NoError(t, p.Submit(&Job{Work: work}))
		l.run(1)
	}
	p.WaitIdle()
	require.Len(t, atPost, 3)
	for i, s := range atPost {
		assert.EqualValues(t, i+1, s.Finished)
		assert.EqualValues(t, 1, s.Running, "WaitIdle waits for it")
	}
	assert.EqualValues(t, 1, atPost[2].Panicked)
	assert.Zero(t, p.Stats().Running)
}

func TestStats(t *testing.T) {
	p, l := newTestPool(t, Config{Workers: 1})
	release := block(t, p, l, 1)
	for range 3 {
		require.NoError(t, p.Submit(&Job{Work: func() {}}))
	}
	l.endIteration()
	s := p.Stats()
	assert.EqualValues(t, 1, s.Running)
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

// BenchmarkOffload measures a job there and back, one at a time and many at once.
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

// Jobs start by Due, then in the order of their submission. Cancelled jobs do not change that
// order.
func TestJobsStartByDue(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 7))
		p, l := newTestPool(t, Config{Workers: 1})
		release := block(t, p, l, 1)
		type submitted struct {
			job *Job
			id  int
		}
		var waiting []submitted
		var ran []int
		for id := range rng.IntN(60) {
			if len(waiting) > 0 && rng.IntN(4) == 0 {
				at := rng.IntN(len(waiting))
				require.NoError(t, p.Cancel(waiting[at].job))
				waiting = slices.Delete(waiting, at, at+1)
				continue
			}
			j := &Job{Due: clock.Time(rng.IntN(6)), Work: func() { ran = append(ran, id) }}
			require.NoError(t, p.Submit(j))
			waiting = append(waiting, submitted{j, id})
		}
		slices.SortStableFunc(waiting, func(a, b submitted) int { return cmp.Compare(a.job.Due, b.job.Due) })
		var want []int
		for _, w := range waiting {
			want = append(want, w.id)
		}
		release()
		p.WaitIdle()
		assert.Equal(t, want, ran, "seed %d", seed)
	}
}
