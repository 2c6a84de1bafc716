package scheduler

import (
	"time"

	"github.com/rankd/rankd/plan"
)

// A chain is a run of computing nodes of which each is the only reader of the one before. Offloaded
// from some node on, it is one job: one way to the pool and back for all its nodes. A chain is
// split where a node is an output, waits, is lenient, is Expensive, or may not run inline by the plan.

// findChains notes in each node of p which node follows it in its chain.
func (p *profile) findChains(g *plan.Graph) {
	followed := make([]bool, len(g.Nodes)) // nodes that follow one
	for i, node := range g.Nodes {
		n := &p.nodes[i]
		n.next, n.length = -1, 1
		if len(node.Succs) != 1 || node.IsOutput {
			continue
		}
		if next := node.Succs[0]; g.Nodes[next].Deps == 1 && p.fuses(g, i) && p.fuses(g, next) {
			n.next, followed[next] = int32(next), true
		}
	}
	var chain []int
	for i := range g.Nodes {
		if followed[i] {
			continue
		}
		chain = chain[:0]
		for at := int32(i); at >= 0; at = p.nodes[at].next {
			chain = append(chain, int(at))
		}
		for k := len(chain) - 2; k >= 0; k-- {
			n, next := &p.nodes[chain[k]], &p.nodes[chain[k+1]]
			n.length = next.length + 1
			n.timeoutMin = earlierTimeout(next.timeoutMin, g.Nodes[chain[k+1]].Timeout)
		}
	}
}

// fuses reports whether a node may be part of a chain.
func (p *profile) fuses(g *plan.Graph, node int) bool {
	n, hint := &p.nodes[node], g.Nodes[node].Inline
	return n.there == onPool && !n.spec.Expensive && !g.Nodes[node].Lenient() && (hint == nil || *hint)
}

// earlierTimeout returns the lesser of two timeouts, of which zero means none.
func earlierTimeout(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
