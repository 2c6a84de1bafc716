package explain

import (
	"cmp"
	"slices"

	"github.com/rankd/rankd/task"
)

// A gone is a node with an id in one of its sides and not in its result.
type gone struct {
	node  int
	row   task.RowAt // the first such row
	depth int        // of the node, from the sources
}

// missing explains an id that no output has.
func (r *Run) missing(id int64) Missing {
	m := Missing{ID: id, Kind: NeverACandidate}
	losses, stopped := r.losses(id)
	if len(losses) == 0 {
		if stopped >= 0 {
			n := r.Graph.Nodes[stopped]
			m.Kind, m.At = DidNotRun, &Step{Node: n.ID, Op: n.Op, Kind: DidNotRun}
		}
		return m
	}
	first := losses[0]
	step := r.loss(first.node, first.row)
	m.Kind, m.At = step.Kind, &step
	m.Steps = r.steps(at{r.before(first.node, first.row.Side), first.row.Pos})
	for _, l := range losses[1:] {
		m.Also = append(m.Also, r.loss(l.node, l.row))
	}
	return m
}

// losses returns the nodes that lead to an output and at which the id went, the nearest to an output first; nodes
// that put other rows in the place of theirs come last. stopped is a node that has the id in an input and no result,
// -1 if there is none.
func (r *Run) losses(id int64) (losses []gone, stopped int) {
	stopped = -1
	depths := r.depths()
	for node, depth := range depths {
		if depth < 0 {
			continue
		}
		c, out := r.node(node)
		if !r.Rows[node].Ran && c.Node.OnDemand {
			continue // Nobody needed it.
		}
		if !r.Rows[node].Ran {
			for s := range len(c.Node.Inputs) + len(c.Node.Refs) {
				if before := r.before(node, s); r.Rows[before].Ran && find(r.Rows[before].Out, id) >= 0 {
					stopped = node
				}
			}
			continue
		}
		if find(out, id) >= 0 {
			continue
		}
		for s := range c.Sides() {
			if pos := find(c.SideRows(out, s), id); pos >= 0 {
				losses = append(losses, gone{node, task.RowAt{Side: s, Pos: pos}, depth})
				break
			}
		}
	}
	expands := func(g gone) int {
		if task.SpecOf(r.Graph.Nodes[g.node]).Output == task.Expand {
			return 1
		}
		return 0
	}
	slices.SortFunc(losses, func(a, b gone) int {
		return cmp.Or(cmp.Compare(expands(a), expands(b)), cmp.Compare(b.depth, a.depth), cmp.Compare(a.node, b.node))
	})
	return losses, stopped
}

// depths returns the length of the longest way from a source to each node, -1 for a node that leads to no output.
func (r *Run) depths() []int {
	depths := make([]int, len(r.Graph.Nodes))
	for i := range depths {
		depths[i] = -1
	}
	var visit func(node int) int
	visit = func(node int) int {
		if depths[node] >= 0 {
			return depths[node]
		}
		depth := 0
		n := r.Graph.Nodes[node]
		for s := range len(n.Inputs) + len(n.Refs) {
			depth = max(depth, visit(r.before(node, s))+1)
		}
		if n.Fallback != nil {
			depth = max(depth, visit(n.Fallback.Index)+1)
		}
		depths[node] = depth
		return depth
	}
	for _, output := range r.Graph.Outputs {
		visit(output)
	}
	return depths
}
