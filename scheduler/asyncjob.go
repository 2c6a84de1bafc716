package scheduler

import (
	"errors"
	"time"

	"github.com/rankd/rankd/internal/list"
	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// asyncJob is a Job that takes a while, in a coroutine on the loop or on the CPU pool. It is a race that settles its
// node.
//
// Two things happen, in either order. The node settles, once: its body ends, its deadline comes, or Close or the plan
// gives it up; or its body could not start. And its body ends. If the node settles first, its body becomes an orphan:
// an asyncJob without a run, which keeps everything that the body still uses. The asyncJob is reused only when its
// body has ended.
//
// Loop only, except for what the worker owns: see offload.
type asyncJob struct {
	*Job
	engine  *Async
	run     *run // nil once settled
	profile *profile
	there   where               // in all its uses
	body    *loopBody           // on the loop
	offload *offload            // on the pool; nil on the loop
	link    list.Link[asyncJob] // in run.active, or in engine.orphans

	cancel taskrun.Cancellation

	// Of the unsettled node. A worker may be further along the chain.
	node     *plan.Node
	started  clock.Time // as Job has it
	deadline clock.Time // effective; zero: none

	ready   clock.Time // when it became ready
	begun   clock.Time // when it was handed over, as reported to its State
	expiry  *loop.Timer
	settled bool // first-wins guard
	live    bool // the body has begun and not ended
}

func (e *Async) newAsyncJob(there where) *asyncJob {
	j := e.freeJobs[there].take()
	if j == nil {
		j = &asyncJob{Job: new(Job), engine: e, there: there}
		j.Init(&e.outside, &e.given, &j.cancel)
		if there == onPool {
			j.offload = newOffload(j)
		} else {
			j.body = newLoopBody(j)
		}
	}
	return j
}

// start begins one node with the results of its inputs, on the loop or on the pool.
func (r *run) start(node int, there where) {
	r.engine.inliner.ended = 0
	j, p := r.newJob(node, there), &r.profile.nodes[node]
	if there == onPool || r.Journal != nil { // Nobody else asks for the rows.
		rows := r.State.Rows(node)
		r.Journal.Spawn(node, places[there], rows)
		if there == onPool {
			j.offload.load(j, rows)
		}
	}
	if r.State.timeLimited(j.node) || j.laterTimeout() > 0 { // Usually not: that costs not even reading the clock.
		j.started = r.engine.loop.Clock().Now()
	}
	r.Load(j.Job, node, p.spec, p.limit, j.started)
	r.launch(j)
}

// newJob returns a job for a node, without the arguments of its body.
func (r *run) newJob(node int, there where) *asyncJob {
	j := r.engine.newAsyncJob(there)
	j.run, j.profile, j.node = r, r.profile, r.Req.Graph.Nodes[node]
	j.ready, j.begun = r.State.ReadyAt(node), r.State.now
	return j
}

// launch begins a job whose arguments are filled in.
func (r *run) launch(j *asyncJob) {
	j.deadline = j.Deadline
	r.active.Push(j, &j.link)
	if err := j.begin(); err != nil {
		j.end(err)
	}
}

// begin begins the race between the deadline and the body. With an error the race is already lost, and the body does
// not run.
func (j *asyncJob) begin() error {
	if j.started != 0 {
		if err := j.run.CheckStart(j.Job, j.started); err != nil {
			return err
		}
		if err := j.startTimer(j.started); err != nil {
			return err
		}
	}
	if j.there == onPool {
		return j.submit()
	}
	j.live = true
	j.body.start()
	return nil
}

// startTimer starts the timer of the node's deadline. In a chain the timer also fires before any later node can time
// out, to find out which node runs.
func (j *asyncJob) startTimer(now clock.Time) error {
	due := j.deadline
	if later := j.laterTimeout(); later > 0 {
		due = due.Earlier(now.Add(later))
	}
	if due == 0 {
		return nil
	}
	if j.expiry == nil {
		j.expiry = j.engine.loop.NewTimer(j.expire)
	}
	return j.expiry.StartAt(due)
}

// laterTimeout returns the least timeout that the plan sets for a node after this one in its
// chain, or zero.
func (j *asyncJob) laterTimeout() time.Duration {
	if !j.chained() {
		return 0
	}
	return j.profile.nodes[j.node.Index].timeoutMin
}

// bodyEnded is the end of the body. It wins the race unless the node has settled. A node whose body ends after the
// deadline has failed, even if the timer has not fired yet.
func (j *asyncJob) bodyEnded() {
	if j.settled {
		j.orphanEnded()
		return
	}
	err := j.Err
	if j.deadline != 0 && j.Ended == 0 {
		j.Ended = j.engine.loop.Clock().Now()
	}
	if j.Late(j.run.policy.strict) {
		j.profile.countLate(err)
		err = j.timedOut(j.Ended)
	}
	j.end(err)
}

// end settles a node whose body has ended, or could not start, and starts what became ready.
func (j *asyncJob) end(err error) {
	r := j.settle(err, j.Ended)
	j.free()
	r.pump()
}

// expire is called when the deadline wins the race. The node fails now, and the later result of its body is dropped.
// In a chain this is the running node, if its time is over.
func (j *asyncJob) expire() {
	defer j.run.contain(false)
	now := j.engine.loop.Clock().Now()
	if j.chained() {
		j.advance()
		if !j.deadline.Passed(now) {
			_ = j.startTimer(now) // Only a stopped loop refuses, and it ends all anyway.
			return
		}
	}
	j.run.Journal.Enter()
	j.run.Journal.Fired(j.node.Index, trace.Running, j.deadline)
	r := j.orphan(j.timedOut(now))
	r.pump()
}

// timedOut counts a node whose deadline came while it ran, and returns its error. then is when that was noticed.
func (j *asyncJob) timedOut(then clock.Time) error {
	j.profile.counts.NodeTimeouts++
	return j.run.State.nodeLate(ErrNodeTimeout, j.node, j.started, j.deadline, then)
}

// orphan settles the node without its body, and asks the body to stop. An orphan waits for
// nothing from now on. The caller pumps the run.
func (j *asyncJob) orphan(err error) *run {
	if j.there == onPool {
		j.noteGivenUp()
	}
	r := j.settle(err, 0)
	r.orphaned = true
	j.becomeOrphan(err)
	return r
}

// becomeOrphan asks the body of a settled node to stop.
func (j *asyncJob) becomeOrphan(err error) {
	j.profile.live++
	j.engine.orphans.Push(j, &j.link)
	j.cancel.Cancel(err)
	if j.there == onPool {
		_ = j.engine.cpu.Cancel(&j.offload.job) // A queued job does not run at all. An error means that it has started; it will check j.cancel.
	} else {
		j.body.cancel()
	}
}

// settle is the only way in which a node settles, whatever wins the race. A nil err means that the body's result
// counts; otherwise a worker may still hold the result. The caller pumps the run.
func (j *asyncJob) settle(err error, ended clock.Time) *run {
	r := j.run
	r.State.Tell(j.engine.loop.Now())
	if err != nil {
		r.Fail(j.node.Index, err, ended, j.engine.loop.Clock().Now())
	} else {
		r.Succeed(j.Job)
	}
	return j.leave()
}

// skip settles a node whose request had failed before the job began.
func (j *asyncJob) skip() {
	r := j.run
	r.Journal.Unspawn(j.node.Index)
	r.State.Skip(j.node.Index)
	j.leave()
	j.free()
	r.pump()
}

// leave marks the node as settled, and returns its run.
func (j *asyncJob) leave() *run {
	r := j.run
	j.settled, j.run = true, nil
	r.active.Remove(&j.link)
	if j.expiry != nil {
		j.expiry.Stop()
	}
	return r
}

// orphanEnded counts how the body of an orphan ended, and frees the orphan.
func (j *asyncJob) orphanEnded() {
	e := j.engine
	e.orphans.Remove(&j.link)
	j.profile.countLate(j.Err)
	e.endLive(j.profile)
	j.free()
	e.checkDrained()
}

// free makes a settled asyncJob whose body has ended ready for reuse.
func (j *asyncJob) free() {
	j.clear()
	j.cancel.Reset()
	j.node, j.profile = nil, nil
	j.started, j.deadline, j.settled = 0, 0, false
	if j.there == onPool {
		j.offload.clear()
	}
	if !j.engine.freeJobs[j.there].put(j) {
		j.close()
	} else if j.there == onLoop {
		j.engine.watchIdle()
	}
}

// close ends the body of an asyncJob that is free, and gives its timer back to the loop, which may outlive the engine.
func (j *asyncJob) close() {
	if j.body != nil {
		j.body.close()
	}
	if j.expiry != nil {
		j.expiry.Close(nil)
	}
}

// stoppedEarly reports whether a body stopped before its natural end: it noticed that it was cancelled, it had not
// started, or the client ended its call.
func stoppedEarly(err error) bool {
	for _, sign := range [...]error{
		task.ErrCancelled, loop.ErrCancelled, resp.ErrTimeout, resp.ErrClosed, remote.ErrTimeout, remote.ErrClosed,
	} {
		if errors.Is(err, sign) {
			return true
		}
	}
	return false
}
