package scheduler

import (
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/trace"
)

// This file notes in a request's journal what happens off the loop.

// places are the names of the places in a trace.
var places = [...]trace.Place{onLoop: trace.OnLoop, onPool: trace.OnPool, inline: trace.Inline}

// lastWork returns when this callback finished its last work for a request with a journal. Zero means that it has done
// other work since, or that nobody recorded it. Only journals need it.
func (e *Async) lastWork() clock.Time {
	if e.left < e.loop.Began() {
		return 0
	}
	return e.left
}

// noteGivenUp notes the progress of a job that is about to settle and is not back on the loop.
func (j *asyncJob) noteGivenUp() {
	o, done, until := j.offload, clock.Time(0), clock.Time(0)
	worked, position := o.worked.Load(), int(o.position.Load()) // in this order: once worked is true, position is final
	if position == notBegun {
		return
	}
	if worked {
		done = j.Ended
	}
	if worked || position > o.settled { // The worker has made progress since the last check.
		until = o.steps[o.settled].end
	}
	j.noteWork(done)
	j.run.Journal.Outlived(j.node.Index, until)
}

// noteStep notes that the node at a step of a chain has ended, and that the next one has begun.
func (j *asyncJob) noteStep(k int) {
	o, journal, node := j.offload, j.run.Journal, j.node.Index
	next := int(j.profile.nodes[node].next)
	rows := o.steps[k+1].rows
	journal.Worked(node, o.job.Worker, o.steps[k].start)
	journal.End(node, o.steps[k].end, rows)
	journal.Fuse(next, node, k+1, rows)
}

// noteReturn notes that a job is back on the loop. All its steps except the last are noted already.
func (j *asyncJob) noteReturn() {
	if j.offload.position.Load() == notBegun {
		return
	}
	j.noteWork(j.Ended)
	if j.Ended != 0 {
		j.run.Journal.Returned(j.offload.head)
	}
}

// noteWork notes when the worker began the unsettled node and the job. done is when it finished the job; zero: it has
// not.
func (j *asyncJob) noteWork(done clock.Time) {
	o, journal := j.offload, j.run.Journal
	journal.Worked(j.node.Index, o.job.Worker, o.steps[o.settled].start)
	journal.Offloaded(o.head, o.job.Worker, o.steps[0].start, done)
}

// Sent implements resp.Watch.
func (b *loopBody) Sent(conn, n, bytes int, at clock.Time) {
	b.journal.Sent(b.index, b.endpoint, conn, n, bytes, at)
}

// Replied implements resp.Watch.
func (b *loopBody) Replied(conn, n, bytes int) {
	b.journal.Replied(b.index, b.endpoint, conn, n, bytes, b.engine.lastWork())
}
