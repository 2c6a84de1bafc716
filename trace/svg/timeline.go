package svg

import (
	"fmt"
	"math"
	"time"

	"github.com/rankd/rankd/trace"
	"github.com/rankd/rankd/trace/caption"
)

// The parts of a timeline, in CSS pixels.
const (
	gutterWidth = 128 // names of tracks
	plotWidth   = Width - gutterWidth - 8
	axisHeight  = 22
	pathHeight  = 20 // the strip of the critical path
	textSize    = 11
)

// manyRows is how many rows a timeline has from which on they are low.
const manyRows = 40

// manyNodes is how many nodes a timeline has from which on its flows are pale.
const manyNodes = 150

// A plot is a timeline under construction: tracks below each other, time from left to right. One goroutine at a time.
type plot struct {
	document
	trace         *trace.Trace
	total         time.Duration
	height, pitch float64 // of a track, and from one to the next
	onPath        []bool
	sleeps        []int // lane of each flow that is a sleep
	lanes         int   // of sleeps, below the tracks
}

// Timeline draws what ran when: a row per thread and per lane of a connection, with flows between them, and above
// them what the critical path was doing. The time axis ends at until, or at the end of the trace if that is later, so that
// several drawings can have the same axis.
//
// The marks are in a nested svg of the class "plot". A page that changes its viewBox zooms the time axis.
func Timeline(t *trace.Trace, until time.Duration) string {
	p := plot{trace: t, total: max(End(t), until, 1), height: 20, pitch: 28, onPath: critical(t)}
	p.sleeps, p.lanes = caption.Sleeps(t)
	rows := len(t.Tracks) + p.lanes
	if rows >= manyRows {
		p.height, p.pitch = 9, 12
	}
	top := float64(axisHeight + pathHeight + 8)
	height := top + float64(rows)*p.pitch
	classes := "timeline"
	if len(t.Nodes) >= manyNodes {
		classes = "timeline many"
	}
	p.begin(classes, "The timeline of "+caption.Name(t.Plan, 60), height)
	p.add(`<g class="axis">`)
	for _, tick := range ticks(p.total) {
		p.add(`<line class="rule" x1="%[1]s" x2="%[1]s" y1="%[2]d" y2="%[3]s"/>`, number(gutterWidth+p.x(tick)), axisHeight-4, number(height))
		p.text(gutterWidth+p.x(tick), 12, "soft", anchorOf(p.x(tick)), caption.Time(tick))
	}
	p.add("</g>\n")
	p.text(gutterWidth-8, axisHeight+14, "soft", "end", "critical path")
	for k := range rows {
		y := top + float64(k)*p.pitch
		p.add(`<rect class="track" x="%d" y="%s" width="%s" height="%s"/>`+"\n", gutterWidth, number(y), number(plotWidth), number(p.height))
		if p.height >= textSize || k == 0 || p.kind(k) != p.kind(k-1) {
			p.text(gutterWidth-8, y+p.height/2+4, "", "end", fit(p.rowName(k), cells(gutterWidth-8, textSize)))
		}
	}
	p.add(`<svg class="plot" x="%d" y="%d" width="%[3]d" height="%[4]s" viewBox="0 0 %[3]d %[4]s" preserveAspectRatio="none" data-total="%[5]d">`+"\n",
		gutterWidth, axisHeight, plotWidth, number(height-axisHeight), int64(p.total))
	p.gaps(height - axisHeight)
	p.strip()
	for k := range t.Tracks {
		p.slices(k)
	}
	p.flows()
	p.add("</svg>\n")
	p.names()
	p.add("</svg>\n")
	return p.String()
}

// kind returns what a row is about. Sleeps come below the tracks.
func (p *plot) kind(row int) trace.TrackKind {
	if row < len(p.trace.Tracks) {
		return p.trace.Tracks[row].Kind
	}
	return "timer"
}

func (p *plot) rowName(row int) string {
	if row < len(p.trace.Tracks) {
		return p.trace.Tracks[row].Name
	}
	return fmt.Sprintf("Timer %d", row-len(p.trace.Tracks))
}

// End returns the end of a trace: of the request, or of the last slice if a body outlived it.
func End(t *trace.Trace) time.Duration {
	end := t.Request.Ended
	for _, track := range t.Tracks {
		for _, s := range track.Slices {
			end = max(end, s.End)
		}
	}
	return end
}

// x returns the place of an instant in the plot.
func (p *plot) x(at time.Duration) float64 { return float64(at) / float64(p.total) * plotWidth }

// y returns the top of a track in the plot.
func (p *plot) y(track int) float64 { return pathHeight + 8 + float64(track)*p.pitch }

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

// gaps marks the long waits of the critical path over all tracks.
func (p *plot) gaps(height float64) {
	for _, g := range p.trace.Gaps() {
		p.add(`<rect class="gap" x="%s" y="0" width="%s" height="%s"/>`+"\n", number(p.x(g.Start)), number(p.x(g.End)-p.x(g.Start)), number(height))
	}
}

// strip draws what the critical path was doing.
func (p *plot) strip() {
	for _, s := range p.trace.Segments() {
		kind := "wait"
		if s.For == trace.Running {
			kind = "run"
		}
		p.add(`<rect class="%s" x="%s" y="0" width="%s" height="%d" data-n="%d"%s data-d="%s"/>`+"\n", kind, number(p.x(s.Start)),
			number(p.x(s.End)-p.x(s.Start)), pathHeight-2, s.Node, p.labels(p.segmentNames(s)), escape(p.when(s.Start, s.End)+"critical path: "+p.segment(s)))
	}
}

// segment says what the critical path was doing.
func (p *plot) segment(s trace.Segment) string {
	if s.For == trace.Running {
		return "running"
	}
	return caption.Waiting(p.trace, s.For)
}

// segmentNames are the texts on a segment, the longer one first.
func (p *plot) segmentNames(s trace.Segment) [2]string {
	if s.For == trace.Running {
		return p.nodeNames(s.Node)
	}
	took := caption.Time(s.End - s.Start)
	return [2]string{took + " " + caption.Waiting(p.trace, s.For), took}
}

// when says when something was, for the details of a mark.
func (p *plot) when(start, end time.Duration) string {
	return fmt.Sprintf("%s, %s – %s\n", caption.Time(end-start), caption.Time(start), caption.Time(end))
}

// slices draws a track.
func (p *plot) slices(k int) {
	for _, s := range p.trace.Tracks[k].Slices {
		p.add(`<rect class="slice %s%s" x="%s" y="%s" width="%s" height="%s" data-n="%d"%s data-d="%s"/>`+"\n",
			p.sliceClass(s), critClass(s.Node >= 0 && p.onPath[s.Node]), number(p.x(s.Start)), number(p.y(k)), number(p.x(s.End)-p.x(s.Start)), number(p.height),
			s.Node, p.labels(p.sliceNames(s)), escape(p.when(s.Start, s.End)+p.details(k, s)))
	}
}

func (p *plot) sliceClass(s trace.Slice) string {
	switch {
	case s.Kind == trace.CallSlice:
		return "call"
	case s.Kind == trace.NodeSlice && s.Node >= 0:
		return class(p.trace.Nodes[s.Node].Place)
	default:
		return "engine"
	}
}

// sliceNames are the texts on a slice, the longer one first.
func (p *plot) sliceNames(s trace.Slice) [2]string {
	if s.Node < 0 {
		return [2]string{"engine", ""}
	}
	return p.nodeNames(s.Node)
}

func (p *plot) nodeNames(node int) [2]string {
	n := &p.trace.Nodes[node]
	return [2]string{caption.Node(n, 40), caption.Title(n, 40)}
}

// labels returns the attributes that tell a page the texts on a mark.
func (p *plot) labels(texts [2]string) string {
	return fmt.Sprintf(` data-l="%s" data-s="%s"`, escape(texts[0]), escape(texts[1]))
}

// details describes a slice.
func (p *plot) details(k int, s trace.Slice) string {
	on := "on " + caption.Name(p.trace.Tracks[k].Name, 40)
	switch {
	case s.Kind != trace.CallSlice:
		return on
	case s.GivenUp:
		return fmt.Sprintf("%d commands %s, %d bytes sent, given up", s.Commands, on, s.Sent)
	default:
		return fmt.Sprintf("%d commands %s, %d bytes sent, %d received", s.Commands, on, s.Sent, s.Received)
	}
}

// flows draws the ways between rows, and the sleeps.
func (p *plot) flows() {
	for i, f := range p.trace.Flows {
		points := f.Points
		if lane := p.sleeps[i]; lane >= 0 {
			points = p.sleep(f, len(p.trace.Tracks)+lane)
		}
		for k := 1; k < len(points); k++ {
			if a, b := points[k-1], points[k]; a.Track != b.Track { // otherwise a slice shows it
				p.add(`<path class="flow%s" data-n="%d" d="%s"/>`+"\n", critClass(p.onPath[f.Node]), f.Node, p.way(a, b))
			}
		}
	}
}

// sleep draws a sleep on a row of its own, and returns the points of its flow, by way of that row.
func (p *plot) sleep(f trace.Flow, row int) []trace.Point {
	begin, end := f.Points[0], f.Points[len(f.Points)-1]
	p.add(`<rect class="slice sleep%s" x="%s" y="%s" width="%s" height="%s" data-n="%d"%s data-d="%s"/>`+"\n",
		critClass(p.onPath[f.Node]), number(p.x(begin.At)), number(p.y(row)), number(p.x(end.At)-p.x(begin.At)), number(p.height),
		f.Node, p.labels(p.nodeNames(f.Node)), escape(p.when(begin.At, end.At)+"sleeps"))
	return []trace.Point{begin, {Track: row, At: begin.At}, {Track: row, At: end.At}, end}
}

// way returns a curve from one row to another.
func (p *plot) way(a, b trace.Point) string {
	x1, x2, y1, y2 := p.x(a.At), p.x(b.At), p.y(a.Track), p.y(b.Track)
	if y1 < y2 {
		y1 += p.height
	} else {
		y2 += p.height
	}
	middle := number((y1 + y2) / 2)
	return fmt.Sprintf("M%s %sC%s %s %s %s %s %s", number(x1), number(y1), number(x1), middle, number(x2), middle, number(x2), number(y2))
}

// names writes names on the slices that are wide enough.
func (p *plot) names() {
	p.add(`<g class="names" transform="translate(%d %d)">`+"\n", gutterWidth, axisHeight)
	for _, s := range p.trace.Segments() {
		class := ""
		if s.For == trace.Running {
			class = "on"
		}
		p.name(s.Start, s.End, 13, class, p.segmentNames(s))
	}
	if p.height >= textSize {
		for k, track := range p.trace.Tracks {
			for _, s := range track.Slices {
				p.name(s.Start, s.End, p.y(k)+14, "on", p.sliceNames(s))
			}
		}
		for i, f := range p.trace.Flows {
			if lane := p.sleeps[i]; lane >= 0 {
				p.name(f.Points[0].At, f.Points[len(f.Points)-1].At, p.y(len(p.trace.Tracks)+lane)+14, "", p.nodeNames(f.Node))
			}
		}
	}
	p.add("</g>\n")
}

// name writes the longest of the texts that fits between two instants, or none.
func (p *plot) name(start, end time.Duration, y float64, class string, texts [2]string) {
	for _, text := range texts {
		if textWidth(text, textSize)+8 <= p.x(end)-p.x(start) {
			p.text(p.x(start)+4, y, class, "", text)
			return
		}
	}
}
