package draw

import (
	"fmt"
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

// A column stands for a thread, or for all connections to Redis, or to services. One goroutine at a time.
type column struct {
	name       string
	left       int // first cell
	width      int
	lanes      int // cells for calls and jobs under way, at the left, two per lane
	textOffset int // of texts, from left
}

// A drawing is a timeline on a grid of cells. One goroutine at a time.
type drawing struct {
	*scene
	lines   []line
	names   int // width of a node's name
	columns []column
	column  []int // of each track; -1: not drawn
	lane    []int // of each track, in its column
	timers  int   // column of sleeps; -1: none
	under   []underWay
}

// underWay is a call or a job from the line on which it leaves to the one on which it is back.
type underWay struct {
	flow, from, to int // lines
	at             int // cell
	begins, ends   time.Duration
}

func newDrawing(s *scene, lines []line, names int) *drawing {
	d := &drawing{scene: s, lines: lines, names: names, timers: -1}
	d.layColumns()
	d.follow()
	return d
}

// layColumns gives each thread a column as wide as its texts, all connections to Redis one together, and those to
// services one.
func (d *drawing) layColumns() {
	d.column, d.lane = make([]int, len(d.Tracks)), make([]int, len(d.Tracks))
	lanes := map[trace.TrackKind]int{}
	for k, track := range d.Tracks {
		d.column[k] = -1
		switch {
		case track.Kind == trace.RedisTrack, track.Kind == trace.HTTPTrack:
			d.lane[k] = min(lanes[track.Kind], lanesMost-1)
			lanes[track.Kind]++
		case len(track.Slices) > 0 || k == 0:
			d.column[k] = len(d.columns)
			c := column{name: clip(track.Name, d.names)}
			if track.Kind == trace.CPUTrack || track.Kind == trace.IOTrack {
				c.lanes = 1
			}
			d.columns = append(d.columns, c)
		}
	}
	if len(d.columns) == 0 { // a trace without tracks
		d.columns = append(d.columns, column{name: "Loop"})
	}
	if d.sleeps > 0 {
		d.timers = len(d.columns)
		d.columns = append(d.columns, column{name: "Timers", lanes: min(d.sleeps, lanesMost)})
	}
	for _, group := range [...]struct {
		kind trace.TrackKind
		name string
	}{{trace.RedisTrack, "Redis"}, {trace.HTTPTrack, "HTTP"}} {
		if lanes[group.kind] == 0 {
			continue
		}
		for k, track := range d.Tracks {
			if track.Kind == group.kind {
				d.column[k] = len(d.columns)
			}
		}
		d.columns = append(d.columns, column{name: group.name, lanes: min(lanes[group.kind], lanesMost)})
	}
	for _, l := range d.lines {
		for c, text := range d.texts(&l) {
			d.columns[c].width = max(d.columns[c].width, uniseg.StringWidth(text))
		}
	}
	left := timeWidth + 2
	for c := range d.columns {
		col := &d.columns[c]
		col.left, col.textOffset = left, col.lanes*2
		col.width = max(col.width+col.textOffset, uniseg.StringWidth(col.name)) + 4
		left += col.width
	}
}

func (d *drawing) width() int {
	last := d.columns[len(d.columns)-1]
	return last.left + last.width - 4
}

// texts returns the texts of a line by column.
func (d *drawing) texts(l *line) map[int]string {
	texts := make(map[int]string)
	if l.gap != "" {
		texts[0] = l.gap
		return texts
	}
	var before instant
	for k, i := range l.instants {
		c := 0
		if i.track < len(d.column) {
			c = max(0, d.column[i.track]) // a track without slices has no column of its own
		}
		text := d.text(i)
		sameNode := k > 0 && before.node == i.node && before.track == i.track
		switch {
		case text == "" || i.word == sent && texts[c] == text || i.word == replied && l.has(goesOn) || i.word == asks && k > 0 && before.word == asks:
			continue
		case i.word == ends && i.text == "done" && l.has(starts) && sameNode:
			texts[c] = strings.TrimSuffix(texts[c], "starts") + "runs " + duration(i.at-d.startOf(l, i))
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

// startOf returns the instant at which the body that ends at i started, on the same line.
func (d *drawing) startOf(l *line, i instant) time.Duration {
	for _, o := range l.instants {
		if o.word == starts && o.node == i.node {
			return o.at
		}
	}
	return i.at
}

// text returns the text of an instant alone.
func (d *drawing) text(i instant) string {
	switch i.word {
	case begins:
		return "request begins"
	case answers:
		if d.Request.Error != "" {
			return "request fails"
		}
		return "answers"
	case sent, replied, givenUp, started, posted:
		return i.text
	case handsOver, takesBack, fires:
		text := i.text + title(&d.Nodes[i.node], d.names)
		if n := d.Nodes[i.node].Fused; n > 1 && i.word != fires {
			text += fmt.Sprintf(" +%d", n-1)
		}
		return text
	case starts:
		return nodeName(&d.Nodes[i.node], d.names) + " " + i.text
	default:
		return title(&d.Nodes[i.node], d.names) + " " + i.text
	}
}

// follow finds the lines on which calls, jobs and sleeps leave and come back.
func (d *drawing) follow() {
	all := make([]underWay, len(d.Flows))
	ofNode := make([][]int, len(d.Nodes))
	for k, f := range d.Flows {
		all[k] = d.newUnderWay(k)
		ofNode[f.Node] = append(ofNode[f.Node], k)
	}
	for k, l := range d.lines {
		for _, i := range l.instants {
			switch {
			case i.flow >= 0:
				u := &all[i.flow]
				if u.from < 0 {
					u.from = k
				}
				if i.word == goesOn || i.word == takesBack {
					u.to = k
				}
			case i.word == givenUp && i.node >= 0:
				for _, flow := range ofNode[i.node] {
					if u := &all[flow]; u.from >= 0 && u.to == len(d.lines) {
						u.to = k
					}
				}
			}
		}
	}
	for _, u := range all {
		if u.at >= 0 && u.from >= 0 {
			d.under = append(d.under, u)
		}
	}
}

// newUnderWay returns what a flow draws, without its lines. Its cell is -1 if it is not drawn.
func (d *drawing) newUnderWay(flow int) underWay {
	f := &d.flows[flow]
	u := underWay{flow: flow, from: -1, to: len(d.lines), at: -1}
	for _, p := range f.Points {
		switch p.Step {
		case trace.Sent, trace.Started:
			u.begins = p.At
			if c := d.column[p.Track]; c >= 0 && d.columns[c].lanes > 0 {
				u.at = d.columns[c].left + 2*d.lane[p.Track]
			}
		case trace.Replied, trace.Posted:
			u.ends = p.At
		}
	}
	if f.row > 0 {
		u.at = d.columns[d.timers].left + 2*min(f.row-1-len(d.Tracks), lanesMost-1)
	}
	return u
}

// write writes the heading and the lines, without the middle of a long timeline.
func (d *drawing) write(out *strings.Builder, o Options) {
	heading := new(gridLine)
	unit, digits := scale(d.Request.Ended)
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
			r.put(0, fmt.Sprintf("%*.*f", timeWidth, digits, float64(l.at)/float64(units[unit])))
		}
		r.write(out)
	}
}

// units are the units of the time column.
var units = map[string]time.Duration{"µs": time.Microsecond, "ms": time.Millisecond, "s": time.Second}

// scale returns the unit of the time column, and how many digits follow the point.
func scale(total time.Duration) (unit string, digits int) {
	switch {
	case total < time.Millisecond:
		return "µs", 1
	case total < 100*time.Millisecond:
		return "ms", 3
	case total < 10*time.Second:
		return "ms", 2
	default:
		return "s", 3
	}
}

// drawn draws a line without its time.
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
	texts := d.texts(l)
	for c, text := range texts {
		r.put(d.columns[c].left+d.columns[c].textOffset, text)
	}
	for _, u := range d.under {
		switch k {
		case u.from:
			d.arrow(r, l, texts, u, true)
		case u.to:
			d.arrow(r, l, texts, u, false)
		}
	}
	return r
}

// arrow draws the way of a call or a job from its thread to its cell, or back.
func (d *drawing) arrow(r *gridLine, l *line, texts map[int]string, u underWay, out bool) {
	points := d.Flows[u.flow].Points
	c := d.column[points[0].Track]
	if c < 0 {
		return
	}
	left := d.columns[c].left + d.columns[c].textOffset + uniseg.StringWidth(texts[c]) + 1
	if l.has(givenUp) && !out {
		r.put(u.at, "×")
		return
	}
	for x := left; x < u.at; x++ {
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
		r.put(u.at, "►")
	} else {
		r.put(left, "◄")
		r.put(u.at, "┘")
	}
}

// A gridLine is one line of cells. One goroutine at a time.
type gridLine struct{ cells []string }

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
