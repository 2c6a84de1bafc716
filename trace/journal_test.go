package trace

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
)

// concatPlan is the shape of the example plan: a viewer, two lists of users, their
// concatenation, a take.
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

// playConcat plays a request of concat_plan as on the reactor: eleven commands in four round
// trips.
func playConcat(s *Journals, g *plan.Graph, c clock.Clock, d Detail) (*Journal, *Recording) {
	r := s.Begin(d, g, Reactor, "adaptive", c.Now(), 0)
	call := func(node, commands int) {
		r.Sent(node, 0, 0, commands, 40*commands, c.Now())
		r.Wait(node, ForRedis, commands, 0)
	}
	reply := func(node, commands int) {
		r.Replied(node, 0, 0, commands, 60*commands, 0)
		r.Resume(node)
	}
	begin := func(node int) {
		r.Spawn(node, OnLoop, 1)
		r.Start(node, 0)
	}
	inline := func(node, parent int, start clock.Time) clock.Time {
		end := c.Now()
		r.Spawn(node, Inline, 8)
		if parent >= 0 {
			r.Follow(node, parent, 1)
		}
		r.Start(node, start)
		r.End(node, end, 8)
		return end
	}
	r.Enter()
	begin(0)
	call(0, 1)
	r.Leave()
	reply(0, 1)
	r.End(0, 0, 1)
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
		r.End(node, 0, 4)
		if node == 1 {
			r.Leave()
		}
	}
	inline(4, 3, inline(3, -1, c.Now()))
	return r, r.Finish(nil)
}

// BenchmarkJournal measures the recording of one request of concat_plan. Most of it is reading
// the clock.
func BenchmarkJournal(b *testing.B) {
	g, c := concatPlan(b), clock.NewReal()
	for _, d := range []Detail{JustNodes, Full} {
		b.Run(d.String(), func(b *testing.B) {
			s := NewJournals(c, 0)
			b.ReportAllocs()
			for b.Loop() {
				r, _ := playConcat(s, g, c, d)
				r.Free()
			}
		})
	}
	b.Run("clock", func(b *testing.B) {
		for b.Loop() {
			c.Now()
		}
	})
}

// BenchmarkTrace measures the evaluation of a recording, which only the one who asks for the
// trace pays.
func BenchmarkTrace(b *testing.B) {
	g, c := concatPlan(b), clock.NewReal()
	_, recording := playConcat(NewJournals(c, 0), g, c, Full)
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

func TestJournal(t *testing.T) {
	g, c := concatPlan(t), clock.NewReal()
	s := NewJournals(c, 0)
	for range 3 { // its memory is used again
		r, taken := playConcat(s, g, c, Full)
		recording := taken.Keep()
		r.Free()
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
	assert.True(t, s.Unused())
}

// A request that nobody records has no Journal, and its engine does not check for that: each
// method accepts nil.
func TestANilJournalTakesNothingDown(t *testing.T) {
	s := NewJournals(forbiddenClock{t}, 0)
	r := s.Begin(Off, concatPlan(t), Reactor, "", 1, 0)
	require.Nil(t, r)
	body := r.Body()
	assert.Nil(t, body)
	allocs := testing.AllocsPerRun(10, func() {
		r.Enter()
		r.Spawn(0, OnLoop, 1)
		r.Start(0, 0)
		r.Wait(0, ForRedis, 1, 0)
		r.Sent(0, 0, 0, 1, 1, 1)
		r.Replied(0, 0, 0, 1, 1, 0)
		r.Fired(0, ForTimer, 1)
		r.Resume(0)
		r.Submit(0, 0, 1)
		r.Worked(0, 1, 1)
		r.Offloaded(0, 1, 1, 1)
		r.Outlived(0, 0)
		r.Returned(0)
		r.Follow(1, 0, 1)
		r.Fuse(1, 0, 1, 1)
		r.Unspawn(1)
		r.Shortfall(0, assert.AnError, 1)
		r.End(0, 0, 1)
		r.Fail(0, 0, Failure{Err: assert.AnError})
		body.Work(1)
		body.Done()
		r.Merge(0, body)
		assert.Zero(t, r.Leave())
		assert.Nil(t, r.Finish(nil))
		r.Free()
	})
	assert.Zero(t, allocs)
	assert.True(t, s.Unused())
}

// forbiddenClock is a clock that nobody may read.
type forbiddenClock struct{ t *testing.T }

func (c forbiddenClock) Now() clock.Time {
	c.t.Error("somebody has read the clock")
	return 0
}

// A Journal drops events that do not fit, and counts them. The other events stay true, and the
// critical path is complete.
func TestRecordingIsBounded(t *testing.T) {
	g, c := concatPlan(t), clock.NewReal()
	for sleeps := range 80 {
		b := NewJournals(c, chunkEvents)
		r := b.Begin(Full, g, Reactor, "adaptive", c.Now(), 0)
		r.Enter()
		r.Spawn(0, OnLoop, 0)
		r.Start(0, 0)
		for range sleeps {
			r.Wait(0, ForTimer, 0, c.Now())
			r.Leave()
			r.Fired(0, ForTimer, c.Now())
			r.Resume(0)
		}
		r.End(0, 0, 1)
		tr := r.Finish(nil).Trace()
		require.NoError(t, tr.Check(), sleeps)
		all := 2 + 2*sleeps + 2 // entered and started, a sleep, ended and left
		assert.Equal(t, max(0, all-chunkEvents) > 0, tr.Dropped > 0, sleeps)
		if tr.Dropped == 0 {
			assert.Len(t, tr.Timers, sleeps)
			assert.Len(t, tr.Nodes[0].Awaits, sleeps)
		} else {
			assert.GreaterOrEqual(t, tr.Dropped, all-chunkEvents)
			assert.NotEmpty(t, tr.Tracks[0].Slices)
		}
		path := tr.CriticalPath(Latency)
		require.Len(t, path.Steps, 1)
		assert.Equal(t, tr.Request.Ended, path.Length()+path.Tail)
		assert.False(t, b.Unused())
		r.Free()
		assert.True(t, b.Unused())
	}
}

// A call takes the first free lane of its connection. A lane is free even at the instant at
// which another call ends.
func TestACallTakesALaneAtTheInstantThatItIsFree(t *testing.T) {
	g, c := concatPlan(t), clock.NewManual()
	r := NewJournals(c, 0).Begin(Full, g, Reactor, "adaptive", c.Now(), 0)
	r.Enter()
	r.Spawn(0, OnLoop, 1)
	r.Start(0, 0)
	for range 3 {
		r.Sent(0, 0, 0, 1, 10, c.Now())
		r.Wait(0, ForRedis, 1, 0)
		c.Advance(time.Millisecond)
		r.Replied(0, 0, 0, 1, 10, 0)
		r.Resume(0)
	}
	r.End(0, 0, 1)
	tr := r.Finish(nil).Trace()
	require.NoError(t, tr.Check())
	require.Len(t, tr.Tracks, 2, "the loop, and one lane")
	assert.Len(t, tr.Tracks[1].Slices, 3)
}

// A node that waits again gives up the calls that were open when it went on. This does not
// include a call that was answered since, or one that was sent since.
func TestWhichCallIsGivenUp(t *testing.T) {
	g, c := concatPlan(t), clock.NewManual()
	r := NewJournals(c, 0).Begin(Full, g, Reactor, "adaptive", c.Now(), 0)
	r.Enter()
	r.Spawn(0, OnLoop, 1)
	r.Start(0, 0)
	step := func(call func()) {
		c.Advance(time.Millisecond)
		call()
	}
	sent := func(conn, commands int) { step(func() { r.Sent(0, 0, conn, commands, 10, c.Now()) }) }
	replied := func(conn, commands int) { step(func() { r.Replied(0, 0, conn, commands, 10, 0) }) }
	sent(0, 1)
	sent(1, 2)
	step(func() { r.Wait(0, ForRedis, 3, 0) })
	step(func() { r.Resume(0) })
	replied(0, 1)
	sent(2, 4)
	step(func() { r.Wait(0, ForRedis, 4, 0) })
	replied(2, 4)
	step(func() { r.Resume(0) })
	step(func() { r.End(0, 0, 1) })
	tr := r.Finish(nil).Trace()
	require.NoError(t, tr.Check())
	givenUp := map[int]bool{} // by the number of commands
	for _, track := range tr.Tracks {
		for _, s := range track.Slices {
			if s.Kind == CallSlice {
				givenUp[s.Commands] = s.GivenUp
			}
		}
	}
	assert.Equal(t, map[int]bool{1: false, 2: true, 4: false}, givenUp)
}

// An event says that a node waits for a call. The trace without that event does not say that
// anybody waits for the call.
func TestACallWhoseWaitWasDropped(t *testing.T) {
	g, c := concatPlan(t), clock.NewReal()
	waitless := 0
	for sleeps := range 40 {
		r := NewJournals(c, chunkEvents).Begin(Full, g, Reactor, "adaptive", c.Now(), 0)
		r.Enter()
		for node := range 2 {
			r.Spawn(node, OnLoop, 0)
			r.Start(node, 0)
			for range sleeps * (1 - node) { // of the first node
				r.Wait(node, ForTimer, 0, c.Now())
				r.Fired(node, ForTimer, c.Now())
				r.Resume(node)
			}
			for range 2 {
				r.Sent(node, 0, 1, 1, 10, c.Now())
				r.Sent(node, 0, 2, 1, 10, c.Now())
				r.Wait(node, ForRedis, 2, 0)
				r.Replied(node, 0, 1, 1, 10, 0)
				r.Replied(node, 0, 2, 1, 10, 0)
				r.Resume(node)
			}
			r.End(node, 0, 1)
		}
		tr := r.Finish(nil).Trace()
		require.NoError(t, tr.Check(), sleeps)
		for _, track := range tr.Tracks[1:] {
			waitless += len(track.Slices)
		}
		for _, f := range tr.Flows {
			waited := func(a Await) bool { return a.Start >= f.Points[1].At && a.For == ForRedis }
			if f.Kind == RedisFlow {
				assert.True(t, slices.ContainsFunc(tr.Nodes[f.Node].Awaits, waited), "%d sleeps: %v", sleeps, f)
				waitless--
			}
		}
	}
	assert.Positive(t, waitless)
}

// One request cannot have all that an engine may hold.
func TestOneRequestIsBounded(t *testing.T) {
	g, c := concatPlan(t), clock.NewManual()
	r := NewJournals(c, 4*requestEvents).Begin(Full, g, Reactor, "", c.Now(), 0)
	for range requestEvents + 100 {
		r.Fired(0, ForTimer, c.Now())
	}
	recording := r.Finish(nil)
	assert.Len(t, recording.events, requestEvents)
	assert.Equal(t, 100, recording.Dropped)
	r.Free()
	assert.LessOrEqual(t, cap(r.taken.events), keepEvents, "a free journal keeps little")
}

// The events of a worker fit as a whole or not at all.
func TestMerge(t *testing.T) {
	g, c := concatPlan(t), clock.NewReal()
	for _, events := range []int{8 * chunkEvents, 2 * chunkEvents} {
		b := NewJournals(c, events)
		r := b.Begin(Full, g, TwoPools, "", c.Now(), 0)
		r.Enter()
		r.Spawn(0, OnIOWorker, 0)
		r.Submit(0, c.Now(), 1)
		r.Leave()
		body := r.Body()
		body.Work(3)
		for range 30 {
			body.Wait(0, ForRedis, 2, 0)
			body.Sent(0, 0, 1, 2, 10, c.Now())
			body.Replied(0, 0, 1, 2, 10, 0)
			body.Resume(0)
		}
		end := c.Now()
		body.Done()
		r.Merge(0, body)
		r.End(0, end, 0) // which the worker has not reached before it was done
		r.Returned(0)
		tr := r.Finish(nil).Trace()
		require.NoError(t, tr.Check())
		assert.Equal(t, events == 2*chunkEvents, tr.Dropped > 0)
		if tr.Dropped == 0 {
			assert.Equal(t, "I/O 3", tr.Tracks[1].Name)
			assert.Len(t, tr.Tracks[1].Slices, 31)
			assert.Len(t, tr.Tracks[2].Slices, 30)
			assert.Len(t, tr.Flows, 31)
		}
		r.Free()
		assert.True(t, b.Unused())
	}
}

// Events have the fields of the original specification. What was queued has a queue delay. What
// followed directly has a parent and a depth.
func TestEvents(t *testing.T) {
	g, c := concatPlan(t), clock.NewReal()
	count := map[EventKind]int{}
	last := clock.Time(0)
	_, recording := playConcat(NewJournals(c, 0), g, c, Full)
	for _, e := range recording.Events() {
		count[e.Kind]++
		assert.GreaterOrEqual(t, e.At, last)
		last = e.At
		switch e.Kind {
		case NodeInlined:
			assert.Equal(t, []int{4, 3, 1}, []int{e.Node, e.Parent, e.Depth})
		case CommandSent, ReplyReceived:
			assert.Positive(t, e.Commands)
			assert.Positive(t, e.Bytes)
		case Suspended:
			assert.Equal(t, ForRedis, e.Reason)
		}
	}
	assert.Equal(t, map[EventKind]int{EngineEntered: 1, EngineLeft: 6, NodeStarted: 5, NodeEnded: 5, NodeInlined: 1,
		CommandSent: 5, ReplyReceived: 5, Suspended: 5, CoroutineResumed: 5}, count)

	r := NewJournals(c, 0).Begin(JustNodes, g, Reactor, "", c.Now(), 0)
	r.Enter()
	r.Spawn(0, OnPool, 0)
	queued := c.Now()
	r.Submit(0, queued, 1)
	start := c.Now()
	r.Worked(0, 1, start)
	r.End(0, 0, 0)
	var kinds []string
	for _, e := range r.Finish(nil).Events() {
		kinds = append(kinds, e.Kind.String())
		if e.Kind == QueueDelay {
			assert.Equal(t, start.Sub(queued), e.Delay)
		}
	}
	assert.Equal(t, []string{"queue_delay", "node_start", "node_end"}, kinds)
}

func TestParseDetail(t *testing.T) {
	for _, d := range []Detail{Off, JustNodes, Full} {
		parsed, err := ParseDetail(d.String())
		require.NoError(t, err)
		assert.Equal(t, d, parsed)
	}
	_, err := ParseDetail("all")
	assert.EqualError(t, err, `must be off, nodes or full, not "all"`)
}

func TestPlacesHaveCodes(t *testing.T) {
	for code, place := range placeNames[1:] {
		assert.EqualValues(t, code+1, place.code(), place)
	}
	assert.Panics(t, func() { Place("elsewhere").code() })
}
