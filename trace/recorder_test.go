package trace

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
)

// concatPlan is the shape of the example plan: a viewer, two lists of users, their concatenation, a take.
func concatPlan(t testing.TB) *plan.Graph {
	reg, err := registry.Default("test")
	require.NoError(t, err)
	g := &plan.Graph{Name: "concat_plan", Outputs: []int{4}, Sources: []int{0}, Registry: reg}
	for i, inputs := range [][]int{{}, {0}, {0}, {1}, {3}} {
		g.Nodes = append(g.Nodes, &plan.Node{Index: i, ID: string(rune('a' + i)), Op: "core::op", Inputs: inputs})
	}
	g.Nodes[3].Refs = []int{2}
	return g
}

// playConcat has a request of concat_plan happen as on the reactor: eleven commands in four round trips.
func playConcat(r *Recorder, g *plan.Graph, c clock.Clock, d Detail) *Recording {
	call := func(node, commands int) {
		r.Sent(node, 0, 0, commands, 40*commands)
		r.Await(node, commands)
	}
	reply := func(node, commands int) {
		r.Replied(node, 0, 0, commands, 60*commands)
		r.Resume(node)
	}
	begin := func(node int) {
		r.Spawn(node, OnLoop, 1)
		r.Start(node)
	}
	inline := func(node, parent int, start clock.Time) clock.Time {
		end := c.Now()
		r.Spawn(node, Inline, 8)
		if parent >= 0 {
			r.Follow(node, parent, 1)
		}
		r.StartAt(node, start)
		r.End(node, end, Outcome{Rows: 8})
		return end
	}
	r.Begin(d, g, Reactor, "adaptive", c.Now())
	r.Enter()
	begin(0)
	call(0, 1)
	r.Leave()
	reply(0, 1)
	r.End(0, 0, Outcome{Rows: 1})
	begin(1)
	call(1, 1)
	begin(2)
	call(2, 1)
	r.Leave()
	for _, node := range []int{1, 2} {
		reply(node, 1)
		call(node, 4)
		r.Leave()
	}
	for _, node := range []int{1, 2} {
		reply(node, 4)
		r.End(node, 0, Outcome{Rows: 4})
		if node == 1 {
			r.Leave()
		}
	}
	inline(4, 3, inline(3, -1, c.Now()))
	return r.Finish(nil)
}

// BenchmarkRecorder is the price of recording one request of concat_plan: reading the clock 22 times is most of it.
func BenchmarkRecorder(b *testing.B) {
	g, c := concatPlan(b), clock.NewReal()
	for _, d := range []Detail{JustNodes, Full} {
		b.Run(d.String(), func(b *testing.B) {
			r := NewRecorder(c, NewBudget(0))
			b.ReportAllocs()
			for b.Loop() {
				playConcat(r, g, c, d)
			}
		})
	}
	b.Run("clock", func(b *testing.B) {
		for b.Loop() {
			c.Now()
		}
	})
}

// BenchmarkTrace is the price of looking at a recording, which who asks for the trace pays.
func BenchmarkTrace(b *testing.B) {
	g, c := concatPlan(b), clock.NewReal()
	recording := playConcat(NewRecorder(c, NewBudget(0)), g, c, Full)
	b.Run("assemble", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			recording.Trace()
		}
	})
	t := recording.Trace()
	b.Run("json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = t.MarshalJSON()
		}
	})
}

func TestRecorder(t *testing.T) {
	g, c := concatPlan(t), clock.NewReal()
	r := NewRecorder(c, NewBudget(0))
	for range 3 { // its memory is used again
		recording := playConcat(r, g, c, Full)
		tr := recording.Trace()
		require.NoError(t, tr.Check())
		assert.Zero(t, tr.Dropped)
		require.Len(t, tr.Tracks, 3)
		assert.Equal(t, []string{"Loop", "ep_0001 #0", "ep_0001 #0 lane 1"}, []string{tr.Tracks[0].Name, tr.Tracks[1].Name, tr.Tracks[2].Name})
		assert.Len(t, tr.Flows, 5)
		assert.Equal(t, 3, tr.Nodes[4].Parent)
		assert.Equal(t, []int{1, 2}, tr.Nodes[3].Inputs)
		calls := 0
		for _, track := range tr.Tracks[1:] {
			calls += len(track.Slices)
		}
		assert.Equal(t, 5, calls)
	}
	assert.True(t, r.budget.Unused(0))
}
