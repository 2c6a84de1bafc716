package scheduler

import (
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/trace"
)

// This file has what the engine says to the recorder of a request. A request that nobody records has none.

// places are the names of the places in a trace.
var places = [...]trace.Place{onLoop: trace.OnLoop, onPool: trace.OnPool, inline: trace.Inline}

// record has the request recorded from now on.
func (r *run) record(arrived clock.Time) {
	e := r.engine
	if r.Recorder = e.freeRecorders.take(); r.Recorder == nil {
		r.Recorder = trace.NewRecorder(e.loop.Clock(), e.events)
	}
	r.Recorder.Begin(r.Req.Record, r.Req.Graph, trace.Reactor, r.policy.mode.String(), arrived)
	r.Recorder.LetIn(r.delay)
}

// freeRecorder ends the use of a recorder whose recording was delivered. It may be nil.
func (e *Async) freeRecorder(recorder *trace.Recorder) {
	if recorder != nil {
		recorder.Free()
		e.freeRecorders.put(recorder)
	}
}

// now reads the clock, unless the recorder has just done so: what ends for one node begins for the next.
func (r *run) now() clock.Time {
	if r.Recorder != nil {
		return r.Recorder.Turn()
	}
	return r.engine.loop.Clock().Now()
}

// turn returns when the loop left the request for which it has worked in this callback just now. Zero means that it has done
// something else since, or that nobody recorded it.
func (e *Async) turn() clock.Time {
	if e.left < e.loop.Began() {
		return 0
	}
	return e.left
}

// recordGivenUp records what a job has done that is about to settle and is not back on the loop.
func (j *asyncJob) recordGivenUp() {
	o, rec, node := &j.offload, j.run.Recorder, j.node.Index
	worked := o.worked.Load()
	if rec == nil || o.position.Load() == notBegun {
		return
	}
	j.recordStart()
	if worked {
		rec.WorkedUntil(node, j.Ended)
		rec.Posted(o.head, o.job.Worker, j.Ended)
	} else {
		rec.RunsOn(node)
	}
}

// recordStep records that the node at a step of a chain has ended, and that the next one has begun.
func (j *asyncJob) recordStep(k int) {
	o, rec, node := &j.offload, j.run.Recorder, j.node.Index
	if rec == nil {
		return
	}
	next := int(j.profile.nodes[node].next)
	rows := o.steps[k+1].rows - j.profile.nodes[next].makes
	rec.Worked(node, o.job.Worker, o.steps[k].start)
	rec.End(node, o.steps[k].end, trace.Outcome{Rows: rows})
	rec.Fuse(next, node, k+1, rows)
}

// recordReturn records that a job is back on the loop. Its steps but the last are recorded.
func (j *asyncJob) recordReturn() {
	o, rec := &j.offload, j.run.Recorder
	if rec == nil || o.position.Load() == notBegun {
		return
	}
	j.recordStart()
	if j.Ended != 0 {
		rec.Posted(o.head, o.job.Worker, j.Ended)
		rec.Returned(o.head)
	}
}

// recordStart records when the worker began the node that has not settled, and the job.
func (j *asyncJob) recordStart() {
	o, rec := &j.offload, j.run.Recorder
	rec.Worked(j.node.Index, o.job.Worker, o.steps[o.settled].start)
	rec.Started(o.head, o.job.Worker, o.steps[0].start)
}

// Sent implements resp.Watch.
func (b *loopBody) Sent(conn, n, bytes int, at clock.Time) {
	if b.recorder != nil {
		b.recorder.Sent(b.index, b.endpoint, conn, n, bytes, at)
	}
}

// Replied implements resp.Watch.
func (b *loopBody) Replied(conn, n, bytes int) {
	if b.recorder != nil {
		b.recorder.Replied(b.index, b.endpoint, conn, n, bytes, b.engine.turn())
	}
}
