package trace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shape makes a trace of nodes, each given by its inputs, start and end. Nodes whose end is
// negative never ran.
func shape(ended time.Duration, nodes ...Node) *Trace {
	t := &Trace{Version: Version, Request: Request{Ended: ended}, Nodes: nodes}
	for i := range t.Nodes {
		n := &t.Nodes[i]
		n.ID, n.SpanID, n.Index, n.Parent, n.Track, n.Status = string(rune('a'+i)), int64(i)+1, i, -1, -1, Skipped
		if n.End >= 0 {
			n.Place, n.Status = OnLoop, OK
		} else {
			n.End = 0
		}
	}
	for i := range t.Nodes {
		if n := &t.Nodes[i]; n.Ran() {
			n.Ready = t.ready(n)
		}
	}
	return t
}

func node(start, end time.Duration, inputs ...int) Node {
	return Node{Start: start, End: end, Inputs: inputs}
}

const never = time.Duration(-1)

func TestCriticalPath(t *testing.T) {
	for name, tc := range map[string]struct {
		trace            *Trace
		latency, service []int
		bound            int // of the mode Latency
		tail             time.Duration
	}{
		"NoNodes":     {shape(7), nil, nil, -1, 7},
		"NothingRan":  {shape(7, node(0, never), node(0, never, 0)), nil, nil, -1, 7},
		"One":         {shape(7, node(2, 6)), []int{0}, []int{0}, 0, 1},
		"SlowerInput": {shape(20, node(0, 5), node(0, 9), node(9, 20, 0, 1)), []int{1, 2}, []int{1, 2}, 2, 0},
		// The second input ends last because it waited for a worker. The latency path blames
		// it, the service path does not.
		"Waits":                     {shape(20, node(0, 8), node(6, 12), node(12, 20, 0, 1)), []int{1, 2}, []int{0, 2}, 1, 0},
		"TieOfInputs":               {shape(9, node(0, 5), node(0, 5), node(5, 9, 1, 0)), []int{0, 2}, []int{0, 2}, 0, 0},
		"TieOfEnds":                 {shape(5, node(0, 5), node(0, 5)), []int{0}, []int{0}, 0, 0},
		"EmptyLastNode":             {shape(5, node(0, 5), node(5, 5, 0), node(0, 5)), []int{0, 1}, []int{0, 1}, 0, 0},
		"AllEmpty":                  {shape(0, node(0, 0), node(0, 0, 0)), []int{0, 1}, []int{0, 1}, 0, 0},
		"PlanOrderIsNotTopological": {shape(9, node(4, 9, 1), node(0, 4)), []int{1, 0}, []int{1, 0}, 0, 0},
		"NotAllRan":                 {shape(9, node(0, 4), node(0, never, 0), node(4, 8, 0)), []int{0, 2}, []int{0, 2}, 0, 1},
		"SameInputTwice":            {shape(9, node(0, 4), node(4, 9, 0, 0)), []int{0, 1}, []int{0, 1}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, tc.trace.Check())
			for mode, want := range map[Mode][]int{Latency: tc.latency, Service: tc.service} {
				p := tc.trace.CriticalPath(mode)
				var got []int
				for _, s := range p.Steps {
					got = append(got, s.Node)
				}
				assert.Equal(t, want, got, mode)
				if mode == Latency {
					assert.Equal(t, tc.bound, p.Bound)
					assert.Equal(t, tc.tail, p.Tail)
				}
			}
		})
	}
}

// A gap takes more than a tenth of the request, and says what the path waited for.
func TestGaps(t *testing.T) {
	for _, tc := range []struct {
		name string
		want []Segment
	}{
		{"mixed_pipeline.reactor", []Segment{
			{0, ForRedis, us(52), us(10050)}, {1, ForRedis, us(10080), us(18000)}, {1, ForRedis, us(18040), us(25020)}}},
		{"mixed_pipeline.pool", []Segment{
			{0, ForRedis, us(70), us(10050)}, {1, ForRedis, us(10120), us(18000)}, {1, ForRedis, us(18040), us(25020)}}},
		{"parallel_sleep", []Segment{{2, ForTimer, us(2018), us(27020)}, {-1, ForLoop, us(30040), us(36000)}}},
		{"deadline", []Segment{{0, ForRedis, us(52), us(10050)}, {1, ForRedis, us(10080), ms(20)}}},
	} {
		assert.Equal(t, tc.want, fixture(t, tc.name).Gaps())
	}
	exact := shape(100, node(10, 100))
	assert.Empty(t, exact.Gaps(), "a tenth is not more than a tenth")
	longer := shape(100, node(11, 100))
	assert.Equal(t, []Segment{{0, ForLoop, 0, 11}}, longer.Gaps())
	queued := shape(100, node(50, 100))
	delay := time.Duration(38)
	queued.Nodes[0].QueueDelay = &delay
	assert.Equal(t, []Segment{{0, ForLoop, 0, 12}, {0, ForWorker, 12, 50}}, queued.Gaps())
	split := shape(100, node(0, 30), node(36, 100, 0)) // two consecutive waits for the loop count as one
	split.Nodes[0].Awaits = []Await{{For: ForRedis, Start: 0, End: 24}}
	assert.Equal(t, []Segment{{0, ForRedis, 0, 24}, {0, ForLoop, 24, 36}}, split.Gaps()[:2])
}

// Check names what is wrong.
func TestCheck(t *testing.T) {
	for want, spoil := range map[string]func(t *Trace){
		"was ready at":                func(t *Trace) { t.Nodes[1].Ready += 3 },
		"node n1: ready":              func(t *Trace) { t.Nodes[1].Start = t.Nodes[1].Ready - 1 },
		"node n1: await from":         func(t *Trace) { t.Nodes[1].Awaits[0].End = t.Nodes[1].End + 1 },
		"node n2: queue delay":        func(t *Trace) { *t.Nodes[2].QueueDelay = t.Nodes[2].Wait() + 1 },
		"ran nowhere":                 func(t *Trace) { t.Nodes[5].Place = Nowhere },
		"and the next one starts at":  func(t *Trace) { t.Tracks[0].Slices[1].Start-- },
		"slice from":                  func(t *Trace) { s := &t.Tracks[0].Slices[1]; s.End = s.Start - 1 },
		"goes back in time":           func(t *Trace) { t.Flows[0].Points[2].At = 0 },
		"has 1 points":                func(t *Trace) { t.Flows[0].Points = t.Flows[0].Points[:1] },
		"lies in no slice of track 0": func(t *Trace) { t.Flows[0].Points[0].At--; t.Tracks[0].Slices[1].End -= 2 },
		"the critical path takes":     func(t *Trace) { t.Request.Ended = t.Nodes[5].End - 1 },
		"node 0 has the index 7":      func(t *Trace) { t.Nodes[0].Index = 7 },
		"node n0: span 9":             func(t *Trace) { t.Nodes[0].SpanID = 9 },
		"node n0: no node 9":          func(t *Trace) { t.Nodes[0].Parent = 9 },
		"node n0: no track 9":         func(t *Trace) { t.Nodes[0].Track = 9 },
	} {
		trace := fixture(t, "mixed_pipeline.reactor")
		require.NoError(t, trace.Check())
		spoil(trace)
		assert.ErrorContains(t, trace.Check(), want)
	}
}
