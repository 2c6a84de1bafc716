package scheduler

import (
	"math/bits"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
)

// Jobs wait for a worker in the order of their latest start: the request's deadline, minus the time from the node to
// the end of the plan along its longest path. So a request with many heavy nodes in a row goes before one that has
// time, and old requests go before new ones, so that none starves. With first come, first served, in the order in
// which nodes become ready, a request would wait once for each heavy node of its path, behind many others each time.
// docs/placement.md#which-job-goes-first says why.

// patience bounds the deadline that counts for a request, from its arrival on: a request without a deadline, or with
// a distant one, still goes before requests that arrive so much later.
const patience = time.Second

// due returns the latest start of a job that begins with the node. Loop only.
func (r *run) due(node int) clock.Time {
	if !r.policy.byDeadline {
		return r.engine.loop.Now().Add(r.engine.patience) // among themselves, first come, first served
	}
	return r.State.deadline.Earlier(r.State.arrived.Add(r.engine.patience)).Add(-r.profile.nodes[node].path.Round(pathGrain))
}

// pathGrain is the least difference between two paths that changes the order. Smaller differences are noise: the
// nodes of a request then start in the order in which they became ready.
const pathGrain = 100 * time.Microsecond

// begun counts a request of the plan, and from time to time measures its paths.
func (p *profile) begun(g *plan.Graph) {
	if p.requests++; p.requests%pathsEvery == 0 || bits.OnesCount64(p.requests) == 1 {
		p.findPaths(g)
	}
}

// pathsEvery is the number of requests of a plan after which its paths are measured anew. 500 nodes take some
// microseconds.
const pathsEvery = 64

// findPaths notes in each node the time from its start to the end of the plan, along the longest path. It uses the
// average times of the nodes, including their waits.
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
