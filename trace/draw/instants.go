package draw

import (
	"cmp"
	"fmt"
	"slices"
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

// An instant is something that happened on a row of the scene.
type instant struct {
	at   time.Duration
	row  int
	word word
	node int    // -1: the request
	flow int    // index of the flow that it is a point of; -1: none
	text string // beside the node's name, or in its place
	rank int    // orders instants of the same time
}

// A line is one line of the timeline: instants of which each follows from the one before. One goroutine at a time.
type line struct {
	at       time.Duration // of a gap: its middle
	instants []instant
	gap      string // text of a line without instants
}

// lines returns the lines of the timeline.
func (s *scene) lines() []line { return s.withGaps(join(s.instants(), s.Request.Ended)) }

// instants returns what the timeline shows, in the order of time. At the same time a node comes after those that it reads.
func (s *scene) instants() []instant {
	main, answer := min(1, len(s.Tracks)), "answers"
	if s.Request.Error != "" {
		answer = "request fails"
	}
	all := []instant{{at: s.Request.Begun, row: main, word: begins, node: -1, flow: -1, text: "request begins"}, {at: s.Request.Ended, row: main, word: answers, node: -1, flow: -1, text: answer}}
	all = append(all, s.runs()...)
	for k := range s.flows {
		all = append(all, s.steps(k)...)
	}
	for _, timer := range s.Timers {
		if timer.Kind == trace.DeadlineTimer {
			all = append(all, instant{at: timer.Fired, row: main, word: fires, node: timer.Node, flow: -1, text: "deadline of "})
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

// endings say how a node ended that is not done.
var endings = map[trace.Status]string{trace.Failed: "fails", trace.Timeout: "ends too late", trace.Late: "is given up"}

// runs returns the instants at which bodies start and end.
func (s *scene) runs() (all []instant) {
	for i, bodies := range s.bodies {
		if len(bodies) == 0 {
			continue
		}
		n, end := &s.Nodes[i], bodies[len(bodies)-1].End
		all = append(all, instant{at: bodies[0].Start, row: 1 + n.Track, word: starts, node: i, flow: -1, text: "starts"})
		// The body may sleep when a deadline settles its node. Then the deadline is the end.
		if !slices.ContainsFunc(n.Awaits, func(a trace.Await) bool { return a.Start == end && a.End > a.Start }) {
			all = append(all, instant{at: end, row: 1 + n.Track, word: ends, node: i, flow: -1, text: cmp.Or(endings[n.Status], "done")})
		}
	}
	return all
}

// stepWords are the words and texts of the points of a flow.
var stepWords = map[trace.Step]instant{
	trace.Asked: {word: asks, text: "asks"}, trace.Sent: {word: sent}, trace.Replied: {word: replied, text: "replied"},
	trace.Submitted: {word: handsOver, text: "offloads "}, trace.Started: {word: started}, trace.Posted: {word: posted},
	trace.Resumed: {word: goesOn, text: "goes on"},
}

// steps returns the instants of a flow: those of its points, and that at which its call is given up.
func (s *scene) steps(flow int) (all []instant) {
	f := &s.flows[flow]
	for _, p := range f.points {
		i, known := stepWords[p.step]
		if !known {
			continue
		}
		i.at, i.row, i.node, i.flow = p.at, p.row, f.Node, flow
		switch {
		case p.step == trace.Asked && f.Kind == trace.TimerFlow:
			i.text = "sleeps"
		case p.step == trace.Resumed && f.Kind == trace.OffloadFlow:
			i.word, i.text = takesBack, "takes back "
		case p.step == trace.Sent:
			call := s.call(f.Node, p)
			if i.text = count(call.Commands, "command"); call.GivenUp {
				all = append(all, instant{at: call.End, row: p.row, word: givenUp, node: f.Node, flow: flow, text: "given up"})
			}
		}
		all = append(all, i)
	}
	return all
}

// call returns the call of a node that was sent at a point of a connection: the last one that had begun.
func (s *scene) call(node int, sent point) (call span) {
	for _, c := range s.rows[sent.row].spans {
		if c.Node == node && c.Start <= sent.at {
			call = c
		}
	}
	return call
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
	switch sameBody := last.node == i.node && last.row == i.row; i.word {
	case begins, answers, fires, replied:
		return false
	case sent: // a call may leave in parts
		return slices.ContainsFunc(l.instants, func(o instant) bool { return o.flow == i.flow })
	case posted:
		return last.word == ends && last.row == i.row
	case goesOn, takesBack:
		return last.flow == i.flow && !l.has(asks, handsOver)
	case asks:
		return sameBody && (last.word == starts || last.word == asks)
	case started:
		return last.flow == i.flow
	default:
		return sameBody && (i.at-l.at)*shortPart <= total
	}
}

// has reports whether one of the words is on the line.
func (l *line) has(words ...word) bool {
	return slices.ContainsFunc(l.instants, func(i instant) bool { return slices.Contains(words, i.word) })
}

// withGaps adds a line for each gap of the critical path, after the one in which it begins.
func (s *scene) withGaps(lines []line) []line {
	for _, g := range s.gaps {
		after := len(lines)
		for after > 0 && (lines[after-1].gap != "" || lines[after-1].at > g.Start) {
			after--
		}
		text := fmt.Sprintf("~ %s %s", duration(g.End-g.Start), waiting(s.Trace, g.For))
		lines = slices.Insert(lines, after, line{at: (g.Start + g.End) / 2, gap: text})
	}
	return lines
}
