package svg

import (
	"fmt"
	"slices"
	"time"

	"github.com/rivo/uniseg"

	"github.com/rankd/rankd/trace"
	"github.com/rankd/rankd/trace/caption"
)

// measures are the sizes of a graph's parts, in CSS pixels.
type measures struct {
	columns                    int
	boxWidth, boxHeight        float64
	gutter, lane, between, top float64 // between columns, between rows, between bands, above the first band
	size                       float64 // of texts; the style sheet has it, too
	class                      string
}

// largeGraph is how many nodes a graph has from which on its boxes are small.
const largeGraph = 60

var (
	roomy   = measures{columns: 6, boxWidth: 170, boxHeight: 58, gutter: 34, lane: 16, between: 22, top: 6, size: 11, class: "graph"}
	compact = measures{columns: 8, boxWidth: 130, boxHeight: 40, gutter: 22, lane: 10, between: 16, top: 6, size: 9.5, class: "graph compact"}
)

// Graph draws the plan of a trace: a box per node with its id, op, place, rows, own time and share of the request.
func Graph(t *trace.Trace) string {
	m := roomy
	if len(t.Nodes) >= largeGraph {
		m = compact
	}
	inputs := make([][]int, len(t.Nodes))
	for i := range t.Nodes {
		inputs[i] = slices.Compact(slices.Sorted(slices.Values(t.Nodes[i].Inputs)))
	}
	g := arrange(inputs, m.columns)
	p := plane{measures: m, grid: g}
	p.layBands()
	onPath, own := critical(t), t.Own()
	next := make(map[[2]int]bool) // edges of the critical path
	steps := t.CriticalPath(trace.Latency).Steps
	for k := 1; k < len(steps); k++ {
		next[[2]int{steps[k-1].Node, steps[k].Node}] = true
	}

	var d document
	d.begin(m.class, fmt.Sprintf("The plan %s as a graph of %d nodes", caption.Name(t.Plan, 60), len(t.Nodes)), p.height)
	for _, crit := range [...]bool{false, true} { // critical edges lie above the others
		for to := range inputs {
			for _, from := range inputs[to] {
				if next[[2]int{from, to}] == crit {
					d.add(`<path class="edge%s" data-from="%d" data-to="%d" d="%s"/>`+"\n", critClass(crit), from, to, p.edge(from, to))
				}
			}
		}
	}
	for i := range t.Nodes {
		p.box(&d, t, i, own[i], onPath[i])
	}
	d.add("</svg>\n")
	return d.String()
}

// box draws a node.
func (p *plane) box(d *document, t *trace.Trace, i int, own time.Duration, crit bool) {
	n := &t.Nodes[i]
	x, y := p.corner(i)
	d.add(`<g class="node %s%s" data-n="%d" tabindex="0">`, class(n.Place), critClass(crit), i)
	d.add(`<rect class="box" x="%s" y="%s" width="%s" height="%s" rx="4"/>`, number(x), number(y), number(p.boxWidth), number(p.boxHeight))
	d.add(`<rect class="mark" x="%s" y="%s" width="4" height="%s"/>`+"\n", number(x), number(y), number(p.boxHeight))
	left, right := x+10, x+p.boxWidth-6
	room := cells(right-left, p.size)
	// A line has a text at the left, which is cut to what the text at the right leaves.
	line := func(k int, classes, text, atRight string) {
		base := y + p.boxHeight*(float64(k)+0.85)/3.4
		atRight = fit(atRight, room-4)
		text = fit(text, room-uniseg.StringWidth(atRight)-1)
		d.text(left, base, classes, "", text)
		d.text(right, base, "soft", "end", atRight)
	}
	if !n.Ran() {
		line(0, "bold", caption.Titles(n, 60), "")
		line(1, "soft", n.Op, string(n.Status))
	} else {
		line(0, "bold", caption.Titles(n, 60), caption.Share(n.Run(), t.Request.Ended))
		op, place := n.Op, caption.Place(t, n)
		if uniseg.StringWidth(op+" "+place) > room {
			op = caption.Op(n)
		}
		line(1, "", op, place)
		line(2, "soft", caption.Rows(n), caption.Time(own))
	}
	d.add("</g>\n")
}
