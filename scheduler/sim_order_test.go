package scheduler

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
)

// This file has what the simulation knows of the order in which waiting jobs get a worker.

// simJob is a job that waits for a worker.
type simJob struct {
	*cpupool.Job
	work    func() // its own; Job.Work says when it begins
	user    int64  // the number of its request
	node    string // its first node
	ordered bool   // by path.go; otherwise first come, first served
	arrived clock.Time
	path    time.Duration // from the start of the node to the end of the plan
	due     clock.Time
}

// drawPatience gives the requests of some worlds less patience than the world lasts, and has the readers of some compute off the loop.
func (w *simWorld) drawPatience() {
	rng := rand.New(rand.NewPCG(w.seed, 0x6f72646572))
	if rng.Float64() < 0.3 {
		w.engine.patience = time.Duration(rng.Int64N(int64(20 * time.Millisecond)))
	}
	if rng.Float64() < 0.3 {
		w.engine.given.LoopValues = 1 + rng.IntN(60)
	}
}

// simJobOf returns what decides when a job begins that is about to wait.
func (w *simWorld) simJobOf(job *cpupool.Job) simJob {
	nodes := w.engine.nodes()
	j := nodes[slices.IndexFunc(nodes, func(j *asyncJob) bool {
		return j.offload != nil && &j.offload.job == job || j.body != nil && j.body.computing == job
	})]
	if j.body != nil {
		w.computed++
	}
	q := w.runOf(j.run.Req.UserID, j.node)
	s := simJob{
		Job: job, work: job.Work, user: q.user, node: j.node.ID, ordered: q.mode != plan.OffloadAll,
		arrived: j.run.State.arrived, path: j.profile.nodes[j.node.Index].path.Round(pathGrain),
	}
	if !s.ordered {
		s.due = w.engine.loop.Now().Add(w.engine.patience)
		return s
	}
	s.due = s.arrived.Add(w.engine.patience)
	if d := q.deadline; d != 0 && d < s.due {
		s.due = d
	}
	s.due = s.due.Add(-s.path)
	return s
}

// Submit implements CPU.
func (c simCPU) Submit(job *cpupool.Job) error {
	w, s := c.w, c.w.simJobOf(job)
	w.check(job.Due == s.due, "node %s of request %d is to start by %v, not by %v", s.node, s.user, s.due, job.Due)
	err := c.Pool.Submit(job)
	switch err {
	case nil:
		w.waiting = append(w.waiting, s)
		job.Work = func() {
			w.jobBegins(s)
			w.dequeue(s)
			s.work()
		}
	case cpupool.ErrQueueFull:
		w.queueFull++
	}
	return err
}

// Cancel implements CPU.
func (c simCPU) Cancel(job *cpupool.Job) error {
	err := c.Pool.Cancel(job)
	if i := slices.IndexFunc(c.w.waiting, func(s simJob) bool { return s.Job == job }); i >= 0 && err == nil {
		c.w.dequeue(c.w.waiting[i])
	}
	return err
}

// dequeue removes a job from those that wait.
func (w *simWorld) dequeue(s simJob) {
	s.Job.Work = s.work
	w.waiting = slices.DeleteFunc(w.waiting, func(other simJob) bool { return other.Job == s.Job })
}

// jobBegins checks that no waiting job should have begun before s. A job may overtake one of an
// earlier request. But its own request must not have come later by more than the patience plus
// the job's longest path.
func (w *simWorld) jobBegins(s simJob) {
	earlier := true // submitted before s
	for _, other := range w.waiting {
		if other.Job == s.Job {
			earlier = false
			continue
		}
		if s.ordered && other.ordered {
			w.check(s.arrived.Sub(other.arrived) <= w.engine.patience+s.path, "node %s of request %d begins, and one of request %d waits that came %v before",
				s.node, s.user, other.user, s.arrived.Sub(other.arrived))
		}
		w.check(s.due < other.due || s.due == other.due && !earlier, "node %s of request %d begins while node %s of request %d waits, which is due before it",
			s.node, s.user, other.node, other.user)
	}
}

// checkLongestPaths checks that no path is shorter than the paths after it.
func (w *simWorld) checkLongestPaths() {
	for g, p := range w.engine.profiles {
		for i, n := range g.Nodes {
			for _, next := range n.Succs {
				w.check(p.nodes[i].path >= p.nodes[next].path, "node %s has a path of %v, and node %s behind it one of %v",
					n.ID, p.nodes[i].path, g.Nodes[next].ID, p.nodes[next].path)
			}
		}
	}
}
