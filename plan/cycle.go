package plan

import (
	"strings"

	"github.com/rankd/rankd/internal/excerpt"
)

// acyclic refuses a graph with a cycle (Kahn's algorithm). Nodes that never become ready
// depend on a cycle. The error names one cycle.
func (c *compiler) acyclic() *Error {
	nodes := c.graph.Nodes
	waiting := make([]int, len(nodes)) // nodes before it that have not settled
	after := c.after()
	ready := make([]int, 0, len(nodes))
	for i, n := range nodes {
		if waiting[i] = len(c.graph.Before(n)); waiting[i] == 0 {
			ready = append(ready, i)
		}
	}
	for done := 0; done < len(ready); done++ {
		for _, next := range after[ready[done]] {
			if waiting[next]--; waiting[next] == 0 {
				ready = append(ready, next)
			}
		}
	}
	if len(ready) == len(nodes) {
		return nil
	}
	cycle := c.findCycle(waiting)
	first := nodes[cycle[0]]
	return c.fail(first.ID, element("nodes", first.Index), "depends on itself: %s", describeCycle(nodes, cycle))
}

// findCycle returns the nodes of one cycle in the order of their edges. Before a node that waits
// is one that waits, so walking back must meet a node twice.
func (c *compiler) findCycle(waiting []int) []int {
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
		at = c.waitsFor(at, waiting)
	}
}

func (c *compiler) waitsFor(node int, waiting []int) int {
	for _, before := range c.graph.Before(c.graph.Nodes[node]) {
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
		b.WriteString(excerpt.Quote(nodes[node].ID) + " → ")
	}
	b.WriteString(excerpt.Quote(nodes[cycle[0]].ID))
	return b.String()
}
