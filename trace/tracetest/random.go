// Package tracetest, which follows the engine's needs, makes traces for tests of drawings: random
// ones of any size, and hostile ones.
package tracetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rankd/rankd/trace"
)

// Random returns a trace of a random plan with the given number of nodes, on a made-up reactor with two workers. It
// passes trace.Trace.Check. The same seed gives the same trace.
func Random(seed uint64, nodes int) *trace.Trace {
	random := rand.New(rand.NewPCG(seed, 0))
	return run(seed, fmt.Sprintf("random_%d", nodes), nodes, func(i int) (inputs []int) {
		if i > nodes/40 {
			for range 1 + random.IntN(2) {
				inputs = append(inputs, i-1-random.IntN(min(i, 4+nodes/12)))
			}
		}
		return inputs
	})
}

// run runs a plan whose nodes read nodes before them.
func run(seed uint64, plan string, nodes int, inputs func(node int) []int) *trace.Trace {
	w := &world{
		random: rand.New(rand.NewPCG(seed, 1)), loopFree: 20 * time.Microsecond, left: make([]int, nodes), readers: make([][]int, nodes),
		trace: &trace.Trace{
			Version: trace.Version, TraceID: "0af7651916cd43dd8448eb211c80319c", RequestID: "r1", Plan: plan,
			Engine: "reactor", Scheduling: "adaptive", Request: trace.Request{Begun: 20 * time.Microsecond},
			Tracks: []trace.Track{
				{Kind: trace.LoopTrack, Name: "Loop"}, {Kind: trace.CPUTrack, Name: "CPU 0"}, {Kind: trace.CPUTrack, Number: 1, Name: "CPU 1"},
			},
		},
	}
	w.plan(nodes, inputs)
	for i, left := range w.left {
		if left == 0 {
			w.push(w.loopFree, i, w.begin)
		}
	}
	for len(w.events) > 0 {
		e := w.events[0]
		w.events = w.events[1:]
		w.now = max(e.at, w.loopFree)
		e.do(e.node)
	}
	w.engine(2 * time.Microsecond)
	w.trace.Request.Ended = w.loopFree
	slices.SortStableFunc(w.trace.Flows, func(a, b trace.Flow) int { return cmp.Compare(a.Points[0].At, b.Points[0].At) })
	return w.trace
}

// A world is a made-up reactor that runs one request. One goroutine at a time.
type world struct {
	random   *rand.Rand
	trace    *trace.Trace
	events   []event // by instant
	now      time.Duration
	loopFree time.Duration
	left     []int // inputs that have not ended
	readers  [][]int
}

var computing = [...]string{"core::vm", "core::filter", "core::sort", "core::take", "core::concat"}

// plan makes the nodes. A quarter of them wait for Redis.
func (w *world) plan(nodes int, inputs func(node int) []int) {
	for i := range nodes {
		n := trace.Node{SpanID: int64(i) + 1, Index: i, ID: fmt.Sprintf("n%d", i), Op: computing[w.random.IntN(len(computing))],
			Inputs: append([]int{}, inputs(i)...), Status: trace.OK, Parent: -1, RowsIn: 100, RowsOut: 10 + w.random.IntN(1000)}
		if i <= nodes/20 || w.random.IntN(4) == 0 {
			n.Op = "core::media"
		}
		if i%5 == 3 {
			n.Label = fmt.Sprintf("label %d", i%2)
		}
		for _, in := range n.Inputs {
			w.readers[in] = append(w.readers[in], i)
			w.left[i]++
		}
		w.trace.Nodes = append(w.trace.Nodes, n)
	}
	for i := range w.trace.Nodes {
		w.trace.Nodes[i].Output = len(w.readers[i]) == 0
	}
}

func (w *world) between(low, high int) time.Duration {
	return time.Duration(low*1000 + w.random.IntN((high-low)*1000))
}

// engine adds a slice of the engine to the loop.
func (w *world) engine(d time.Duration) {
	w.now = max(w.now, w.loopFree)
	w.loop(trace.Slice{Kind: trace.EngineSlice, Node: -1, Start: w.now, End: w.now + d})
}

func (w *world) loop(s trace.Slice) {
	w.trace.Tracks[0].Slices = append(w.trace.Tracks[0].Slices, s)
	w.now, w.loopFree = s.End, s.End
}

// body adds a slice of a node to the loop.
func (w *world) body(n *trace.Node, d time.Duration) {
	w.loop(trace.Slice{Kind: trace.NodeSlice, Node: n.Index, Start: w.now, End: w.now + d})
}

// begin starts a node that is ready.
func (w *world) begin(i int) {
	n := &w.trace.Nodes[i]
	for _, in := range n.Inputs {
		n.Ready = max(n.Ready, w.trace.Nodes[in].End)
	}
	w.engine(time.Microsecond)
	switch {
	case n.Op == "core::media":
		n.Place, n.Start = trace.OnLoop, w.now
		w.body(n, w.between(2, 12))
		w.ask(n)
	case w.random.IntN(3) == 0:
		n.Place, n.Start = trace.Inline, w.now
		w.body(n, w.between(1, 9))
		w.end(n, w.now)
	default:
		w.offload(n)
	}
}

// ask sends commands of a node on a lane that is free.
func (w *world) ask(n *trace.Node) {
	asked, count := w.now, 1+w.random.IntN(90)
	back := asked + w.between(150, 900)
	lane := -1
	for k, track := range w.trace.Tracks {
		if track.Kind == trace.RedisTrack && track.Slices[len(track.Slices)-1].End <= asked {
			lane = k
			break
		}
	}
	if lane < 0 {
		lane = len(w.trace.Tracks)
		w.trace.Tracks = append(w.trace.Tracks, trace.Track{Kind: trace.RedisTrack, Endpoint: "ep_0001", Lane: lane - 3, Name: fmt.Sprintf("ep_0001 #0.%d", lane-3)})
	}
	track := &w.trace.Tracks[lane]
	track.Slices = append(track.Slices, trace.Slice{Kind: trace.CallSlice, Node: n.Index, Start: asked, End: back, Commands: count, Sent: count * 30, Received: count * 200})
	w.push(back, n.Index, func(int) {
		w.trace.Flows = append(w.trace.Flows, trace.Flow{Kind: trace.RedisFlow, Node: n.Index, Points: []trace.Point{
			{Step: trace.Asked, At: asked}, {Step: trace.Sent, Track: lane, At: asked}, {Step: trace.Replied, Track: lane, At: back}, {Step: trace.Resumed, At: w.now}}})
		n.Awaits = append(n.Awaits, trace.Await{For: trace.ForRedis, Start: asked, End: w.now, Commands: count})
		w.body(n, w.between(2, 30))
		w.end(n, w.now)
	})
}

// offload runs a node on the worker that is free first.
func (w *world) offload(n *trace.Node) {
	submitted := w.now
	w.engine(time.Microsecond)
	free := func(k int) time.Duration {
		if s := w.trace.Tracks[k].Slices; len(s) > 0 {
			return s[len(s)-1].End
		}
		return 0
	}
	k := 1
	if free(2) < free(1) {
		k = 2
	}
	n.Place, n.Track, n.Start = trace.OnPool, k, max(w.now+w.between(2, 8), free(k)+time.Microsecond)
	delay := n.Start - submitted
	n.QueueDelay = &delay
	posted := n.Start + w.between(5, 120)
	w.trace.Tracks[k].Slices = append(w.trace.Tracks[k].Slices, trace.Slice{Kind: trace.NodeSlice, Node: n.Index, Start: n.Start, End: posted})
	w.push(posted+w.between(2, 8), n.Index, func(int) {
		w.trace.Flows = append(w.trace.Flows, trace.Flow{Kind: trace.OffloadFlow, Node: n.Index, Points: []trace.Point{
			{Step: trace.Submitted, At: submitted}, {Step: trace.Started, Track: k, At: n.Start}, {Step: trace.Posted, Track: k, At: posted}, {Step: trace.Resumed, At: w.now}}})
		w.engine(time.Microsecond)
		w.end(n, posted)
	})
}

// end settles a node, and readies those that waited for it alone.
func (w *world) end(n *trace.Node, at time.Duration) {
	n.End = at
	for _, reader := range w.readers[n.Index] {
		if w.left[reader]--; w.left[reader] == 0 {
			w.push(w.now, reader, w.begin)
		}
	}
}

// An event is something that the loop does at an instant, or as soon as it is free. Immutable.
type event struct {
	at   time.Duration
	node int
	do   func(node int)
}

// push adds an event, after those of the same instant.
func (w *world) push(at time.Duration, node int, do func(int)) {
	i, _ := slices.BinarySearchFunc(w.events, at, func(e event, at time.Duration) int {
		if e.at <= at {
			return -1
		}
		return 1
	})
	w.events = slices.Insert(w.events, i, event{at, node, do})
}
