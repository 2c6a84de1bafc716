package draw

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"github.com/rankd/rankd/trace"
)

const (
	widthMost = 120 // columns of a terminal that names may fill
	linesMost = 160 // lines of a timeline that is not drawn in full
	lanesMost = 8   // calls in flight that a drawing tells apart
	timeWidth = 9
)

// A column stands for a thread, for all connections to Redis, for those to services, or for all sleeps. One goroutine at a time.
type column struct {
	name  string
	left  int // first cell
	width int
	lanes int // cells for calls and jobs under way, at the left, two per lane
}

// text returns the first cell of texts.
func (c *column) text() int { return c.left + 2*c.lanes }

// A drawing is a timeline on a grid of cells. One goroutine at a time.
type drawing struct {
	*scene
	names   int // width of a node's name
	columns []column
	column  []int // of each row; -1: not drawn
	lane    []int // of each row, in its column
	lines   []line
	texts   []map[int]string // of each line, by column
	under   []underWay
}

// An underWay is a call, a job or a sleep between two lines. Immutable.
type underWay struct {
	flow         int
	from, to     int // lines
	at           int // cell
	begins, ends time.Duration
}

// writeTimeline draws the trace as lines, with one column per thread, one for sleeps, one for Redis and one for services.
func (s *scene) writeTimeline(out *strings.Builder, o Options) {
	lines := s.lines()
	for names := 20; ; names -= 4 {
		if d := newDrawing(s, lines, names); d.width() <= widthMost || names <= 12 {
			d.write(out, o)
			return
		}
	}
}

func newDrawing(s *scene, lines []line, names int) *drawing {
	d := &drawing{scene: s, lines: lines, names: names}
	d.layColumns()
	for k := range lines {
		d.texts = append(d.texts, d.textsOf(&lines[k]))
	}
	d.fitColumns()
	d.follow()
	return d
}

// layColumns finds the column of each row, and its lane there. The critical path has that of the first thread.
func (d *drawing) layColumns() {
	d.column, d.lane = make([]int, len(d.rows)), make([]int, len(d.rows))
	for k := 1; k < len(d.rows); k++ {
		d.column[k] = -1
		switch r := &d.rows[k]; {
		case r.kind == trace.RedisTrack || r.kind == trace.HTTPTrack || r.kind == sleepRow:
		case len(r.spans) > 0 || k == 1:
			d.column[k] = len(d.columns)
			c := column{name: fitTrack(r.name, d.names)}
			if r.kind == trace.CPUTrack || r.kind == trace.IOTrack {
				c.lanes = 1
			}
			d.columns = append(d.columns, c)
		}
	}
	if len(d.columns) == 0 { // a trace without threads
		d.columns = append(d.columns, column{name: "Loop"})
	}
	for _, shared := range [...]struct {
		kind trace.TrackKind
		name string
	}{{sleepRow, "Timers"}, {trace.RedisTrack, "Redis"}, {trace.HTTPTrack, "HTTP"}} {
		c := column{name: shared.name}
		for k, r := range d.rows {
			if r.kind == shared.kind {
				d.column[k], d.lane[k] = len(d.columns), min(c.lanes, lanesMost-1)
				c.lanes = d.lane[k] + 1
			}
		}
		if c.lanes > 0 {
			d.columns = append(d.columns, c)
		}
	}
}

// fitColumns gives each column the width of its texts.
func (d *drawing) fitColumns() {
	left := timeWidth + 2
	for c := range d.columns {
		col, widest := &d.columns[c], 0
		for _, texts := range d.texts {
			widest = max(widest, uniseg.StringWidth(texts[c]))
		}
		col.left, col.width = left, max(widest+2*col.lanes, uniseg.StringWidth(col.name))+4
		left += col.width
	}
}

func (d *drawing) width() int {
	last := d.columns[len(d.columns)-1]
	return last.left + last.width - 4
}

// textsOf returns the texts of a line by column.
func (d *drawing) textsOf(l *line) map[int]string {
	texts := make(map[int]string)
	if l.gap != "" {
		texts[0] = l.gap
		return texts
	}
	before := instant{row: -1}
	for _, i := range l.instants {
		c := max(0, d.column[i.row]) // a track without slices has no column of its own
		text := d.text(i)
		sameNode := before.node == i.node && before.row == i.row
		switch {
		case text == "" || i.word == sent && texts[c] == text || i.word == replied && l.has(goesOn) || i.word == asks && before.word == asks:
			continue
		case i.word == ends && i.text == "done" && sameNode && strings.HasSuffix(texts[c], "starts"):
			texts[c] = strings.TrimSuffix(texts[c], "starts") + "runs " + duration(i.at-d.bodies[i.node][0].Start)
		case texts[c] != "" && sameNode:
			texts[c] += ", " + i.text
		case texts[c] != "":
			texts[c] += ", " + text
		default:
			texts[c] = text
		}
		before = i
	}
	return texts
}

// text returns the text of an instant alone.
func (d *drawing) text(i instant) string {
	switch i.word {
	case handsOver, takesBack, fires:
		text := i.text + title(&d.Nodes[i.node], d.names)
		if n := d.Nodes[i.node].Fused; n > 1 && i.word != fires {
			text += fmt.Sprintf(" +%d", n-1)
		}
		return text
	case starts:
		return nodeName(&d.Nodes[i.node], d.names) + " " + i.text
	case asks, goesOn, ends:
		return title(&d.Nodes[i.node], d.names) + " " + i.text
	default:
		return i.text
	}
}

// follow finds the lines on which calls, jobs and sleeps leave and come back.
func (d *drawing) follow() {
	all := make([]underWay, len(d.flows))
	for k, f := range d.flows {
		away := f.points[1]
		all[k] = underWay{flow: k, from: -1, to: len(d.lines), at: -1, begins: away.at}
		if c := d.column[away.row]; c >= 0 && d.columns[c].lanes > 0 {
			all[k].at = d.columns[c].left + 2*d.lane[away.row]
		}
		if len(f.points) > 2 && f.Kind != trace.TimerFlow { // A body that slept goes on at once.
			all[k].ends = f.points[2].at
		}
	}
	for k, l := range d.lines {
		for _, i := range l.instants {
			if i.flow < 0 {
				continue
			}
			u := &all[i.flow]
			if u.from < 0 {
				u.from = k
			}
			if i.word == goesOn || i.word == takesBack || i.word == givenUp {
				u.to = k
			}
		}
	}
	d.under = slices.DeleteFunc(all, func(u underWay) bool { return u.at < 0 || u.from < 0 })
}

// write writes the heading and the lines, without the middle of a long timeline.
func (d *drawing) write(out *strings.Builder, o Options) {
	heading := new(gridLine)
	unit, size, digits := scale(d.Request.Ended)
	heading.put(timeWidth-uniseg.StringWidth(unit), unit)
	for _, c := range d.columns {
		heading.put(c.left, c.name)
	}
	heading.write(out)
	out.WriteString(strings.Repeat("─", d.width()) + "\n")
	for k := range d.lines {
		if left := len(d.lines) - linesMost; left > 0 && !o.Full && k >= linesMost/2 && k < linesMost/2+left {
			if k == linesMost/2 {
				fmt.Fprintf(out, "%*s  … %d lines left out; --full draws them …\n", timeWidth, "", left)
			}
			continue
		}
		r := d.drawn(k)
		if l := &d.lines[k]; l.gap == "" {
			r.put(0, fmt.Sprintf("%*.*f", timeWidth, digits, float64(l.at)/float64(size)))
		}
		r.write(out)
	}
}

// scale returns the unit of the time column, its size, and how many digits follow the point.
func scale(total time.Duration) (unit string, size time.Duration, digits int) {
	switch {
	case total < time.Millisecond:
		return "µs", time.Microsecond, 1
	case total < 100*time.Millisecond:
		return "ms", time.Millisecond, 3
	case total < 10*time.Second:
		return "ms", time.Millisecond, 2
	default:
		return "s", time.Second, 3
	}
}

// drawn draws a line without its time: what is under way, the texts, and the arrows of what leaves or comes back.
func (d *drawing) drawn(k int) *gridLine {
	l, r := &d.lines[k], new(gridLine)
	for _, u := range d.under {
		if u.from < k && k < u.to {
			mark := "│"
			if l.at < u.begins || u.ends > 0 && l.at > u.ends {
				mark = "╎" // in a queue, or back and not taken yet
			}
			r.put(u.at, mark)
		}
	}
	for c, text := range d.texts[k] {
		r.put(d.columns[c].text(), text)
	}
	for _, u := range d.under {
		if k != u.from && k != u.to {
			continue
		}
		c := d.column[d.flows[u.flow].points[0].row]
		switch {
		case c < 0:
		case k != u.from && l.has(givenUp):
			r.put(u.at, "×")
		default:
			r.arrow(d.columns[c].text()+uniseg.StringWidth(d.texts[k][c])+1, u.at, k == u.from)
		}
	}
	return r
}

// A gridLine is one line of cells. One goroutine at a time.
type gridLine struct{ cells []string }

// arrow draws the way of a call or a job from behind the text of its thread to its cell, or back.
func (r *gridLine) arrow(left, cell int, out bool) {
	for x := left; x < cell; x++ {
		switch r.at(x) {
		case "│", "╎", "┼":
			r.put(x, "┼")
		case "►", "┬":
			r.put(x, "┬")
		case "┘", "┴":
			r.put(x, "┴")
		default:
			r.put(x, "─")
		}
	}
	if out {
		r.put(cell, "►")
	} else {
		r.put(left, "◄")
		r.put(cell, "┘")
	}
}

// put writes a text from a cell on. A wide character takes two cells, the second of which is empty.
func (r *gridLine) put(x int, text string) {
	for g := uniseg.NewGraphemes(text); g.Next(); {
		width := max(1, g.Width())
		for len(r.cells) < x+width {
			r.cells = append(r.cells, " ")
		}
		r.cells[x] = g.Str()
		for i := 1; i < width; i++ {
			r.cells[x+i] = ""
		}
		x += width
	}
}

func (r *gridLine) at(x int) string {
	if x < len(r.cells) {
		return r.cells[x]
	}
	return " "
}

func (r *gridLine) write(out *strings.Builder) {
	out.WriteString(strings.TrimRight(strings.Join(r.cells, ""), " ") + "\n")
}
