package draw

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rankd/rankd/trace"
)

// word says what happened at an instant.
type word int

// The words, in the order in which a node has them. A node may ask and go on several times.
const (
	begins    word = iota // the request
	handsOver             // a job to a worker
	started               // the worker has the job
	starts                // the body
	asks                  // Redis, or for a timer
	sent
	replied
	goesOn
	givenUp // a call
	fires   // a deadline
	ends    // the body
	posted  // the job
	takesBack
	answers // the request
)

// An instant is something that happened on a track.
type instant struct {
	at    time.Duration
	track int
	word  word
	node  int    // -1: the request
	flow  int    // index of the flow that it is a point of; -1: none
	text  string // beside the node's name, or in its place
	rank  int    // orders instants of the same time
}

// A line is one line of the timeline: instants of which each follows from the one before. One goroutine at a time.
type line struct {
	at       time.Duration // of a gap: its middle
	instants []instant
	gap      string // text of a line without instants
}

// writeTimeline draws the trace as lines, with one column per thread, one for Redis and one for services.
func (s *scene) writeTimeline(out *strings.Builder, o Options) {
	lines := s.lines()
	for names := 20; ; names -= 4 {
		d := newDrawing(s, lines, names)
		if d.width() <= widthMost || names <= 12 {
			d.write(out, o)
			return
		}
	}
}

// lines returns the lines of the timeline.
func (s *scene) lines() []line { return s.withGaps(join(s.instants(), s.Request.Ended)) }

// instants returns what the timeline shows, in the order of time. At the same time a node comes after those that it reads.
func (s *scene) instants() []instant {
	all := []instant{{at: s.Request.Begun, word: begins, node: -1, flow: -1}, {at: s.Request.Ended, word: answers, node: -1, flow: -1}}
	all = append(all, s.bodies()...)
	for k, f := range s.Flows {
		for _, p := range f.Points {
			all = append(all, s.point(k, p))
		}
	}
	for _, timer := range s.Timers {
		if timer.Kind == trace.DeadlineTimer {
			all = append(all, instant{at: timer.Fired, word: fires, node: timer.Node, flow: -1, text: "deadline of "})
		}
	}
	depth := depths(s.inputs())
	for k := range all {
		switch i := &all[k]; {
		case i.word == begins:
			i.rank = -1
		case i.word == answers:
			i.rank = len(s.Nodes) + 1
		case i.flow >= 0 && i.word >= posted:
			i.rank = depth[lastOfJob(s.Trace, i.node)]
		default:
			i.rank = depth[i.node]
		}
	}
	slices.SortStableFunc(all, func(a, b instant) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.rank, b.rank), cmp.Compare(a.word, b.word))
	})
	return all
}

// lastOfJob returns the last node of the job that begins with a node.
func lastOfJob(t *trace.Trace, first int) int {
	last := first
	for i := range t.Nodes {
		if n := &t.Nodes[i]; n.Fused > 1 && n.Parent == last && n.Place == trace.OnPool {
			last = i
		}
	}
	return last
}

// bodies returns the instants at which bodies start and end, and calls are given up.
func (s *scene) bodies() (all []instant) {
	first, last := make([]*trace.Slice, len(s.Nodes)), make([]*trace.Slice, len(s.Nodes))
	track := make([]int, len(s.Nodes)) // of the last slice
	for k := range s.Tracks {
		for i := range s.Tracks[k].Slices {
			slice := &s.Tracks[k].Slices[i]
			switch node := slice.Node; {
			case slice.Kind == trace.CallSlice && slice.GivenUp:
				all = append(all, instant{at: slice.End, track: k, word: givenUp, node: node, flow: -1, text: "given up"})
			case slice.Kind == trace.NodeSlice:
				if first[node] == nil || slice.Start < first[node].Start {
					first[node] = slice
				}
				if last[node] == nil || slice.End >= last[node].End {
					last[node], track[node] = slice, k
				}
			}
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if first[i] == nil {
			continue
		}
		all = append(all, instant{at: first[i].Start, track: n.Track, word: starts, node: i, flow: -1, text: "starts"})
		// The body may sleep when a deadline settles its node. Then the deadline is the end.
		if !slices.ContainsFunc(n.Awaits, func(a trace.Await) bool { return a.Start == last[i].End && a.End > a.Start }) {
			all = append(all, instant{at: last[i].End, track: track[i], word: ends, node: i, flow: -1, text: cmp.Or(endings[n.Status], "done")})
		}
	}
	return all
}

// endings say how a node ended that is not done.
var endings = map[trace.Status]string{trace.Failed: "fails", trace.Timeout: "ends too late", trace.Late: "is given up"}

// steps are the words and texts of the points of a flow.
var steps = map[trace.Step]instant{
	trace.Asked: {word: asks, text: "asks"}, trace.Sent: {word: sent}, trace.Replied: {word: replied, text: "replied"},
	trace.Submitted: {word: handsOver, text: "offloads "}, trace.Started: {word: started}, trace.Posted: {word: posted},
	trace.Resumed: {word: goesOn, text: "goes on"},
}

// point returns the instant of a point of a flow.
func (s *scene) point(flow int, p trace.Point) instant {
	i, f := steps[p.Step], &s.Flows[flow]
	switch {
	case p.Step == trace.Sent:
		i.text = call(s.Trace, p)
	case p.Step == trace.Asked && f.Kind == trace.TimerFlow:
		i.text = "sleeps"
	case p.Step == trace.Resumed && f.Kind == trace.OffloadFlow:
		i.word, i.text = takesBack, "takes back "
	}
	i.at, i.track, i.node, i.flow = p.At, p.Track, f.Node, flow
	return i
}

// call describes the call at a point of a connection.
func call(t *trace.Trace, p trace.Point) string {
	for _, s := range t.Tracks[p.Track].Slices {
		switch {
		case s.Start > p.At || p.At > s.End:
		case s.Commands == 1:
			return "1 command"
		case s.Commands > 1:
			return fmt.Sprintf("%d commands", s.Commands)
		}
	}
	return ""
}

// join puts instants that follow from each other on one line.
func join(all []instant, total time.Duration) (lines []line) {
	for _, i := range all {
		if k := len(lines) - 1; k >= 0 && lines[k].takes(i, total) {
			lines[k].instants = append(lines[k].instants, i)
		} else {
			lines = append(lines, line{at: i.at, instants: []instant{i}})
		}
	}
	return lines
}

// shortPart is the part of the request up to which instants of a body share a line: a twentieth.
const shortPart = 20

// takes reports whether an instant goes on the line.
func (l *line) takes(i instant, total time.Duration) bool {
	last := l.instants[len(l.instants)-1]
	switch i.word {
	case begins, answers, fires, replied:
		return false
	case sent: // a call may leave in parts
		return slices.ContainsFunc(l.instants, func(o instant) bool { return o.flow == i.flow })
	case posted:
		return last.word == ends && last.track == i.track
	case goesOn, takesBack:
		return last.flow == i.flow && !l.has(asks, handsOver)
	case asks:
		return last.node == i.node && last.track == i.track && (last.word == starts || last.word == asks)
	case started:
		return last.flow == i.flow
	default:
		return last.node == i.node && last.track == i.track && (i.at-l.at)*shortPart <= total
	}
}

// has reports whether one of the words is on the line.
func (l *line) has(words ...word) bool {
	return slices.ContainsFunc(l.instants, func(i instant) bool { return slices.Contains(words, i.word) })
}

// withGaps adds a line for each gap of the critical path, after the one in which it begins.
func (s *scene) withGaps(lines []line) []line {
	for _, g := range s.gaps {
		text := fmt.Sprintf("~ %s %s", duration(g.End-g.Start), waiting(s.Trace, g.For))
		after := 0
		for i, l := range lines {
			if l.gap == "" && l.at <= g.Start {
				after = i + 1
			}
		}
		lines = slices.Insert(lines, after, line{at: (g.Start + g.End) / 2, gap: text})
	}
	return lines
}
