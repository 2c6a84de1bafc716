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
	r.recorder.Begin(r.req.Record, r.req.Graph, trace.Reactor, r.mode.String(), arrived)
}

// recorded ends the recording of a request that ends with err.
func (r *run) recorded(err error) *trace.Recording {
	recording := r.recorder.Finish(err)
	r.engine.freeRecorders.put(r.recorder)
	r.recorder = nil
	return recording
}

// recorder returns who records the node's request; nil: nobody, or the node has settled.
func (n *nodeRun) recorder() *trace.Recorder {
	if n.run == nil {
		return nil
	}
	return n.run.recorder
}

// recordEnd records that a node settles, with the error that is its outcome. A body that a worker has not given back runs
// on.
func (n *nodeRun) recordEnd(rec *trace.Recorder, err error) {
	b, ok := n.body.(*poolBody)
	runsOn := ok && b.node == n && b.position.Load() != notBegun
	if runsOn {
		n.recordWork(rec, b)
		if n.steps == 0 {
			rec.Started(b.index, b.job.Worker, b.steps[0].start)
		}
	}
	rec.End(n.node.Index, n.ended, trace.Outcome{Rows: n.out.N, Err: err, TimedOut: isTimeout(err), RunsOn: runsOn})
}

// recordStep records that a node of a chain has ended, and that the next one has begun.
func (n *nodeRun) recordStep(b *poolBody) {
	rec, index, next := n.run.recorder, n.node.Index, int(n.profile.nodes[n.node.Index].next)
	n.recordWork(rec, b)
	rows := b.steps[n.steps+1].rows - n.profile.nodes[next].makes
	rec.End(index, b.steps[n.steps].end, trace.Outcome{Rows: rows})
	rec.Fuse(next, index, n.steps+1, rows)
}

// recordWork records when a worker began the node that is the present step of its chain.
func (n *nodeRun) recordWork(rec *trace.Recorder, b *poolBody) {
	rec.Worked(n.node.Index, b.job.Worker, b.steps[n.steps].start)
}

// recordReturn records that a job is back on the loop. Its steps but the last are recorded.
func (n *nodeRun) recordReturn(rec *trace.Recorder, b *poolBody) {
	if b.position.Load() == notBegun {
		return
	}
	n.recordWork(rec, b)
	rec.Started(b.index, b.job.Worker, b.steps[0].start)
	if b.ended != 0 {
		rec.Posted(b.index, b.job.Worker, b.ended)
		rec.Returned(b.index)
	}
}

// recordInline records a node that ran inline, as the one of that depth after parent.
func (r *run) recordInline(node, parent, depth int, start, end clock.Time, rows int, err error) {
	rec := r.recorder
	if parent >= 0 {
		rec.Follow(node, parent, depth)
	}
	rec.StartAt(node, start)
	rec.End(node, end, trace.Outcome{Rows: rows, Err: err, TimedOut: isTimeout(err)})
}

// Sent implements resp.Watch.
func (b *loopBody) Sent(conn, n, bytes int) {
	if rec := b.node.recorder(); rec != nil {
		rec.Sent(b.node.node.Index, b.endpoint, conn, n, bytes)
	}
}

// Replied implements resp.Watch.
func (b *loopBody) Replied(conn, n, bytes int) {
	if rec := b.node.recorder(); rec != nil {
		rec.Replied(b.node.node.Index, b.endpoint, conn, n, bytes)
	}
}

// isTimeout reports whether an error says that a deadline has passed.
func isTimeout(err error) bool {
	var late *TimeoutError
	return errors.As(err, &late)
}
