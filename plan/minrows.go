package plan

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/plan/expr"
)

// Below is what happens if an output has fewer rows than it should have: BelowMark, BelowError, or the name of the plan
// that answers instead.
type Below string

// The values of Below that are no plan.
const (
	BelowMark  Below = "mark"  // the answer says so
	BelowError Below = "error" // the request fails
)

// Plan returns the name of the plan that answers instead, "" if none does.
func (b Below) Plan() string {
	if b == BelowMark || b == BelowError {
		return ""
	}
	return string(b)
}

// minRowsMost is the highest minimum of an output.
const minRowsMost = 1_000_000

// minRows reads min_rows and below, if the plan has them.
func (r *reader) minRows(root *jsondoc.Value, d *document) {
	list, below := r.capable(root, d, "min_rows", MinRowsCapability), r.capable(root, d, "below", MinRowsCapability)
	if below != nil {
		switch d.below = Below(below.Str); {
		case below.Kind != jsondoc.String || !isName(below.Str):
			r.report(r.wrongEnum("", "below", `"mark", "error", or the name of a plan`, below))
		case list == nil:
			r.report(r.fail("", "below", "needs min_rows"))
		case below.Str == d.name:
			r.report(r.fail("", "below", "is this plan itself: name another one, or use \"mark\" or \"error\""))
		case d.below.Plan() != "" && d.lenient.answerBy == 0:
			r.report(r.fail("", "below", "names the plan %s, and so needs answer_by in lenient (answerBy in TypeScript), such as \"80%%\": that plan has the rest of the time", errtext.Quote(below.Str)))
		}
	}
	if list == nil {
		return
	}
	d.below = cmp.Or(d.below, BelowMark)
	if list.Kind != jsondoc.Array || len(list.Items) != len(d.outputs) {
		r.report(r.fail("", "min_rows", "must have a number for each output, of which there are %d", len(d.outputs)))
		return
	}
	d.minRows = make([]int, len(list.Items))
	for i := range list.Items {
		d.minRows[i] = int(r.within(&list.Items[i], "", element("min_rows", i), 0, minRowsMost))
	}
}

// CheckFallback returns why the plan that Below names cannot answer in place of g.
func (g *Graph) CheckFallback(fallback *Graph) error {
	outputs := func(g *Graph) string {
		if g.OutputNames == nil {
			return fmt.Sprintf("%d without names", len(g.Outputs))
		}
		return strings.Join(g.OutputNames, ", ")
	}
	if here, there := outputs(g), outputs(fallback); here != there {
		return fmt.Errorf("the outputs differ: %s, and there %s", here, there)
	}
	for i := range g.Outputs {
		here, there := g.Nodes[g.Outputs[i]].Entity, fallback.Nodes[fallback.Outputs[i]].Entity
		if here.TextIDs() != there.TextIDs() || here != nil && there != nil && here.Name != there.Name {
			return fmt.Errorf("the rows of output %s are %s, and there %s", g.OutputName(i), label(here), label(there))
		}
	}
	return nil
}

// counts notes the nodes of which an output with a minimum shows a page. No page may end before the minimum in every
// request.
func (c *compiler) counts() {
	c.graph.MinRows, c.graph.Below, c.graph.AnswerBy = c.doc.minRows, c.doc.below, c.doc.lenient.answerBy
	for i, least := range c.graph.MinRows {
		page := c.graph.page(c.graph.Outputs[i])
		if page == nil || least == 0 {
			continue
		}
		c.graph.Nodes[page.Inputs[0]].Counted = true
		if most := AddRows(page.Params.Int("offset"), page.Params.Int("count")); int64(least) > most {
			c.report(c.fail("", element("min_rows", i), "is %d, but node %s (%s) ends its page at row %d: a lower minimum, or a longer page",
				least, errtext.Quote(page.ID), page.Op, most))
		}
	}
}

// page returns the node whose page, with more columns perhaps, is an output; nil: the output shows all rows.
func (g *Graph) page(output int) *Node {
	for n := g.Nodes[output]; len(n.Inputs) == 1; n = g.Nodes[n.Inputs[0]] {
		switch {
		case n.OnError == OnErrorEmpty || n.OnError == OnErrorPartial || n.OnError == OnErrorFallback:
			return nil // A failure takes rows of the page away.
		case n.Schema.Pages:
			return n
		case !n.keepsRows():
			return nil
		}
	}
	return nil
}

// Short says that an output has fewer rows than it should have. Immutable; any goroutine.
type Short struct {
	Output  string // its name, or its number if the outputs have no names
	Index   int    // of the output
	Rows    int    // that it has; of a page, with those before and behind it
	MinRows int    // that it should have; no more than a page and those before it can have
}

// Short returns the outputs with fewer rows than they should have, in a request with these parameters. rows returns
// how many rows a node that is an output, or Counted, has made.
func (g *Graph) Short(params *expr.Params, rows func(node int) int) (all []Short) {
	for i, least := range g.MinRows {
		from := g.Outputs[i]
		if n := g.page(from); n != nil {
			count, noCount := n.Params.IntIn("count", params)
			offset, noOffset := n.Params.IntIn("offset", params)
			if noCount == nil && noOffset == nil { // A request without them has failed.
				from, least = n.Inputs[0], int(min(int64(least), AddRows(offset, count)))
			}
		}
		if made := rows(from); made < least {
			all = append(all, Short{Output: g.OutputName(i), Index: i, Rows: made, MinRows: least})
		}
	}
	return all
}
