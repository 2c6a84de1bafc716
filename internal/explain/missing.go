package explain

import (
	"cmp"
	"slices"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task"
)

// A gone is a node with an id on one of its sides but not in its result.
type gone struct {
	node  int
	row   task.RowAt // the first such row
	depth int        // of the node, from the sources
	aside bool       // none of its rows can become a row of an output: only a join's right side has it
}

// missing explains an id that no output has.
func (r *Run) missing(it *item) Missing {
	m := Missing{ID: it.id, Text: it.text, Kind: NeverACandidate}
	losses, stopped := r.losses(it)
	if len(losses) == 0 {
		if stopped >= 0 {
			n := r.Graph.Nodes[stopped]
			m.Kind, m.At = DidNotRun, &Step{Node: n.ID, Op: n.Op, Label: n.Trace, Kind: DidNotRun}
		}
		return m
	}
	r.preferOtherSide(losses)
	first := losses[0]
	step := r.loss(first.node, first.row)
	m.Kind, m.At = step.Kind, &step
	m.Steps = r.steps(at{r.before(first.node, first.row.Side), first.row.Pos})
	for _, l := range losses[1:] {
		m.Also = append(m.Also, r.loss(l.node, l.row))
	}
	return m
}

// preferOtherSide puts first the loss that explains the present first one. A node that keeps only rows whose ids
// another node has may have dropped the row because that other node had lost it. Then that loss counts.
func (r *Run) preferOtherSide(losses []gone) {
	for {
		node := losses[0].node
		c, out := r.node(node)
		spec := tasks.SpecOf(c.Node)
		byID := slices.Contains(columnsOf(r.Graph, node, spec.RefReads), registry.IDKey) && slices.Contains(columnsOf(r.Graph, node, spec.Reads), registry.IDKey)
		if spec.Output != task.Pick || !byID || losses[0].row.Side >= len(c.Node.Inputs) {
			return
		}
		id := c.SideRows(out, losses[0].row.Side).ID(losses[0].row.Pos)
		before := make([]bool, len(r.Graph.Nodes)) // nodes that lead to a reference without the id
		for i, ref := range c.Node.Refs {
			if find(c.Refs[i], id) < 0 {
				r.markBefore(before, ref)
			}
		}
		i := -1
		for k, l := range losses {
			if before[l.node] && !r.expands(l.node) && (i < 0 || nearer(l, losses[i]) < 0) {
				i = k
			}
		}
		if i < 0 {
			return
		}
		found := losses[i]
		copy(losses[1:i+1], losses[:i])
		losses[0] = found
	}
}

// markBefore marks a node, and all on a way to it.
func (r *Run) markBefore(marks []bool, node int) {
	if marks[node] {
		return
	}
	marks[node] = true
	n := r.Graph.Nodes[node]
	for s := range len(n.Inputs) + len(n.Refs) {
		r.markBefore(marks, r.before(node, s))
	}
	if n.Fallback != nil {
		r.markBefore(marks, n.Fallback.Index)
	}
}

// expands reports whether a node replaces the rows of its input with others.
func (r *Run) expands(node int) bool { return tasks.SpecOf(r.Graph.Nodes[node]).Output == task.Expand }

// losses returns the nodes that lead to an output and dropped the id, the nearest to an output first. Nodes that
// replace their rows with others come last, followed by those whose rows are only looked up. There are none if the id
// is only among such rows. stopped is a node that has the id in an input but no result, or -1.
func (r *Run) losses(it *item) (losses []gone, stopped int) {
	stopped = -1
	depths, candidates := r.depths(), r.candidates()
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
				if before := r.before(node, s); candidates[before] && r.Rows[before].Ran && it.in(r.Graph.Nodes[before], r.Rows[before].Out) >= 0 {
					stopped = node
				}
			}
			continue
		}
		if it.in(c.Node, out) >= 0 {
			continue
		}
		for s := range c.Sides() {
			if pos := it.in(r.Graph.Nodes[r.before(node, s)], c.SideRows(out, s)); pos >= 0 {
				losses = append(losses, gone{node, task.RowAt{Side: s, Pos: pos}, depth, !candidates[node] || !passes(c.Node, s)})
				break
			}
		}
	}
	if !slices.ContainsFunc(losses, func(g gone) bool { return !g.aside }) {
		return nil, stopped
	}
	last := func(g gone) int {
		switch {
		case g.aside:
			return 2
		case r.expands(g.node):
			return 1
		}
		return 0
	}
	slices.SortFunc(losses, func(a, b gone) int {
		return cmp.Or(cmp.Compare(last(a), last(b)), nearer(a, b))
	})
	return losses, stopped
}

// nearer orders losses by how near to an output they are.
func nearer(a, b gone) int { return cmp.Or(cmp.Compare(b.depth, a.depth), cmp.Compare(a.node, b.node)) }

// candidates reports for each node whether its rows may become rows of an output.
func (r *Run) candidates() []bool {
	marks := make([]bool, len(r.Graph.Nodes))
	var visit func(node int)
	visit = func(node int) {
		if marks[node] {
			return
		}
		marks[node] = true
		n := r.Graph.Nodes[node]
		for s := range len(n.Inputs) + len(n.Refs) {
			if passes(n, s) {
				visit(r.before(node, s))
			}
		}
		if n.Fallback != nil {
			visit(n.Fallback.Index)
		}
	}
	for _, output := range r.Graph.Outputs {
		visit(output)
	}
	return marks
}

// depths returns the length of the longest way from a source to each node, or -1 for a node that does not lead to an
// output.
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
