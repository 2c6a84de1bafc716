package draw

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"github.com/rankd/rankd/trace"
)

const (
	barWidth  = 40
	nodesMost = 60 // of a waterfall that is not drawn in full
)

// writeWaterfall draws the nodes in the order in which they started, each with its waits and runs.
func (s *scene) writeWaterfall(out *strings.Builder, o Options) {
	if len(s.Nodes) == 0 {
		out.WriteString("The plan has no nodes.\n")
		return
	}
	service := onPath(s.service, len(s.Nodes))
	nodes, left := s.heaviest(o, service)
	total := duration(s.Request.Ended)
	table := [][]string{{"", "node", "op", "place", "rows", "wait", "run", "own", "0" + strings.Repeat(" ", max(1, barWidth-1-uniseg.StringWidth(total))) + total}}
	for _, i := range nodes {
		from, n := &s.Nodes[i], &s.nodes[i]
		mark, times := n.Critical, ""
		if mark == "" && service[i] {
			mark = "○"
		}
		if from.Ran() {
			times = bar(from, s.bodies[i], s.Request.Ended)
		}
		table = append(table, []string{mark, titles(from, 24), clip(from.Op, 24), n.Place, n.Rows, n.Wait, n.Run, n.Own, times})
	}
	writeTable(out, table)
	if left > 0 {
		fmt.Fprintf(out, "… %d lighter nodes left out; --full draws them\n", left)
	}
	out.WriteString("● on the critical path (latency)  ○ only on the path of service   · ready, waits to start  █ runs  ░ waits for Redis or a timer\n")
}

// heaviest returns the nodes to draw, by start, and how many are left out: the lightest, and none of a critical path
// unless that is too long itself. Nodes that never ran come last. service says which nodes are on the path of service.
func (s *scene) heaviest(o Options, service []bool) (nodes []int, left int) {
	for i := range s.Nodes {
		nodes = append(nodes, i)
	}
	if left = len(nodes) - nodesMost; o.Full || left < 0 {
		left = 0
	}
	if left > 0 {
		heavy := func(i int) bool { return s.critical(i) || service[i] }
		slices.SortStableFunc(nodes, func(a, b int) int {
			x, y := &s.Nodes[a], &s.Nodes[b]
			return cmp.Or(cmp.Compare(rank(heavy(a)), rank(heavy(b))), cmp.Compare(y.End-y.Ready, x.End-x.Ready))
		})
		nodes = nodes[:len(nodes)-left]
	}
	slices.SortFunc(nodes, func(a, b int) int {
		x, y := &s.Nodes[a], &s.Nodes[b]
		return cmp.Or(cmp.Compare(rank(x.Ran()), rank(y.Ran())), cmp.Compare(x.Start, y.Start), cmp.Compare(a, b))
	})
	return nodes, left
}

// rank puts what is so before what is not.
func rank(so bool) int {
	if so {
		return 0
	}
	return 1
}

// bar draws one node. A cell shows what took most of its time there.
func bar(n *trace.Node, bodies []trace.Slice, total time.Duration) string {
	var b strings.Builder
	for x := range barWidth {
		from, to := total*time.Duration(x)/barWidth, total*time.Duration(x+1)/barWidth
		overlap := func(start, end time.Duration) time.Duration { return max(0, min(end, to)-max(start, from)) }
		runs := time.Duration(0)
		for _, s := range bodies {
			runs += overlap(s.Start, s.End)
		}
		waits, alive := overlap(n.Ready, n.Start), overlap(n.Start, n.End)
		switch here := n.Start >= from && n.Start < to || x == barWidth-1 && n.Start >= to; {
		case alive == 0 && !here && waits == 0:
			b.WriteString(" ")
		case !here && waits > alive:
			b.WriteString("·")
		case runs*2 >= alive:
			b.WriteString("█")
		default:
			b.WriteString("░")
		}
	}
	return b.String()
}

// writeTable writes rows with columns of equal width. Times stand at the right of their column.
func writeTable(out *strings.Builder, table [][]string) {
	width := make([]int, len(table[0]))
	for _, row := range table {
		for c, text := range row {
			width[c] = max(width[c], uniseg.StringWidth(text))
		}
	}
	for _, row := range table {
		var line strings.Builder
		for c, text := range row {
			pad := strings.Repeat(" ", width[c]-uniseg.StringWidth(text))
			if c >= 4 && c <= 7 { // rows and times
				text = pad + text
			} else {
				text += pad
			}
			line.WriteString(text)
			if c < len(row)-1 {
				line.WriteString(strings.Repeat(" ", min(2, c+1)))
			}
		}
		out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}
