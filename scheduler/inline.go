package scheduler

import (
	"time"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/trace"
)

// inliner runs computing nodes on the loop, one after the other. Nothing else happens on the loop
// meanwhile, so such a node needs no timer, no cancellation and no coroutine. Loop only.
type inliner struct {
	engine *Async
	job    *Job
	step   func() bool // the method nextStep, bound once

	// Of the node that runs.
	run    *run
	rows   int // of its inputs
	parent int // the node that it follows directly; -1: none
	depth  int // how many nodes it follows directly

	// Within one iteration of the loop, nodes run inline for Placement.InlineBudget only.
	iteration uint64        // the last one in which a node ran inline
	spent     time.Duration // in that iteration
	ended     clock.Time    // when the last inline node ended, if nothing has happened since; otherwise zero

	parked []*run // wait for the next iteration, which resume is posted to
	others []*run // empty; the next parked
	resume func() // the method resumeParked, bound once
}

// keptNodes are the nodes of a run that will run inline, in the order in which they became ready. All other ready
// nodes start first, so that no send waits behind inline work.
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

// init prepares the inliner of an engine.
func (in *inliner) init(e *Async) {
	in.engine, in.step, in.resume = e, in.nextStep, in.resumeParked
	in.job = new(Job)
	in.job.Init(&e.outside, &e.given, nil)
}

// resume goes on with a run that has waited.
func (r *run) resume() {
	defer r.contain(false)
	r.pump()
}

// hasBudget reports whether nodes may run inline in this iteration.
func (in *inliner) hasBudget() bool {
	if now := in.engine.loop.Iteration(); in.iteration != now {
		in.iteration, in.spent = now, 0
	}
	return in.spent < in.engine.placement.InlineBudget
}

// runKept runs the oldest kept node, and those that follow it directly. It reports whether it did.
func (r *run) runKept() bool {
	in := &r.engine.inliner
	now := in.ended
	if now == 0 {
		now = r.engine.loop.Clock().Now()
	}
	if !r.Proceed(now) {
		r.skipKept()
		return false
	}
	if len(in.parked) > 0 || !in.hasBudget() { // Those that wait already go first.
		r.park()
		return false
	}
	r.runInline(r.kept.take(), now)
	return true
}

// skipKept settles the kept nodes of a request that has failed.
func (r *run) skipKept() {
	for !r.kept.empty() {
		r.State.Skip(r.kept.take())
	}
}

// runInline runs a node, then its single successor, and so on. The end of one node is the start of the next: the clock is read once
// for each.
func (r *run) runInline(node int, start clock.Time) {
	in := &r.engine.inliner
	in.run, in.parent, in.depth = r, -1, 0
	r.lend(in.job)
	in.load(node, start)
	in.ended = 0
	in.job.Steps(in.step)
	in.job.clear()
	in.run = nil
}

// load prepares the job to run a node from start on.
func (in *inliner) load(node int, start clock.Time) {
	r, p := in.run, &in.run.profile.nodes[node]
	in.rows = r.State.Rows(node)
	r.Journal.Spawn(node, trace.Inline, in.rows)
	r.load(in.job, node, p.spec, p.limit, start)
	tasks.Env(&in.job.Ctx).Now = start
	in.engine.noteRunning(in.job.Ctx.Node)
}

// nextStep settles the node that has ended, and takes up the next one, unless that runs elsewhere or later. A node
// that ends after its deadline has failed.
func (in *inliner) nextStep() bool {
	e, r, j := in.engine, in.run, in.job
	node, out, end := j.Ctx.Node, j.Out, j.Ended
	if j.Err == taskrun.ErrMustRead {
		in.toCoroutine()
		return false
	}
	r.profile.started(j.Started.Sub(r.State.ReadyAt(node.Index)))
	in.measure()
	if in.parent >= 0 {
		r.Journal.Follow(node.Index, in.parent, in.depth)
	}
	r.Journal.Start(node.Index, j.Started)
	err := j.Err
	if j.Late(true) {
		r.profile.counts.NodeTimeouts++
		r.profile.countLate(nil)
		if err = r.CheckStart(j, j.Started); err == nil {
			err = r.TimedOut(j, end)
		}
	}
	if err != nil {
		r.Fail(node.Index, err, end, end)
		in.forget()
		return false
	}
	r.note(j)
	in.forget()
	r.State.Tell(end)
	next, ok := r.State.Follower(node.Index)
	if !ok || !r.policy.chains || in.depth == e.placement.MaxInlineDepth || !r.Proceed(end) {
		r.State.Succeed(node.Index, out)
		in.ended = end
		return false
	}
	r.State.Continue(node.Index, out)
	if there := r.place(next); there != inline {
		r.start(next, there)
		return false
	}
	if !in.hasBudget() {
		r.kept.add(next)
		return false
	}
	in.parent, in.depth = node.Index, in.depth+1
	in.load(next, end)
	return true
}

// toCoroutine has a node go on in a coroutine, because not all that it reads is in memory. Its timeout counts from its
// start inline.
//
// A node whose reads are all in memory saves some instructions and two switches of goroutines (BenchmarkRequest,
// memory).
func (in *inliner) toCoroutine() {
	r, node := in.run, in.job.Ctx.Node.Index
	in.spent += in.job.Ended.Sub(in.job.Started)
	j := r.newJob(node, onLoop)
	r.Journal.Spawn(node, places[onLoop], in.rows)
	j.Job, in.job = in.job, j.Job
	going, free := tasks.Env(&j.Ctx), tasks.Env(&in.job.Ctx)
	going.Cancellation, free.Cancellation, free.Waiter, going.Now, j.Ended = free.Cancellation, nil, nil, 0, 0
	if r.State.timeLimited(j.node) {
		j.started = j.Started
	}
	r.launch(j)
}

// measure records how long the node took: its whole cost on the loop.
func (in *inliner) measure() {
	p, j := in.run.profile, in.job
	node, took := &p.nodes[j.Ctx.Node.Index], j.Ended.Sub(j.Started)
	p.countRun(node, took, j.Ctx.Limit)
	in.spent += took
	in.run.compute += took
	if node.reads { // It computes next to nothing.
		node.recalled(j.Err == nil)
		return
	}
	node.learn(in.rows, took, j.Err)
	p.counts.Inline++
	p.inlineTime.Add(took)
}

// abandon forgets a job that a panic has left in any state.
func (in *inliner) abandon() {
	in.job, in.run, in.ended = new(Job), nil, 0
	in.job.Init(&in.engine.outside, &in.engine.given, nil)
}

// forget drops what the body that has ended would leave to the next one. The rows follow with the last one: runInline.
func (in *inliner) forget() {
	env := tasks.Env(&in.job.Ctx)
	env.Shortfall, env.Cancellation = nil, nil // The body has made these.
}

// park makes r continue in the next iteration. One post serves all runs.
func (r *run) park() {
	if r.kept.parked {
		return
	}
	in := &r.engine.inliner
	r.kept.parked = true
	r.profile.counts.Deferred++
	if in.parked = append(in.parked, r); len(in.parked) == 1 {
		r.engine.loop.Post(in.resume) // Only a stopped loop refuses, and it ends all anyway.
	}
}

// resumeParked goes on with the runs that wait for a new iteration, in order.
func (in *inliner) resumeParked() {
	runs := in.parked
	in.parked = in.others
	for i, r := range runs {
		runs[i] = nil
		r.kept.parked = false
		if r.Req == nil {
			if !r.broken {
				in.engine.freeRuns.put(r) // It has ended meanwhile.
			}
			continue
		}
		r.resume()
	}
	in.others = runs[:0]
}
