package scheduler

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/task/builtin"
)

// TestCloseWaitsForWhatEnds gives requests of the same kinds all the time that they take.
func TestCloseWaitsForWhatEnds(t *testing.T) {
	before, reg := openFDs(t), silentRedis(t)
	load := func(output string, nodes ...string) *plan.Graph {
		return graphFor(t, reg, builtin.Catalog(), output, nodes...)
	}
	w := openWorld(t, Config{Registry: reg})
	nap := w.start(w.within(load("x", source(3), sleepNode("x", "src", soon)), ample))
	busy := w.start(w.within(load("x", source(3), busyNode("x", "src", soon)), ample))
	call := w.start(w.within(load("x", viewerNode("x")), soon))
	w.Close(Forever)
	for _, r := range []<-chan *Result{nap, busy, call} {
		require.Len(t, r, 1)
	}
	requireRows(t, <-nap, 1, 2, 3)
	requireRows(t, <-busy, 1, 2, 3)
	requireLate(t, (<-call).Err)
	assertNothingLeft(t, w.Async)
	assert.Equal(t, before+1, openFDs(t), "descriptors, one of them the server's")
}

// TestCloseWaitsForWorkThatIsDeaf shows that Close answers at once and returns late. It does
// not free the memory that abandoned work reads, and the work's hand-back still finds the loop.
func TestCloseWaitsForWorkThatIsDeaf(t *testing.T) {
	gate := newGate()
	defer gate.release()
	w := openWorld(t, Config{})
	result := w.start(&Execution{Graph: graph(t, builtins(t, gate.spec()), "g", node("g", "gate", "", "", "")), UserID: 1})
	body := <-gate.entered
	closed := make(chan struct{})
	go func() {
		w.Close(0)
		close(closed)
	}()
	assert.ErrorIs(t, (<-result).Err, ErrShuttingDown)
	<-body.Context().Done() // it is asked to stop
	select {
	case <-closed:
		t.Error("closed while work was running")
	default:
	}
	gate.release()
	<-closed
	assert.Equal(t, Counts{Requests: 1, Failed: 1, LateCompletions: 1}, w.counted())
}

// TestSubmitRacesClose has many goroutines submit while others close. Each request is answered
// exactly once. After Close has returned, each is refused.
func TestSubmitRacesClose(t *testing.T) {
	g := builtinGraph(t, "y", source(3), vmNode("x", "src"), sleepNode("y", "x", time.Millisecond))
	for round := range 10 {
		w := openWorld(t, Config{})
		const submitters, each = 4, 50
		var answers [submitters * each]chan error
		for i := range answers {
			answers[i] = make(chan error, 2)
		}
		var work sync.WaitGroup
		started := make(chan struct{}, submitters)
		for s := range submitters {
			work.Go(func() {
				for i := range each {
					if i == round*each/10 { // sooner or later
						started <- struct{}{}
					}
					answer := answers[s*each+i]
					w.Submit(&Execution{Graph: g, UserID: 1}, func(r *Result) { answer <- r.Err })
				}
			})
		}
		for range submitters {
			<-started
		}
		for i := range 3 {
			grace := []time.Duration{0, time.Millisecond, Forever}[(i+round)%3]
			work.Go(func() { w.Close(grace) })
		}
		work.Wait()
		refused := 0
		for _, answer := range answers {
			if err := <-answer; err != nil { // a test that hangs here has lost an answer
				require.ErrorIs(t, err, ErrShuttingDown)
				refused++
			}
		}
		assertNothingLeft(t, w.Async)
		assert.LessOrEqual(t, w.counted().Failed, uint64(refused))
		require.ErrorIs(t, w.run(&Execution{Graph: g, UserID: 1}).Err, ErrShuttingDown)
		for _, answer := range answers {
			require.Empty(t, answer, "a second answer")
		}
	}
}

// By hand, the test checks to the nanosecond what each request gets at the end of the grace.
func TestGrace(t *testing.T) {
	for _, c := range []struct {
		name      string
		nap       time.Duration
		grace     time.Duration
		at        time.Duration // of the answer, after Close
		succeeds  bool
		cancelled uint64
	}{
		{"ends in time", ms(10), ms(10) + 1, ms(10), true, 0},
		{"ends at that instant, having begun before", ms(10), ms(10), ms(10), true, 0},
		{"ends too late", ms(10) + 1e6, ms(10), ms(10), false, 1},
		{"no grace", ms(10), 0, 0, false, 1},
		{"for ever", ample, Forever, ample, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newHandWorld(t, 0)
			p := w.start(w.within(builtinGraph(t, "x", source(1), sleepNode("x", "src", c.nap)), 0))
			w.Settle()
			w.close(c.grace)
			refused := w.start(w.within(builtinGraph(t, "src", source(1)), 0))
			w.Settle()
			require.NotNil(t, refused.Result)
			assert.ErrorIs(t, refused.Err, ErrShuttingDown)
			if c.at > 0 {
				w.Advance(c.at - 1)
				require.Nil(t, p.Result)
				w.Advance(1)
			}
			require.NotNil(t, p.Result)
			assert.Equal(t, c.at, p.at)
			if c.succeeds {
				requireRows(t, p.Result, 1)
			} else {
				assert.ErrorIs(t, p.Err, ErrShuttingDown)
			}
			assert.True(t, w.ended, "no sleep is waited for")
			assert.Equal(t, c.cancelled, w.counted().Cancelled)
		})
	}
}

// A request that is answered leaves a body behind. The drain ends when that body ends.
func TestDrainWaitsForOrphans(t *testing.T) {
	w := newHandWorld(t, ms(10))
	p := w.start(w.within(builtinGraph(t, "x", source(1), busyNode("x", "src", 0)), 0))
	w.Settle()
	job := w.cpu.take()
	w.Advance(ms(10))
	require.NotNil(t, p.Result)
	w.close(0)
	assert.False(t, w.ended)
	w.Advance(ample)
	assert.False(t, w.ended)
	w.cpu.finish(job)
	w.Settle()
	assert.True(t, w.ended)
}

// A completion that panics is its owner's bug. It does not harm other requests or the drain.
func TestAPanicInDoneHarmsNobodyElse(t *testing.T) {
	g := builtinGraph(t, "x", source(1), sleepNode("x", "src", ample))
	var contained sync.WaitGroup
	contained.Add(3)
	e, err := OpenAsync(Config{Registry: testRegistry(t), OnPanic: func(any, []byte) { contained.Done() }})
	require.NoError(t, err)
	answers := make(chan error, 8)
	for i := range 6 {
		e.Submit(&Execution{Graph: g, UserID: 1}, func(r *Result) {
			if answers <- r.Err; i%2 == 0 {
				panic("a bug of the caller")
			}
		})
	}
	e.Close(0)
	contained.Wait()
	require.Len(t, answers, 6)
	for range 6 {
		assert.ErrorIs(t, <-answers, ErrShuttingDown)
	}
	assertNothingLeft(t, e)
}

// A job that is still queued when the engine gives up never runs.
func TestGivingUpTakesBackQueuedWork(t *testing.T) {
	w := newHandWorld(t, 0)
	p := w.start(w.within(builtinGraph(t, "x", source(1), busyNode("x", "src", ample)), 0))
	w.Settle()
	require.Len(t, w.cpu.queued, 1)
	w.close(0)
	require.NotNil(t, p.Result)
	assert.ErrorIs(t, p.Err, ErrShuttingDown)
	assert.Empty(t, w.cpu.queued)
	assert.Equal(t, Counts{Requests: 1, Failed: 1, Cancelled: 1}, w.counted())
}
