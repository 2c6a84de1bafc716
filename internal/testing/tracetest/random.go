// Package tracetest makes traces for tests of drawings: random ones of any size, and hostile ones.
package tracetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
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

// run returns what a Journal takes down of a plan whose nodes read nodes before them.
func run(seed uint64, name string, nodes int, inputs func(node int) []int) *trace.Trace {
	w := &world{
		random: rand.New(rand.NewPCG(seed, 1)), clock: clock.NewManual(), graph: &plan.Graph{Name: name, Registry: registrytest.BuiltIn().Load()},
		left: make([]int, nodes), readers: make([][]int, nodes), rows: make([]int, nodes),
	}
	w.plan(nodes, inputs)
	w.journal = trace.NewJournals(w.clock, 0).Begin(trace.Full, w.graph, trace.Reactor, "adaptive", w.clock.Now(), 0)
	w.clock.Advance(20 * time.Microsecond)
	for i, left := range w.left {
		if left == 0 {
			w.at(0, func() { w.begin(i) })
		}
	}
	for len(w.events) > 0 {
		e := w.events[0]
		w.events = w.events[1:]
		if idle := e.at.Sub(w.clock.Now()); idle > 0 {
			w.journal.Leave()
			w.clock.Advance(idle)
		}
		e.do()
	}
	w.journal.Leave()
	w.clock.Advance(2 * time.Microsecond)
	w.journal.Enter()
	recording := w.journal.Finish(nil)
	recording.RequestID = "r1"
	t := recording.Trace()
	t.TraceID = "0af7651916cd43dd8448eb211c80319c"
	return t
}

// A world is a made-up reactor that runs one request. One goroutine at a time.
type world struct {
	random  *rand.Rand
	clock   *clock.Manual
	graph   *plan.Graph
	journal *trace.Journal
	events  []event       // by instant
	left    []int         // inputs that have not ended
	readers [][]int       // of each node
	rows    []int         // of its result
	free    [2]clock.Time // when each worker is
}

var computing = [...]string{"core::vm", "core::filter", "core::sort", "core::take", "core::concat"}

// plan makes the nodes. A quarter of them wait for Redis.
func (w *world) plan(nodes int, inputs func(node int) []int) {
	for i := range nodes {
		n := &plan.Node{Index: i, ID: fmt.Sprintf("n%d", i), Op: computing[w.random.IntN(len(computing))], Inputs: inputs(i)}
		w.rows[i] = 10 + w.random.IntN(1000)
		if i <= nodes/20 || w.random.IntN(4) == 0 {
			n.Op = "core::media"
		}
		if i%5 == 3 {
			n.Trace = fmt.Sprintf("label %d", i%2)
		}
		for _, in := range n.Inputs {
			w.readers[in] = append(w.readers[in], i)
			w.left[i]++
		}
		w.graph.Nodes = append(w.graph.Nodes, n)
	}
	for i, n := range w.graph.Nodes {
		n.IsOutput = len(w.readers[i]) == 0
	}
}

// between returns a random time, in µs.
func (w *world) between(low, high int) time.Duration {
	return time.Duration(low*1000 + w.random.IntN((high-low)*1000))
}

// begin starts a node that is ready.
func (w *world) begin(i int) {
	w.journal.Enter()
	w.clock.Advance(time.Microsecond)
	switch {
	case w.graph.Nodes[i].Op == "core::media":
		w.start(i, trace.OnLoop, w.between(2, 12))
		w.ask(i)
	case w.random.IntN(3) == 0:
		w.start(i, trace.Inline, w.between(1, 9))
		w.end(i, w.clock.Now())
	default:
		w.offload(i)
	}
}

// start runs the body of a node on the loop.
func (w *world) start(i int, place trace.Place, takes time.Duration) {
	w.journal.Spawn(i, place, 100)
	w.journal.Start(i, w.clock.Now())
	w.clock.Advance(takes)
}

// ask sends commands of a node.
func (w *world) ask(i int) {
	commands := 1 + w.random.IntN(90)
	w.journal.Sent(i, 0, 0, commands, commands*30, w.clock.Now())
	w.journal.Wait(i, trace.ForRedis, commands, 0)
	w.at(w.between(150, 900), func() {
		w.journal.Replied(i, 0, 0, commands, commands*200, 0)
		w.journal.Resume(i)
		w.clock.Advance(w.between(2, 30))
		w.end(i, w.clock.Now())
	})
}

// offload runs a node on the worker that is free first.
func (w *world) offload(i int) {
	w.journal.Spawn(i, trace.OnPool, 100)
	w.journal.Submit(i, w.clock.Now(), 1)
	w.clock.Advance(time.Microsecond)
	worker := 0
	if w.free[1] < w.free[0] {
		worker = 1
	}
	began := max(w.clock.Now().Add(w.between(2, 8)), w.free[worker]+1000)
	done := began.Add(w.between(5, 120))
	w.free[worker] = done
	w.at(done.Sub(w.clock.Now())+w.between(2, 8), func() {
		w.journal.Worked(i, worker, began)
		w.journal.Offloaded(i, worker, began, done)
		w.journal.Returned(i)
		w.clock.Advance(time.Microsecond)
		w.end(i, done)
	})
}

// end settles a node, and readies those that waited for it alone.
func (w *world) end(i int, at clock.Time) {
	w.journal.End(i, at, w.rows[i])
	for _, reader := range w.readers[i] {
		if w.left[reader]--; w.left[reader] == 0 {
			w.at(0, func() { w.begin(reader) })
		}
	}
}

// An event is something that the loop does at an instant, or as soon as it is free. Immutable.
type event struct {
	at clock.Time
	do func()
}

// at has the loop do something after a time, behind what it does at the same instant.
func (w *world) at(after time.Duration, do func()) {
	e := event{w.clock.Now().Add(after), do}
	i, _ := slices.BinarySearchFunc(w.events, e.at, func(e event, at clock.Time) int {
		if e.at <= at {
			return -1
		}
		return 1
	})
	w.events = slices.Insert(w.events, i, e)
}
