package explain

import (
	"fmt"
	"math"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// steps returns what each node did to a row on its way.
func (r *Run) steps(end at) []Step { return r.newSteps(end, make(map[at]bool)) }

// newSteps returns what each node did to a row on its way, without the steps reported before.
func (r *Run) newSteps(end at, told map[at]bool) (steps []Step) {
	way := r.way(end)
	from := 0
	for from < len(way) && told[way[from]] {
		from++
	}
	for _, here := range way {
		told[here] = true
	}
	for i := from; i < len(way); i++ {
		before := -1
		if i > 0 {
			before = way[i-1].pos
		}
		s := r.step(way[i], before)
		_, joined := r.from(way[i])
		for _, other := range joined {
			s.Joined = append(s.Joined, r.newSteps(other, told)...)
		}
		steps = append(steps, s)
	}
	return steps
}

// step returns what a node did to a row of its result, which was at that position of its input; -1: the node made it.
func (r *Run) step(here at, before int) Step {
	c, out := r.node(here.node)
	row := task.RowAt{Side: task.InResult, Pos: here.pos}
	reason := r.reason(here.node, row)
	if r.Rows[here.node].StoodIn {
		reason = task.Reason{Kind: task.Passed, Text: stoodIn(c.Node)}
	}
	if reason.Kind == "" {
		reason.Kind = r.usual(here, before)
	}
	if reason.Kind == task.Sorted && reason.Column == 0 {
		reason.Column = r.sortKey(here.node)
	}
	s := r.stepOf(here.node, row, &reason)
	s.Before, s.After, s.Of = before+1, here.pos+1, out.Len()
	if reason.Column != 0 && out.Batch.Has(reason.Column) {
		s.Value = &Value{valueOf(out, here.pos, reason.Column)}
	}
	return s
}

// stoodIn says what replaces the result of a failed node.
func stoodIn(n *plan.Node) string {
	switch n.OnError {
	case plan.OnErrorFallback:
		return "the node failed, and " + errtext.Text(n.Fallback.Title()) + " stood in for it"
	case plan.OnErrorSkip:
		return "the node failed, and its input stood in for its result"
	case plan.OnErrorNull:
		return "the node failed, and its columns are null"
	default:
		return "the node failed, and nothing stood in for its rows"
	}
}

// usual returns the kind of step that the shape of the result implies.
func (r *Run) usual(here at, before int) string {
	n := r.Graph.Nodes[here.node]
	spec := tasks.SpecOf(n)
	switch {
	case before < 0:
		return task.FromSource
	case (spec.Output == task.SameRows || spec.Output == task.Pick) && spec.Writes != nil && len(spec.Writes(n, r.Graph.Registry)) > 0:
		return task.Computed
	case spec.Output == task.Subset, spec.Output == task.Prefix, spec.Output == task.Window, spec.Output == task.Pick:
		return task.Kept
	case spec.Output == task.Permutation:
		return task.Sorted
	case spec.Output == task.Append, spec.Output == task.Merge:
		return task.Merged
	default:
		return task.Passed
	}
}

// sortKey returns the column by which a node orders its rows, or 0 if unknown.
func (r *Run) sortKey(node int) registry.KeyID {
	n := r.Graph.Nodes[node]
	spec := tasks.SpecOf(n)
	if spec.Output != task.Permutation || spec.Reads == nil {
		return 0
	}
	if keys := spec.Reads(n, r.Graph.Registry); len(keys) == 1 {
		return keys[0]
	}
	return 0
}

// valueAt returns the value of a row of a run of a node in a column, nil for null.
func (r *Run) valueAt(c *task.Ctx, out rowset.RowSet, row task.RowAt, key registry.KeyID) any {
	n := c.Node
	if row.Side != task.InResult {
		n = r.Graph.Nodes[r.before(n.Index, row.Side)]
	}
	value := valueOf(c.SideRows(out, row.Side), row.Pos, key)
	if id, ok := value.(int64); ok && key == registry.IDKey && n.Entity.TextIDs() {
		return r.idText(n, id)
	}
	return value
}

// stepOf returns a step with what a task says about a row.
func (r *Run) stepOf(node int, row task.RowAt, reason *task.Reason) Step {
	c, out := r.node(node)
	s := Step{
		Node: c.Node.ID, Op: c.Node.Op, Label: c.Node.Trace, Kind: reason.Kind, Text: reason.Text, Column: r.name(reason.Column),
		Tree: tree(reason.Tree), Instead: reason.Instead, Kept: reason.Limit,
	}
	if c.Node.Entity.TextIDs() {
		s.Instead = nil
		for _, id := range reason.Instead {
			s.InsteadTexts = append(s.InsteadTexts, r.idText(c.Node, id))
		}
	}
	if reason.Tree != nil && reason.Kind == task.Filtered {
		if culprit := reason.Tree.Culprit(); culprit != reason.Tree {
			s.Because = tree(culprit)
		}
	}
	if reason.Score != nil {
		s.Score = &Value{*reason.Score}
	}
	if reason.Lacks != nil {
		s.Lacks = &Value{*reason.Lacks}
	}
	for _, f := range reason.Fired {
		s.Fired = append(s.Fired, Fired{Rule: f.Rule, Tree: tree(f.Tree)})
	}
	if name := r.name(reason.By); name != "" {
		s.Values = append(s.Values, Named{Name: name, Value: Value{r.valueAt(c, out, row, reason.By)}})
	}
	for _, v := range reason.Values {
		named := Named{Name: v.Name, Value: Value{v.Value}}
		if v.Adds != nil {
			named.Adds = &Value{*v.Adds}
		}
		s.Values = append(s.Values, named)
	}
	return s
}

// loss returns what a node did to a row of a side whose id is not in its result.
func (r *Run) loss(node int, row task.RowAt) Step {
	c, out := r.node(node)
	in := c.SideRows(out, row.Side)
	reason := r.reason(node, row)
	switch shape := tasks.SpecOf(c.Node).Output; {
	case r.Rows[node].StoodIn:
		reason = task.Reason{Kind: task.FailedNode, Text: stoodIn(c.Node)}
	case reason.Kind != "":
	case shape == task.Expand:
		reason.Kind = task.Expanded
	case shape == task.Prefix, shape == task.Window:
		reason = r.cut(node, in, out, row.Pos)
	default:
		reason.Kind = task.Dropped
	}
	s := r.stepOf(node, row, &reason)
	s.Before, s.Of = row.Pos+1, in.Len()
	if reason.Rank > 0 {
		s.Before, s.Of = reason.Rank, reason.Of
	}
	return s
}

// cut explains a row before or after those that a prefix or a window has kept. A row after them gets the score of the
// nearest sort before it.
func (r *Run) cut(node int, in, out rowset.RowSet, pos int) task.Reason {
	reason := task.Reason{Kind: task.Cut, Rank: pos + 1, Of: in.Len(), Limit: out.Len()}
	if out.Len() > 0 {
		if from, ok := r.positionOf(node, 0, in, out.Row(0)); ok && pos < from {
			reason.Text = fmt.Sprintf("the first %d are passed over", from)
			return reason
		}
	}
	if reason.Column = r.sortedBy(r.before(node, 0)); reason.Column == 0 || !in.Batch.Has(reason.Column) || out.Len() == 0 {
		return reason
	}
	own, ownOK := number(valueOf(in, pos, reason.Column))
	last, lastOK := number(valueOf(out, out.Len()-1, reason.Column))
	if ownOK {
		reason.Score = &own
	}
	if ownOK && lastOK {
		lacks := math.Abs(last - own)
		reason.Lacks = &lacks
	}
	return reason
}

// sortedBy returns the column by which the rows of a node are ordered, or 0 if unknown.
func (r *Run) sortedBy(node int) registry.KeyID {
	for {
		n := r.Graph.Nodes[node]
		switch tasks.SpecOf(n).Output {
		case task.Permutation:
			return r.sortKey(node)
		case task.SameRows, task.Subset, task.Prefix, task.Window, task.PassThrough:
			node = n.Inputs[0]
		default:
			return 0
		}
	}
}

// number returns a value as a double.
func number(value any) (float64, bool) {
	switch v := value.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	default:
		return 0, false
	}
}
