package text

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rankd/rankd/trace"
	"github.com/rankd/rankd/trace/caption"
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

// timeline draws a trace as lines, one column per thread and one for Redis.
func timeline(out *strings.Builder, t *trace.Trace, o Options) {
	lines := withGaps(t, join(instants(t), t.Request.Ended))
	for names := 20; ; names -= 4 {
		d := newDrawing(t, lines, names)
		if d.width() <= widthMost || names <= 12 {
			d.write(out, o)
			return
		}
	}
}

// instants returns what the timeline shows, in the order of time. At the same time a node comes after those that it reads.
func instants(t *trace.Trace) []instant {
	all := []instant{{at: t.Request.Begun, word: begins, node: -1, flow: -1}, {at: t.Request.Ended, word: answers, node: -1, flow: -1}}
	all = append(all, bodies(t)...)
	for k := range t.Flows {
		all = append(all, points(t, k)...)
	}
	for _, timer := range t.Timers {
		if timer.Kind == trace.DeadlineTimer {
			all = append(all, instant{at: timer.Fired, word: fires, node: timer.Node, flow: -1, text: "deadline of "})
		}
	}
	depth := depths(t)
	for k := range all {
		switch i := &all[k]; {
		case i.word == begins:
			i.rank = -1
		case i.word == answers:
			i.rank = len(t.Nodes) + 1
		case i.flow >= 0 && i.word >= posted:
			i.rank = depth[lastOfJob(t, i.node)]
		default:
			i.rank = depth[i.node]
		}
	}
	slices.SortStableFunc(all, func(a, b instant) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.rank, b.rank), cmp.Compare(a.word, b.word))
	})
	return all
}

// depths returns the length of the longest path to each node.
func depths(t *trace.Trace) []int {
	depth := make([]int, len(t.Nodes))
	var of func(i int) int
	of = func(i int) int {
		if depth[i] == 0 {
			depth[i] = 1
			for _, in := range t.Nodes[i].Inputs {
				depth[i] = max(depth[i], of(in)+1)
			}
		}
		return depth[i]
	}
	for i := range t.Nodes {
		of(i)
	}
	return depth
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
func bodies(t *trace.Trace) (all []instant) {
	first, last := make([]*trace.Slice, len(t.Nodes)), make([]*trace.Slice, len(t.Nodes))
	track := make([]int, len(t.Nodes)) // of the last slice
	for k := range t.Tracks {
		for i := range t.Tracks[k].Slices {
			s := &t.Tracks[k].Slices[i]
			switch {
			case s.Kind == trace.CallSlice && s.GivenUp:
				all = append(all, instant{at: s.End, track: k, word: givenUp, node: s.Node, flow: -1, text: "given up"})
			case s.Kind != trace.NodeSlice:
			default:
				if f := first[s.Node]; f == nil || s.Start < f.Start {
					first[s.Node] = s
				}
				if l := last[s.Node]; l == nil || s.End >= l.End {
					last[s.Node], track[s.Node] = s, k
				}
			}
		}
	}
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if first[i] == nil {
			continue
		}
		all = append(all, instant{at: first[i].Start, track: n.Track, word: starts, node: i, flow: -1, text: "starts"})
		// The body may sleep when a deadline settles its node. Then the deadline is the end.
		if !slices.ContainsFunc(n.Awaits, func(a trace.Await) bool { return a.Start == last[i].End && a.End > a.Start }) {
			all = append(all, instant{at: last[i].End, track: track[i], word: ends, node: i, flow: -1, text: ending(n)})
		}
	}
	return all
}

// ending says how a node ended.
func ending(n *trace.Node) string {
	switch n.Status {
	case trace.Failed:
		return "fails"
	case trace.Timeout:
		return "ends too late"
	case trace.Late:
		return "is given up"
	default:
		return "done"
	}
}

// points returns the instants of a flow.
func points(t *trace.Trace, k int) (all []instant) {
	f := &t.Flows[k]
	for _, p := range f.Points {
		i := instant{at: p.At, track: p.Track, node: f.Node, flow: k}
		switch p.Step {
		case trace.Asked:
			i.word, i.text = asks, "asks"
			if f.Kind == trace.TimerFlow {
				i.text = "sleeps"
			}
		case trace.Sent:
			i.word, i.text = sent, call(t, p)
		case trace.Replied:
			i.word, i.text = replied, "replied"
		case trace.Submitted:
			i.word, i.text = handsOver, "offloads "
		case trace.Started:
			i.word = started
		case trace.Posted:
			i.word = posted
		case trace.Resumed:
			i.word, i.text = goesOn, "goes on"
			if f.Kind == trace.OffloadFlow {
				i.word, i.text = takesBack, "takes back "
			}
		}
		all = append(all, i)
	}
	return all
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
func withGaps(t *trace.Trace, lines []line) []line {
	for _, g := range t.Gaps() {
		text := fmt.Sprintf("~ %s %s", caption.Time(g.End-g.Start), caption.Waiting(t, g.For))
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
