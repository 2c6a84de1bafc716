package plan

import (
	"strings"

	"github.com/rankd/rankd/internal/errtext"
)

// acyclic finds the order of the nodes, and refuses a graph with a cycle. Nodes that never become ready depend on a cycle. The error
// names one cycle.
func (c *compiler) acyclic() *Error {
	nodes := c.graph.Nodes
	waiting := make([]int, len(nodes))
	if c.graph.Order = c.graph.run(waiting); len(c.graph.Order) == len(nodes) {
		return nil
	}
	cycle := c.graph.findCycle(waiting)
	first := nodes[cycle[0]]
	return c.fail(first.ID, element("nodes", first.Index), "depends on itself: %s", describeCycle(nodes, cycle))
}

// run returns the nodes in an order in which they can run (Kahn's algorithm), including those on demand. It leaves in
// waiting, for each node, how many of its predecessors never settle.
func (g *Graph) run(waiting []int) (order []int) {
	after := g.after()
	order = make([]int, 0, len(g.Nodes))
	for i, n := range g.Nodes {
		if waiting[i] = len(g.Before(n)); waiting[i] == 0 {
			order = append(order, i)
		}
	}
	for done := 0; done < len(order); done++ {
		for _, next := range after[order[done]] {
			if waiting[next]--; waiting[next] == 0 {
				order = append(order, next)
			}
		}
	}
	return order
}

// findCycle returns the nodes of one cycle in the order of their edges. A node that waits has a predecessor that
// waits, so walking back must meet a node twice.
func (g *Graph) findCycle(waiting []int) []int {
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
		at = g.waitsFor(at, waiting)
	}
}

func (g *Graph) waitsFor(node int, waiting []int) int {
	for _, before := range g.Before(g.Nodes[node]) {
		if waiting[before] > 0 {
			return before
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
		b.WriteString(errtext.Quote(nodes[node].ID) + " → ")
	}
	b.WriteString(errtext.Quote(nodes[cycle[0]].ID))
	return b.String()
}
