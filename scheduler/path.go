package scheduler

import (
	"math/bits"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
)

// Jobs wait for a worker in the order of the instants at which they should start at the latest: the request's
// deadline, less the time from the node to the end of the plan along its longest path. A request of many heavy nodes
// in a row then goes on before one that has time, and old requests before new ones, so that none
// starves. First come, first served, in the order in which nodes become ready, makes a request wait in the queue once
// for each heavy node of its path: behind as many others each time. docs/how-a-request-runs.md#where-a-node-runs has the figures.

// patience is the deadline that a request is taken to have at most, from its arrival on: a request without a deadline, or
// with a distant one, still comes before those that arrive so much later.
const patience = time.Second

// due returns when a job that begins with the node should start at the latest. Loop only.
func (r *run) due(node int) clock.Time {
	if !r.policy.byDeadline {
		return r.engine.loop.Now().Add(r.engine.patience) // among themselves, first come, first served
	}
	return r.State.deadline.Earlier(r.State.arrived.Add(r.engine.patience)).Add(-r.profile.nodes[node].path.Round(pathGrain))
}

// pathGrain is the least difference of two paths that changes an order. Less is noise: the nodes of a request then start in the order in
// which they became ready.
const pathGrain = 100 * time.Microsecond

// begun counts a request of the plan, and looks at the paths after some.
func (p *profile) begun(g *plan.Graph) {
	if p.requests++; p.requests%pathsEvery == 0 || bits.OnesCount64(p.requests) == 1 {
		p.findPaths(g)
	}
}

// pathsEvery is after how many requests of a plan its paths are measured anew. 500 nodes take some microseconds.
const pathsEvery = 64

// findPaths notes in each node the time from its start to the end of the plan: along the longest path, as its nodes took
// on average, the waits of those that wait included.
func (p *profile) findPaths(g *plan.Graph) {
	for k := len(g.Order) - 1; k >= 0; k-- {
		n := &p.nodes[g.Order[k]]
		n.path = 0
		for _, next := range g.Nodes[g.Order[k]].Succs {
			n.path = max(n.path, p.nodes[next].path)
		}
		n.path += n.ran.mean()
	}
}
