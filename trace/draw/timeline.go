package draw

import (
	"fmt"
	"math"
	"time"

	"github.com/rankd/rankd/trace"
)

// The parts of a timeline, in CSS pixels.
const (
	gutterWidth = 128 // names of rows
	plotWidth   = pictureWidth - gutterWidth - 8
	axisHeight  = 22
	pathHeight  = 20 // the row of the critical path
	textSize    = 11
	smallSize   = 9.5 // of the names of low rows; style.css has it, too
)

// manyRows is how many rows a timeline has from which on they are low.
const manyRows = 40

// manyNodes is how many nodes a timeline has from which on its flows are pale.
const manyNodes = 150

// A plot is a timeline under construction: rows below each other, time from left to right. One goroutine at a time.
type plot struct {
	document
	*scene
	total         time.Duration
	height, pitch float64 // of a row, and from one to the next
}

// Timeline returns a picture of what ran when, as SVG: a row per thread and per lane of a connection, with flows between them, and
// above them what the critical path was doing.
func Timeline(t *trace.Trace) string { return alone(newScene(t).timeline(0)) }

// timeline draws what ran when. The time axis ends at until, or at the end of the trace if that is later, so that several
// drawings can have the same axis.
//
// The marks are in a nested svg of the class "plot". A page that changes its viewBox zooms the time axis.
func (s *scene) timeline(until time.Duration) string {
	p := plot{scene: s, total: max(s.end, until, 1), height: 20, pitch: 28}
	nameClass, nameSize := "", float64(textSize)
	if len(s.rows) > manyRows {
		p.height, p.pitch, nameClass, nameSize = 9, 12, "small", smallSize
	}
	height := p.y(len(s.rows))
	classes := "timeline"
	if len(s.Nodes) >= manyNodes {
		classes = "timeline many"
	}
	p.begin(classes, "The timeline of "+clip(s.Plan, 60), axisHeight+height)
	p.axis(axisHeight + height)
	p.text(gutterWidth-8, axisHeight+14, "soft", "end", "critical path")
	for k := 1; k < len(s.rows); k++ {
		y := axisHeight + p.y(k)
		p.add(`<rect class="track" x="%d" y="%v" width="%v" height="%v"/>`+"\n", gutterWidth, y, plotWidth, p.height)
		p.text(gutterWidth-8, y+p.height/2+4, nameClass, "end", fitTrack(s.rows[k].name, cells(gutterWidth-8, nameSize)))
	}
	p.add(`<svg class="plot" x="%d" y="%d" width="%[3]d" height="%[4]v" viewBox="0 0 %[3]d %[4]v" preserveAspectRatio="none" data-total="%[5]d">`+"\n",
		gutterWidth, axisHeight, plotWidth, height, int64(p.total))
	for _, g := range s.gaps {
		p.add(`<rect class="gap" x="%v" y="0" width="%v" height="%v"/>`+"\n", p.x(g.Start), p.x(g.End)-p.x(g.Start), height)
	}
	for k := range s.rows {
		for i := range s.rows[k].spans {
			p.mark(k, &s.rows[k].spans[i])
		}
	}
	for i := range s.flows {
		p.flow(&s.flows[i])
	}
	p.add("</svg>\n")
	p.labels()
	p.add("</svg>\n")
	return p.String()
}

// axis draws the time axis.
func (p *plot) axis(height float64) {
	p.add(`<g class="axis">`)
	for _, tick := range ticks(p.total) {
		p.add(`<line class="rule" x1="%[1]v" x2="%[1]v" y1="%[2]d" y2="%[3]v"/>`, gutterWidth+p.x(tick), axisHeight-4, height)
		p.text(gutterWidth+p.x(tick), 12, "soft", anchorOf(p.x(tick)), duration(tick))
	}
	p.add("</g>\n")
}

// x returns the place of an instant in the plot.
func (p *plot) x(at time.Duration) float64 { return float64(at) / float64(p.total) * plotWidth }

// y returns the top of a row in the plot.
func (p *plot) y(row int) float64 {
	if row == 0 {
		return 0
	}
	return pathHeight + 8 + float64(row-1)*p.pitch
}

// anchorOf keeps the texts at both ends of the axis inside.
func anchorOf(x float64) string {
	switch {
	case x < 30:
		return "start"
	case x > plotWidth-30:
		return "end"
	default:
		return "middle"
	}
}

// ticks returns round instants, some eight of them.
func ticks(total time.Duration) (all []time.Duration) {
	step := math.Pow(10, math.Floor(math.Log10(float64(total)/8)))
	for _, factor := range [...]float64{1, 2, 5, 10} {
		if float64(total)/(step*factor) <= 10 {
			step *= factor
			break
		}
	}
	for at := 0.0; at <= float64(total); at += max(step, 1) {
		all = append(all, time.Duration(at))
	}
	return all
}

// mark draws a span. Its attributes tell a page the texts on it, and its details.
func (p *plot) mark(row int, s *span) {
	class, height := "slice "+s.kind+critClass(p.critical(s.Node)), p.height
	if row == 0 {
		class, height = s.kind, pathHeight-2
	}
	details := fmt.Sprintf("%s, %s – %s\n%s", duration(s.End-s.Start), duration(s.Start), duration(s.End), s.details)
	p.add(`<rect class="%v" x="%v" y="%v" width="%v" height="%v" data-n="%d" data-l="%v" data-s="%v" data-d="%v"/>`+"\n",
		class, p.x(s.Start), p.y(row), p.x(s.End)-p.x(s.Start), height, s.Node, s.names[0], s.names[1], details)
}

// flow draws the ways of a flow between rows.
func (p *plot) flow(f *flow) {
	for k := 1; k < len(f.points); k++ {
		if a, b := f.points[k-1], f.points[k]; a.row != b.row { // otherwise a slice shows it
			p.add(`<path class="flow%v" data-n="%d" d="%v"/>`+"\n", critClass(p.critical(f.Node)), f.Node, p.way(a, b))
		}
	}
}

// way returns a curve from one row to another.
func (p *plot) way(a, b point) string {
	x1, x2, y1, y2 := p.x(a.at), p.x(b.at), p.y(a.row), p.y(b.row)
	if y1 < y2 {
		y1 += p.height
	} else {
		y2 += p.height
	}
	middle := (y1 + y2) / 2
	return markup("M%v %vC%v %v %v %v %v %v", x1, y1, x1, middle, x2, middle, x2, y2)
}

// labels writes, on each span of a row that is high enough, the longest of its names that fits.
func (p *plot) labels() {
	p.add(`<g class="names" transform="translate(%d %d)">`+"\n", gutterWidth, axisHeight)
	for k, row := range p.rows {
		y := p.y(k) + 14
		switch {
		case k == 0:
			y = 13
		case p.height < textSize:
			continue
		}
		for i := range row.spans {
			p.label(&row.spans[i], y)
		}
	}
	p.add("</g>\n")
}

func (p *plot) label(s *span, y float64) {
	class := "on"
	if s.kind == "wait" || s.kind == "sleep" {
		class = ""
	}
	for _, name := range s.names {
		if textWidth(name, textSize)+8 <= p.x(s.End)-p.x(s.Start) {
			p.text(p.x(s.Start)+4, y, class, "", name)
			return
		}
	}
}
