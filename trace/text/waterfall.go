package text

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"github.com/rankd/rankd/trace"
	"github.com/rankd/rankd/trace/caption"
)

const (
	barWidth  = 40
	nodesMost = 60 // of a waterfall that is not drawn in full
)

// waterfall draws the nodes in the order in which they started, each with its waits and runs.
func waterfall(out *strings.Builder, t *trace.Trace, o Options) {
	if len(t.Nodes) == 0 {
		out.WriteString("The plan has no nodes.\n")
		return
	}
	marks := pathMarks(t)
	nodes, left := chosen(t, marks, o)
	bodies, own := bodiesOf(t), t.Own()
	table := [][]string{{"", "node", "op", "place", "rows", "wait", "run", "own", ""}}
	for _, i := range nodes {
		n := &t.Nodes[i]
		row := []string{marks[i], caption.Titles(n, 24), caption.Name(n.Op, 24), caption.Place(t, n), caption.Rows(n), "", "", "", ""}
		if n.Ran() {
			row[5], row[6], row[7] = caption.Time(n.Wait()), caption.Time(n.Run()), caption.Time(own[i])
			row[8] = bar(n, bodies[i], t.Request.Ended)
		}
		table = append(table, row)
	}
	total := caption.Time(t.Request.Ended)
	table[0][8] = "0" + strings.Repeat(" ", max(1, barWidth-1-uniseg.StringWidth(total))) + total
	writeTable(out, table)
	if left > 0 {
		fmt.Fprintf(out, "… %d lighter nodes left out; --full draws them\n", left)
	}
	out.WriteString("● on the critical path (latency)  ○ only on the path of service   · ready, waits to start  █ runs  ░ waits for Redis or a timer\n")
}

// pathMarks returns the mark of each node that is on a critical path.
func pathMarks(t *trace.Trace) []string {
	marks := make([]string, len(t.Nodes))
	for _, s := range t.CriticalPath(trace.Service).Steps {
		marks[s.Node] = "○"
	}
	for _, s := range t.CriticalPath(trace.Latency).Steps {
		marks[s.Node] = "●"
	}
	return marks
}

// chosen returns the nodes to draw, by start, and how many are left out: the lightest, and none of a critical path
// unless that is too long itself. Nodes that never ran come last.
func chosen(t *trace.Trace, marks []string, o Options) (nodes []int, left int) {
	for i := range t.Nodes {
		nodes = append(nodes, i)
	}
	if !o.Full && len(nodes) > nodesMost {
		weight := func(i int) time.Duration { return t.Nodes[i].End - t.Nodes[i].Ready }
		onPath := func(i int) int {
			if marks[i] == "" {
				return 1
			}
			return 0
		}
		slices.SortStableFunc(nodes, func(a, b int) int {
			return cmp.Or(cmp.Compare(onPath(a), onPath(b)), cmp.Compare(weight(b), weight(a)))
		})
		left = len(nodes) - nodesMost
		nodes = nodes[:nodesMost]
	}
	ran := func(i int) int {
		if t.Nodes[i].Ran() {
			return 0
		}
		return 1
	}
	slices.SortFunc(nodes, func(a, b int) int {
		return cmp.Or(cmp.Compare(ran(a), ran(b)), cmp.Compare(t.Nodes[a].Start, t.Nodes[b].Start), cmp.Compare(a, b))
	})
	return nodes, left
}

// bodiesOf returns the slices of each node.
func bodiesOf(t *trace.Trace) [][]trace.Slice {
	all := make([][]trace.Slice, len(t.Nodes))
	for _, track := range t.Tracks {
		for _, s := range track.Slices {
			if s.Kind == trace.NodeSlice {
				all[s.Node] = append(all[s.Node], s)
			}
		}
	}
	return all
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
