package scheduler

import (
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// inliner runs computing nodes on the loop, one after the other. Nothing else happens on the loop
// meanwhile, so such a node needs no timer, no cancellation and no coroutine. Loop only.
type inliner struct {
	ctx task.Ctx // of the node that runs

	// Within one iteration of the loop, nodes run inline for Placement.InlineBudget only.
	iteration uint64        // the last one in which a node ran inline
	spent     time.Duration // in that iteration

	parked []*run // wait for the next iteration, which resume is posted to
	others []*run // empty; the next parked
	resume func() // the method resumeParked, bound once
}

// keptNodes are the nodes of a run that will run inline, in the order in which they became
// ready. All else that is ready starts first, so that no send waits behind them.
type keptNodes struct {
	nodes  []int32 // handed out by the State
	head   int
	parked bool // in inliner.parked
}

func (k *keptNodes) empty() bool { return k.head == len(k.nodes) }

func (k *keptNodes) add(node int) { k.nodes = append(k.nodes, int32(node)) }

func (k *keptNodes) take() int {
	node := int(k.nodes[k.head])
	if k.head++; k.empty() {
		k.nodes, k.head = k.nodes[:0], 0
	}
	return node
}

// hasBudget reports whether nodes may run inline in this iteration.
func (e *Async) hasBudget() bool {
	if now := e.loop.Iteration(); e.inliner.iteration != now {
		e.inliner.iteration, e.inliner.spent = now, 0
	}
	return e.inliner.spent < e.placement.InlineBudget
}

// runKept runs the oldest kept node, and those that follow it directly. It reports whether it did.
func (r *run) runKept() bool {
	if r.kept.empty() {
		return false
	}
	now := r.now()
	if !r.req.Proceed(&r.state, now) {
		r.skipKept()
		return false
	}
	if len(r.engine.inliner.parked) > 0 || !r.engine.hasBudget() { // Those that wait already go first.
		r.park()
		return false
	}
	r.runInline(r.kept.take(), now)
	return true
}

// skipKept settles the kept nodes of a request that has failed.
func (r *run) skipKept() {
	for !r.kept.empty() {
		r.state.Skip(r.kept.take())
	}
}

// runInline runs a node, then its single successor, and so on. A node of another place is started
// there. The end of one node is the start of the next: the clock is read once for each.
func (r *run) runInline(node int, start clock.Time) {
	e := r.engine
	for depth, parent := 0, -1; ; depth++ {
		c := &e.inliner.ctx
		out, end, err := r.invokeInline(node, start)
		if err != nil {
			instead, rows := r.req.Fail(&r.state, node, err, end)
			if r.recorder != nil {
				r.recordInline(node, parent, depth, start, end, trace.Outcome{Err: err, Instead: instead, Rows: rows})
			}
			e.inliner.reset()
			return
		}
		r.state.Note(node, c.Inputs, c.Refs, out)
		lack := r.noteLack(node, c)
		if r.recorder != nil {
			r.recordInline(node, parent, depth, start, end, trace.Outcome{Rows: out.N, Dropped: lack.Dropped, Lack: lack.Err})
		}
		e.inliner.reset()
		r.state.Tell(end)
		next, ok := r.state.Follower(node)
		if !ok || !r.policy.chains || depth == e.placement.InlineDepthMax || !r.req.Proceed(&r.state, end) {
			r.state.Succeed(node, out)
			return
		}
		r.state.Continue(node, out)
		if there := r.place(next); there != inline {
			r.start(next, there)
			return
		}
		if !e.hasBudget() {
			r.kept.add(next)
			return
		}
		parent, node, start = node, next, end
	}
}

// reset ends the use of the arguments: a kept slice must not keep rows alive, and the request is its caller's again.
func (i *inliner) reset() {
	clear(i.ctx.Inputs)
	clear(i.ctx.Refs)
	i.ctx.Params = nil
	env := tasks.Env(&i.ctx)
	env.Required, env.Caller, env.Cancellation = nil, nil, nil
}

// invokeInline runs the code of one node and measures it. The time is all that the node costs the
// loop. A node that ends after its deadline has failed.
func (r *run) invokeInline(index int, start clock.Time) (out rowset.RowSet, end clock.Time, err error) {
	e, p, node := r.engine, &r.profile.nodes[index], r.req.Graph.Nodes[index]
	c := &e.inliner.ctx
	c.Node, c.UserID, c.RequestID, c.Params = node, r.req.UserID, r.req.RequestID, &r.req.Params
	c.Limit, c.Memory = r.limitOf(index), r.memory
	env := tasks.Env(c)
	env.Rows, env.Required, env.Caller = r.rows, r.req.Required, r.req.Context
	env.Deadline = r.state.NodeDeadline(node, start, e.nodeTimeout)
	rows := r.state.Rows(index) + p.makes
	if r.recorder != nil {
		r.recorder.Spawn(index, trace.Inline, rows-p.makes)
	}
	c.Inputs, c.Refs = r.state.Gather(index, c.Inputs[:0], c.Refs[:0])
	e.noteRunning(node)
	out, err = tasks.Invoke(p.spec, c)
	end = e.loop.Clock().Now()
	took := end.Sub(start)
	p.learn(rows, took, err)
	e.inliner.spent += took
	r.profile.counts.Inline++
	r.profile.inlineTime.Add(took)
	r.profile.started(start.Sub(r.readyAt(index)))
	p.ran.count(1, took)
	if env.Deadline.Passed(end) {
		e.counts.NodeTimeouts++
		r.profile.counts.NodeTimeouts++
		e.counts.LateCompletions++
		r.profile.counts.LateCompletions++
		err = r.state.NodeLate(ErrNodeTimeout, node, start, env.Deadline, end)
	}
	return out, end, err
}

// park has r go on in the next iteration. One post serves all runs.
func (r *run) park() {
	if r.kept.parked {
		return
	}
	e := r.engine
	r.kept.parked = true
	r.profile.counts.Deferred++
	if e.inliner.parked = append(e.inliner.parked, r); len(e.inliner.parked) == 1 {
		e.loop.Post(e.inliner.resume) // Only a stopped loop refuses, and it ends all anyway.
	}
}

// resumeParked goes on with the runs that wait for a new iteration, in order.
func (e *Async) resumeParked() {
	in := &e.inliner
	runs := in.parked
	in.parked = in.others
	for i, r := range runs {
		runs[i] = nil
		r.kept.parked = false
		if r.req == nil {
			e.freeRuns.put(r) // It has ended meanwhile.
			continue
		}
		r.pump()
	}
	in.others = runs[:0]
}
