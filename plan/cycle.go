package plan

import (
	"strings"

	"github.com/rankd/rankd/internal/excerpt"
)

// acyclic refuses a graph with a cycle. Nodes that never become ready depend on a cycle. The error
// names one cycle.
func (c *compiler) acyclic() *Error {
	nodes := c.graph.Nodes
	waiting := make([]int, len(nodes))
	if order := c.graph.run(waiting); len(order) == len(nodes) {
		return nil
	}
	cycle := findCycle(nodes, waiting)
	first := nodes[cycle[0]]
	return c.fail(first.ID, element("nodes", first.Index), "depends on itself: %s", describeCycle(nodes, cycle))
}

// order returns the indices of the nodes, each behind its dependencies.
func (g *Graph) order() []int { return g.run(make([]int, len(g.Nodes))) }

// run returns the nodes in an order in which they can run (Kahn's algorithm), and leaves in waiting,
// one per node, how many dependencies never complete.
func (g *Graph) run(waiting []int) (order []int) {
	for i, n := range g.Nodes {
		waiting[i] = n.Deps
	}
	order = append(make([]int, 0, len(g.Nodes)), g.Sources...)
	for done := 0; done < len(order); done++ {
		for _, succ := range g.Nodes[order[done]].Succs {
			if waiting[succ]--; waiting[succ] == 0 {
				order = append(order, succ)
			}
		}
	}
	return order
}

// findCycle returns the nodes of one cycle in the order of their edges. A node that waits
// has a dependency that waits, so following dependencies must meet a node twice.
func findCycle(nodes []*Node, waiting []int) []int {
	at := 0
	for waiting[at] == 0 {
		at++
	}
	var trail []int
	position := make(map[int]int) // in trail
	for {
		if start, met := position[at]; met {
			cycle := trail[start:]
			reverse := make([]int, len(cycle))
			for i, node := range cycle {
				reverse[len(cycle)-1-i] = node
			}
			return reverse
		}
		position[at] = len(trail)
		trail = append(trail, at)
		at = waitingDependency(nodes[at], waiting)
	}
}

func waitingDependency(n *Node, waiting []int) int {
	for _, list := range [][]int{n.Inputs, n.Refs} {
		for _, dep := range list {
			if waiting[dep] > 0 {
				return dep
			}
		}
	}
	panic("plan: a node waits for nothing")
}

// cycleLimit bounds how many nodes of a cycle an error lists.
const cycleLimit = 8

func describeCycle(nodes []*Node, cycle []int) string {
	var b strings.Builder
	for i, node := range cycle {
		if i == cycleLimit {
			b.WriteString("… → ")
			break
		}
		b.WriteString(excerpt.Quote(nodes[node].ID) + " → ")
	}
	b.WriteString(excerpt.Quote(nodes[cycle[0]].ID))
	return b.String()
}
