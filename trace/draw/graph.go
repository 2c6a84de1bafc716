package draw

import (
	"fmt"

	"github.com/rivo/uniseg"

	"github.com/rankd/rankd/trace"
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

// Graph returns a picture of the plan of a trace, as SVG: a box per node with its id, op, place, rows, own time and share of the
// request.
func Graph(t *trace.Trace) string { return alone(newScene(t).graph()) }

// graph draws the plan.
func (s *scene) graph() string {
	m := roomy
	if len(s.Nodes) >= largeGraph {
		m = compact
	}
	inputs := s.inputs()
	p := plane{measures: m, grid: arrange(inputs, m.columns)}
	p.layBands()
	next := make(map[[2]int]bool) // edges of the critical path
	steps := s.latency.Steps
	for k := 1; k < len(steps); k++ {
		next[[2]int{steps[k-1].Node, steps[k].Node}] = true
	}

	var d document
	d.begin(m.class, fmt.Sprintf("The plan %s as a graph of %d nodes", clip(s.Plan, 60), len(s.Nodes)), p.height)
	for _, crit := range [...]bool{false, true} { // critical edges lie above the others
		for to := range inputs {
			for _, from := range inputs[to] {
				if next[[2]int{from, to}] == crit {
					d.add(`<path class="edge%v" data-from="%d" data-to="%d" d="%v"/>`+"\n", critClass(crit), from, to, p.edge(from, to))
				}
			}
		}
	}
	for i := range s.Nodes {
		p.box(&d, s, i)
	}
	d.add("</svg>\n")
	return d.String()
}

// box draws a node.
func (p *plane) box(d *document, s *scene, i int) {
	from, n := &s.Nodes[i], &s.nodes[i]
	x, y := p.corner(i)
	d.add(`<g class="node %v%v" data-n="%d" tabindex="0">`, placeClass(from.Place), critClass(s.critical(i)), i)
	d.add(`<rect class="box" x="%v" y="%v" width="%v" height="%v" rx="4"/>`, x, y, p.boxWidth, p.boxHeight)
	d.add(`<rect class="mark" x="%v" y="%v" width="4" height="%v"/>`+"\n", x, y, p.boxHeight)
	if n.Fails != "" {
		d.add("<title>%v</title>\n", n.Fails)
	}
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
	line(0, "bold", n.ID, n.Share)
	if !from.Ran() {
		line(1, "soft", from.Op, n.Place)
	} else {
		op := from.Op
		if uniseg.StringWidth(op+" "+n.Place) > room {
			op = opName(from)
		}
		line(1, "", op, n.Place)
		line(2, "soft", n.Rows, n.Own)
	}
	d.add("</g>\n")
}
