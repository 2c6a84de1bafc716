package scheduler

import (
	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// loopValuesMax is how many values, rows times columns, a body that reads handles on the loop in one go: some 0.1 ms.
const loopValuesMax = 8192

// Compute implements taskrun.Computer. It suspends the code until a worker of the CPU pool has run fn. Nothing else ends the wait,
// since fn uses what is the body's. A computation that no worker has begun when nobody waits any more does not run.
func (b *loopBody) Compute(fn func()) error {
	if b.cancelled {
		return task.ErrCancelled
	}
	b.dropCall()
	var failed error
	job := &cpupool.Job{Work: fn, Due: b.job.run.due(b.index)}
	job.Done = func(err error) {
		b.computing, failed = nil, err
		b.wake()
	}
	b.computing = job
	if err := b.engine.cpu.Submit(job); err != nil {
		b.computing = nil
		return err
	}
	b.journal.Wait(b.index, trace.ForFunction, 0, 0)
	b.co.suspend()
	switch {
	case b.cancelled:
		return task.ErrCancelled
	case failed == cpupool.ErrGoexit:
		return task.ErrGoexit
	}
	return failed
}
