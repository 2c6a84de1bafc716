package scheduler

import (
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// AwaitsMax is how many functions of task.Ctx.Await run at once in one engine, including those for which nobody waits
// any more. One more is refused with task.ErrTooManyAwaits.
const AwaitsMax = 10_000

// AwaitStats count the functions of task.Ctx.Await. A copy; any goroutine.
type AwaitStats struct {
	Running int    // now, including those for which nobody waits any more
	Late    uint64 // they returned after everybody had stopped waiting, so their results were dropped
	Refused uint64 // with task.ErrTooManyAwaits
}

// Awaits runs the functions of task.Ctx.Await of one engine, each on a goroutine. Any goroutine.
type Awaits struct {
	// Go runs fn on a goroutine. Nil means a go statement; a simulation has its own. Set before the first use.
	Go func(fn func())

	running       atomic.Int64
	late, refused atomic.Uint64
	goroutines    sync.WaitGroup
}

// Stats returns the counters as they are now.
func (a *Awaits) Stats() AwaitStats {
	return AwaitStats{Running: int(a.running.Load()), Late: a.late.Load(), Refused: a.refused.Load()}
}

// Wait waits until all functions have returned. It is called once no body can start one.
func (a *Awaits) Wait() { a.goroutines.Wait() }

// Start makes a goroutine run fn, and then back with fn's error. It returns task.ErrTooManyAwaits if neither runs.
func (a *Awaits) Start(fn func() error, back func(error)) error {
	if a.running.Add(1) > AwaitsMax {
		a.running.Add(-1)
		a.refused.Add(1)
		return task.ErrTooManyAwaits
	}
	a.goroutines.Add(1)
	run := func() {
		err := task.ErrGoexit // stays if fn never returns
		defer func() {
			if v := recover(); v != nil {
				err = &task.PanicError{Value: v, Stack: debug.Stack()}
			}
			a.running.Add(-1)
			back(err)
			a.goroutines.Done()
		}()
		err = fn()
	}
	if a.Go != nil {
		a.Go(run)
	} else {
		go run()
	}
	return nil
}

// Block makes a goroutine run fn. It blocks until fn has returned or the body is cancelled, whichever is first.
func (a *Awaits) Block(fn func() error, cancel *taskrun.Cancellation) error {
	if cancel.Cancelled() {
		return task.ErrCancelled
	}
	var settled atomic.Bool // first-wins guard
	ended := make(chan error, 1)
	err := a.Start(fn, func(err error) {
		if settled.Swap(true) {
			a.late.Add(1)
			return
		}
		ended <- err
	})
	if err != nil {
		return err
	}
	select {
	case err = <-ended:
	case <-cancel.Done():
		if !settled.Swap(true) {
			return task.ErrCancelled
		}
		err = <-ended
	}
	return err
}

// await is the wait of a body on the loop for a function. Loop only, but for err until back.
type await struct {
	body *loopBody // nil: nobody waits any more
	err  error     // of the function
}

// Await implements taskrun.Waiter. It suspends the code until the function has returned.
func (b *loopBody) Await(fn func() error) error {
	if b.cancelled {
		return b.Sleep(0)
	}
	b.dropCall()
	e, w := b.engine, &await{body: b}
	back := func() { e.awaitEnded(w) }
	err := e.awaits.Start(fn, func(err error) {
		w.err = err
		e.loop.Post(back) // Only a stopped loop refuses, and nobody waits there.
	})
	if err != nil {
		return err
	}
	e.loop.Hold()
	b.await = w
	b.journal.Wait(b.index, trace.ForFunction, 0, 0)
	if !b.co.suspend() || b.cancelled {
		b.dropAwait()
		return task.ErrCancelled
	}
	return w.err
}

// awaitEnded takes back a function that has returned. It resumes the body, unless the body was cancelled before.
func (e *Async) awaitEnded(w *await) {
	e.loop.Release()
	b := w.body
	if b == nil {
		e.awaits.late.Add(1)
		return
	}
	b.await = nil
	b.wake()
}

// dropAwait gives up the wait for a function, and reports whether there was one. The function goes on.
func (b *loopBody) dropAwait() bool {
	if b.await == nil {
		return false
	}
	b.await.body, b.await = nil, nil
	return true
}
