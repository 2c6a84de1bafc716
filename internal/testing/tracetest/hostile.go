package tracetest

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rankd/rankd/trace"
)

// Hostile returns traces that are sound by trace.Trace.Check, and that no drawing expects, by name.
func Hostile() map[string]*trace.Trace {
	empty := &trace.Trace{Version: trace.Version, Engine: "reactor"}

	one := Random(1, 1)
	one.Nodes[0].ID, one.Plan = "", ""

	failed := Random(2, 9)
	failed.Request.Error = "node \"n8\" failed\n<b>with</b> a long text " + strings.Repeat("x", 5000)
	failed.Nodes[8].Status, failed.Nodes[8].Error = trace.Failed, failed.Request.Error

	// The bounds of recording cut the end of each flow and of each track.
	cut := Random(3, 30)
	cut.Dropped = 17
	for i := range cut.Flows {
		cut.Flows[i].Points = cut.Flows[i].Points[:2]
	}
	for i := range cut.Nodes {
		cut.Nodes[i].Awaits = nil
	}
	bare := Random(4, 30)
	bare.Tracks, bare.Flows, bare.Dropped = nil, nil, 1000
	for i := range bare.Nodes {
		bare.Nodes[i].Track = -1
	}

	// A clock that stands still: all slices are empty, at the same instant.
	still := Random(5, 20)
	still.Request.Begun, still.Request.Ended = 0, 0
	for i := range still.Nodes {
		n := &still.Nodes[i]
		n.Ready, n.Start, n.End, n.QueueDelay, n.Awaits = 0, 0, 0, nil, nil
	}
	for k := range still.Tracks {
		for i := range still.Tracks[k].Slices {
			s := &still.Tracks[k].Slices[i]
			s.Start, s.End = 0, 0
		}
	}
	for i := range still.Flows {
		for k := range still.Flows[i].Points {
			still.Flows[i].Points[k].At = 0
		}
	}

	names := Random(6, 12)
	for i, id := range []string{
		"名前はとても長いです名前はとても長いです", "<script>alert(1)</script>", "a\nb\tc\x1b[31m", "</text></svg><img src=x onerror=alert(1)>",
		"\"quoted\" & 'single'", "👩‍👩‍👧‍👦 family", "\xff\xfe", "e\u0301\u0301\u0301", "\u202eright to left", strings.Repeat("W", 300), " ", "--><!--",
	} {
		names.Nodes[i].ID, names.Nodes[i].Op, names.Nodes[i].Label = id, id, id
	}
	names.Plan, names.Tracks[0].Name, names.Scheduling, names.RequestID = "</title><script>alert(2)</script>", "<i>Loop</i>", "<u>", "\x00\"><script>"

	// A body outlives the request.
	late := Random(7, 6)
	worker := &late.Tracks[slices.IndexFunc(late.Tracks, func(t trace.Track) bool { return t.Kind == trace.CPUTrack })]
	worker.Slices = append(worker.Slices, trace.Slice{Kind: trace.NodeSlice, Node: 5, Start: late.Request.Ended, End: late.Request.Ended + 5*time.Millisecond})

	long := Random(8, 8)
	for i := range long.Nodes { // hours, on one worker
		long.Nodes[i].RowsOut = math.MaxInt
	}
	long.Request.Ended += 50 * time.Hour

	skipped := Random(9, 12)
	for i := range skipped.Nodes {
		n := &skipped.Nodes[i]
		*n = trace.Node{SpanID: n.SpanID, ID: n.ID, Index: i, Op: n.Op, Inputs: n.Inputs, Status: trace.Skipped, Track: -1, Parent: -1}
	}
	skipped.Tracks, skipped.Flows = skipped.Tracks[:1], nil
	skipped.Tracks[0].Slices = nil

	return map[string]*trace.Trace{
		"empty": empty, "one": one, "failed": failed, "cut": cut, "bare": bare, "still": still, "names": names, "late": late, "long": long,
		"skipped": skipped, "large": Random(10, 500), "chain": Chain(400), "fan": Fan(500),
	}
}

// Chain returns a trace of a plan in which each node reads the one before.
func Chain(nodes int) *trace.Trace {
	return run(11, "chain", nodes, func(i int) []int {
		if i == 0 {
			return nil
		}
		return []int{i - 1}
	})
}

// Fan returns a trace of a plan in which the last node reads all others, which read the first.
func Fan(nodes int) *trace.Trace {
	return run(12, "fan", nodes, func(i int) (inputs []int) {
		switch i {
		case 0:
			return nil
		case nodes - 1:
			for k := 1; k < nodes-1; k++ {
				inputs = append(inputs, k)
			}
			return inputs
		default:
			return []int{0}
		}
	})
}
