package scheduler

import (
	"errors"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/trace"
)

// This file has what the engine says to the recorder of a request. A request that nobody records has none.

// places are the names of the places in a trace.
var places = [...]trace.Place{onLoop: trace.OnLoop, onPool: trace.OnPool, inline: trace.Inline}

// record has the request recorded from now on.
func (r *run) record(arrived clock.Time) {
	e := r.engine
	if r.recorder = e.freeRecorders.take(); r.recorder == nil {
		r.recorder = trace.NewRecorder(e.loop.Clock(), e.events)
	}
	r.recorder.Begin(r.req.Record, r.req.Graph, trace.Reactor, r.policy.mode.String(), arrived)
	r.recorder.LetIn(r.delay)
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
	if r.recorder != nil {
		return r.recorder.Turn()
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

// recordEnd records how a node settles. Of a chain that its job has not given back, that is the node that runs.
func (n *nodeRun) recordEnd(rec *trace.Recorder, o trace.Outcome) {
	node := n.node.Index
	if b, ok := n.body.(*poolBody); ok && b.node == n {
		node = n.recordGivenUp(rec, b)
	}
	rec.End(node, n.ended, classified(o))
}

// recordGivenUp records what a job has done that is not back on the loop, and returns the node that runs.
func (n *nodeRun) recordGivenUp(rec *trace.Recorder, b *poolBody) (node int) {
	worked, last := b.worked.Load(), int(b.position.Load()) // in this order: what has worked has its last position
	node = n.node.Index
	if last == notBegun {
		return node
	}
	for k := n.steps; k < last; k++ {
		node = n.recordStep(rec, b, node, k)
	}
	rec.Worked(node, b.job.Worker, b.steps[last].start)
	rec.Started(b.index, b.job.Worker, b.steps[0].start)
	if worked {
		rec.WorkedUntil(node, b.ended)
		rec.Posted(b.index, b.job.Worker, b.ended)
	} else {
		rec.RunsOn(node)
	}
	return node
}

// recordStep records that the node at a step of a chain has ended, and that the next one, which it returns, has begun.
func (n *nodeRun) recordStep(rec *trace.Recorder, b *poolBody, node, k int) (next int) {
	next = int(n.profile.nodes[node].next)
	rows := b.steps[k+1].rows - n.profile.nodes[next].makes
	rec.Worked(node, b.job.Worker, b.steps[k].start)
	rec.End(node, b.steps[k].end, trace.Outcome{Rows: rows})
	rec.Fuse(next, node, k+1, rows)
	return next
}

// recordReturn records that a job is back on the loop. Its steps but the last are recorded.
func (n *nodeRun) recordReturn(rec *trace.Recorder, b *poolBody) {
	if b.position.Load() == notBegun {
		return
	}
	rec.Worked(n.node.Index, b.job.Worker, b.steps[n.steps].start)
	rec.Started(b.index, b.job.Worker, b.steps[0].start)
	if b.ended != 0 {
		rec.Posted(b.index, b.job.Worker, b.ended)
		rec.Returned(b.index)
	}
}

// recordInline records a node that ran inline, as the one of that depth after parent.
func (r *run) recordInline(node, parent, depth int, start, end clock.Time, o trace.Outcome) {
	rec := r.recorder
	if parent >= 0 {
		rec.Follow(node, parent, depth)
	}
	rec.StartAt(node, start)
	rec.End(node, end, classified(o))
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

// classified returns o with what its error says.
func classified(o trace.Outcome) trace.Outcome {
	if o.Err == nil { // as usual; what follows allocates
		return o
	}
	var late *TimeoutError
	o.TimedOut, o.Late = errors.As(o.Err, &late), errors.Is(o.Err, ErrGivenUp)
	return o
}
