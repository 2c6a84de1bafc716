package draw

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/rankd/rankd/trace"
)

// A Run is a trace with the name that a comparison gives it, such as a scheduling mode. The name is empty if nothing is
// compared. Immutable.
type Run struct {
	Name  string
	Trace *trace.Trace
}

// scene is a trace arranged for drawing. Immutable once built.
type scene struct {
	*trace.Trace
	latency, service trace.Path
	segments, gaps   []trace.Segment // what the critical path was doing, and its long waits
	nodes            []node
	bodies           [][]trace.Slice // of each node, as trace.Trace.Bodies
	own              []time.Duration // of each node, as trace.Trace.Own
	rows             []row           // the critical path, the tracks, and the sleeps
	flows            []flow
	end              time.Duration // of the request, or of the last slice if a body outlived it
}

// node has what the drawings say of a node. What has no meaning for a node that never ran is empty.
type node struct {
	ID, Op, Place, Rows     string // ID is behind the label, if there is one
	Ready, Wait, Run, Own   string
	Share, Status, Critical string
	Fails                   string // what becomes of the request if it fails, where the plan says so
}

// row is one line of a drawing from the arrival on.
type row struct {
	kind  trace.TrackKind
	name  string
	spans []span // in order; they do not overlap
}

// The kinds of rows beside those of tracks.
const (
	pathRow  trace.TrackKind = "critical path"
	sleepRow trace.TrackKind = "timer"
)

// span is a stretch of a row.
type span struct {
	trace.Slice
	kind    string    // what it shows, and its color: a place, "call", "engine", "sleep", or "run" and "wait" on the critical path
	names   [2]string // on the span, the longer one first
	details string
}

// flow is a flow on the rows. A sleep goes by way of its own row.
type flow struct {
	trace.Flow
	points []point // at least two: where it leaves, and where it is under way
}

// point is a point of a flow on a row. It has no step where a sleep enters and leaves its row.
type point struct {
	step trace.Step
	row  int // in scene.rows
	at   time.Duration
}

func newScene(t *trace.Trace) *scene {
	s := &scene{
		Trace: t, bodies: t.Bodies(), own: t.Own(), latency: t.CriticalPath(trace.Latency), service: t.CriticalPath(trace.Service),
		segments: t.Segments(), gaps: t.Gaps(), end: t.Request.Ended,
	}
	s.describe()
	path := row{kind: pathRow, name: "Critical path"}
	for _, g := range s.segments {
		path.spans = append(path.spans, s.segment(g))
	}
	s.rows = append(s.rows, path)
	for _, track := range t.Tracks {
		r := row{kind: track.Kind, name: track.Name}
		for _, slice := range track.Slices {
			r.spans = append(r.spans, s.slice(track.Name, slice))
			s.end = max(s.end, slice.End)
		}
		s.rows = append(s.rows, r)
	}
	s.layFlows()
	return s
}

// describe fills in what the drawings say of the nodes.
func (s *scene) describe() {
	critical := onPath(s.latency, len(s.Nodes))
	s.nodes = make([]node, len(s.Nodes))
	for i := range s.Nodes {
		from, n := &s.Nodes[i], &s.nodes[i]
		*n = node{ID: titles(from, 60), Op: clip(from.Op, 60), Place: place(s.Trace, from), Status: status(from)}
		if from.Error != "" {
			n.Status += ": " + clip(from.Error, 200)
		}
		if from.OnError != "" || from.Because != "" {
			if n.Fails = "onError: " + clip(cmp.Or(from.OnError, "fail"), 20); from.Because != "" {
				n.Fails += ": " + clip(from.Because, 200)
			}
		}
		if critical[i] {
			n.Critical = "●"
		}
		if from.Ran() {
			n.Rows, n.Ready, n.Wait = fmt.Sprintf("%d→%d", from.RowsIn, from.RowsOut), duration(from.Ready), duration(from.Wait())
			n.Run, n.Own, n.Share = duration(from.Run()), duration(s.own[i]), share(from.Run(), s.Request.Ended)
		}
	}
}

// onPath reports for each node whether it is on a path.
func onPath(p trace.Path, nodes int) []bool {
	on := make([]bool, nodes)
	for _, step := range p.Steps {
		on[step.Node] = true
	}
	return on
}

// critical reports whether a node is on the critical path.
func (s *scene) critical(node int) bool { return node >= 0 && s.nodes[node].Critical != "" }

// segment returns the span of a segment of the critical path.
func (s *scene) segment(g trace.Segment) span {
	made := span{Slice: trace.Slice{Node: g.Node, Start: g.Start, End: g.End}, kind: "run", details: "critical path: running"}
	if g.For == trace.Running {
		made.names = s.names(g.Node)
		return made
	}
	took, waits := duration(g.End-g.Start), waiting(s.Trace, g.For)
	made.kind, made.names, made.details = "wait", [2]string{took + " " + waits, took}, "critical path: "+waits
	return made
}

// slice returns the span of a slice of a track.
func (s *scene) slice(track string, from trace.Slice) span {
	made := span{Slice: from, kind: "engine", names: [2]string{"engine", ""}, details: "on " + clip(track, 40)}
	if from.Node >= 0 {
		made.names = s.names(from.Node)
	}
	switch {
	case from.Kind == trace.CallSlice:
		made.kind, made.details = "call", fmt.Sprintf("%d commands %s, %d bytes sent, ", from.Commands, made.details, from.Sent)
		if from.GivenUp {
			made.details += "given up"
		} else {
			made.details += fmt.Sprintf("%d received", from.Received)
		}
	case from.Kind == trace.NodeSlice && from.Node >= 0:
		made.kind = placeClass(s.Nodes[from.Node].Place)
	}
	return made
}

// names returns the names of a node on its spans.
func (s *scene) names(node int) [2]string {
	n := &s.Nodes[node]
	return [2]string{nodeName(n, 40), title(n, 40)}
}

// layFlows gives each sleep a row in which no other sleeps at the same time.
func (s *scene) layFlows() {
	var free []time.Duration // of each lane of sleeps, from when on
	for _, from := range s.Flows {
		f := flow{Flow: from}
		for _, p := range from.Points {
			f.points = append(f.points, point{p.Step, 1 + p.Track, p.At})
		}
		if f.Kind == trace.TimerFlow {
			begin, end := f.points[0], f.points[len(f.points)-1]
			lane := slices.IndexFunc(free, func(at time.Duration) bool { return at < begin.at })
			if lane < 0 {
				lane, free = len(free), append(free, 0)
				s.rows = append(s.rows, row{kind: sleepRow, name: fmt.Sprintf("Timer %d", lane)})
			}
			free[lane] = end.at
			on := 1 + len(s.Tracks) + lane
			f.points = []point{begin, {row: on, at: begin.at}, {row: on, at: end.at}, end}
			s.rows[on].spans = append(s.rows[on].spans, span{Slice: trace.Slice{Node: f.Node, Start: begin.at, End: end.at}, kind: "sleep", names: s.names(f.Node), details: "sleeps"})
		}
		s.flows = append(s.flows, f)
	}
}

// depths returns, for each node of a plan, the length of the longest path to it. inputs[i] are the nodes that node i reads.
func depths(inputs [][]int) []int {
	depth := make([]int, len(inputs)) // 0: not known yet
	var of func(i int) int
	of = func(i int) int {
		if depth[i] == 0 {
			depth[i] = 1 // ends the recursion should a hostile trace have a cycle
			deepest := 0
			for _, in := range inputs[i] {
				deepest = max(deepest, of(in))
			}
			depth[i] = deepest + 1
		}
		return depth[i]
	}
	for i := range inputs {
		of(i)
	}
	return depth
}

// inputs returns the nodes that each node reads, once each.
func (s *scene) inputs() [][]int {
	all := make([][]int, len(s.Nodes))
	for i := range s.Nodes {
		all[i] = slices.Compact(slices.Sorted(slices.Values(s.Nodes[i].Inputs)))
	}
	return all
}
