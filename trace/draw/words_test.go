package draw

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rivo/uniseg"
	"github.com/stretchr/testify/assert"

	"github.com/rankd/rankd/internal/testing/tracetest"
	"github.com/rankd/rankd/trace"
)

func TestTime(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-1: "0", 0: "0", 1: "1 ns", 850: "850 ns", 1000: "1 µs", 1234: "1.23 µs", 12_345: "12.3 µs", 999_400: "999 µs",
		999_600: "1000 µs", 1_234_567: "1.23 ms", 20 * time.Millisecond: "20 ms", 15 * time.Second: "15 s", 50 * time.Hour: "180000 s",
	} {
		assert.Equal(t, want, duration(d), int64(d))
	}
}

func TestShare(t *testing.T) {
	for want, c := range map[string][2]time.Duration{"0 %": {5, 0}, "<1 %": {1, 1000}, "33 %": {1, 3}, "100 %": {7, 7}} {
		assert.Equal(t, want, share(c[0], c[1]))
	}
	assert.Equal(t, "0 %", share(0, 7))
}

// A name takes at most its width, wherever it is cut, and stays on one line.
func TestName(t *testing.T) {
	for _, c := range []struct {
		name  string
		width int
		want  string
	}{
		{"n1", 5, "n1"}, {"exact", 5, "exact"}, {"longer", 5, "long…"}, {"名前です", 5, "名前…"}, {"a\nb", 9, `a\nb`}, {"\x1b[2J", 9, `\x1b[2J`},
		{"", 9, `""`}, {"  ", 9, `"  "`}, {strings.Repeat("x", 500), 5, "xxxx…"},
	} {
		got := clip(c.name, c.width)
		assert.Equal(t, c.want, got)
		assert.LessOrEqual(t, uniseg.StringWidth(got), c.width)
	}
}

func TestNode(t *testing.T) {
	for want, n := range map[string]trace.Node{
		"n1 follow": {ID: "n1", Op: "core::follow"}, "follow": {ID: "follow", Op: "core::follow"}, "my_vm_2": {ID: "my_vm_2", Op: "core::vm"},
		"n": {ID: "n"}, "n x": {ID: "n", Op: "x"},
	} {
		assert.Equal(t, want, nodeName(&n, 20))
	}
	assert.Equal(t, "n1 fo…", nodeName(&trace.Node{ID: "n1", Op: "core::follow"}, 6))
}

func TestPlace(t *testing.T) {
	tr := &trace.Trace{Nodes: []trace.Node{
		{ID: "a", Place: trace.OnPool, Parent: -1, Fused: 3}, {ID: "b", Place: trace.OnPool, Parent: 0, Fused: 3}, {ID: "c", Place: trace.OnPool, Parent: 1, Fused: 3},
		{ID: "d", Place: trace.OnPool, Parent: -1}, {ID: "e", Place: trace.Inline, Parent: 3}, {ID: "f", Status: trace.Skipped, Parent: -1},
		{ID: "g", Place: trace.OnPool, Parent: 6, Fused: 2}, // it follows itself
	}}
	var places []string
	for i := range tr.Nodes {
		places = append(places, place(tr, &tr.Nodes[i]))
	}
	assert.Equal(t, []string{"pool, 3 fused", "fused into a", "fused into a", "pool", "inline", "skipped", "fused into g"}, places)
}

func TestPathLeavesOutTheMiddleOfALongOne(t *testing.T) {
	s := newScene(tracetest.Chain(100))
	latency := s.path(s.latency)
	assert.True(t, strings.HasPrefix(latency, "n0 media → n1 media → n2 media → label 1 media → n4 media → n5 media → … 88 nodes … → n94 sort → "), latency)
	short := newScene(tracetest.Chain(3))
	assert.Regexp(t, `^n0 media → n1 concat → n2 media: \S+ .s from start to end, \S+ .s waiting to start, \S+ .s after the last$`, short.path(short.latency))
	assert.Regexp(t, `^n0 media → n1 concat → n2 media: \S+ .s from start to end$`, short.path(short.service))
}

func TestSentences(t *testing.T) {
	hostile := tracetest.Hostile()
	assert.Equal(t, "No node ran.", newScene(hostile["skipped"]).bound())
	assert.Equal(t, "No node ran.", newScene(hostile["empty"]).bound())
	assert.Equal(t, "", newScene(hostile["one"]).dropped())
	assert.Equal(t, "The bounds of recording left out 17 events, so this drawing is incomplete.", newScene(hostile["cut"]).dropped())
	assert.Contains(t, newScene(hostile["failed"]).took(), ` on the reactor (adaptive) and failed: node "n8" failed\n<b>with</b> a long text xxx`)
	for engine, want := range map[string]string{"pool": "two pools", "sequential": "the sequential engine", "reactor": "the reactor"} {
		assert.Equal(t, want, engineName(&trace.Trace{Engine: engine}))
	}
}

// Sleeps that overlap are in different rows below the tracks. A row is used again.
func TestSleeps(t *testing.T) {
	sleep := func(from, to time.Duration) trace.Flow {
		return trace.Flow{Kind: trace.TimerFlow, Points: []trace.Point{{At: from}, {At: to}}}
	}
	s := newScene(&trace.Trace{
		Nodes: []trace.Node{{ID: "n"}}, Tracks: []trace.Track{{Kind: trace.LoopTrack}},
		Flows: []trace.Flow{sleep(1, 10), sleep(2, 5), {Kind: trace.RedisFlow, Points: []trace.Point{{}, {}}}, sleep(5, 9), sleep(6, 8), sleep(11, 12)},
	})
	var rows []int
	for _, f := range s.flows {
		rows = append(rows, f.points[1].row)
	}
	assert.Equal(t, []int{2, 3, 1, 4, 3, 2}, rows)
	assert.Len(t, s.rows, 5)
	for _, r := range s.rows[2:] {
		assert.Equal(t, sleepRow, r.kind)
		for k := 1; k < len(r.spans); k++ {
			assert.Less(t, r.spans[k-1].End, r.spans[k].Start)
		}
	}
}

// Each row of a long timeline has its name, too.
func TestEachLaneHasItsName(t *testing.T) {
	tr := &trace.Trace{Nodes: []trace.Node{{ID: "n"}}, Tracks: []trace.Track{{Kind: trace.LoopTrack, Name: "Loop"}}}
	for k := range manyRows {
		tr.Tracks = append(tr.Tracks, trace.Track{Kind: trace.RedisTrack, Name: fmt.Sprintf("ep_market_recommendations_%c #%d", "eu"[k%2], k/2)})
	}
	texts := wellFormed(t, Timeline(tr))
	for k := range manyRows {
		assert.Regexp(t, fmt.Sprintf(`^ep_mark\w*….*tions_%c #%d$`, "eu"[k%2], k/2), texts[4+k])
	}
}

// The names of the lanes of a connection differ where they are cut.
func TestTracksKeepTheirEnds(t *testing.T) {
	for name, want := range map[string]string{
		"Loop": "Loop", "ep_market #0 lane 1": "ep_…ket #0 lane 1", "ep_market #0 lane 12": "ep_…et #0 lane 12", "ep_market #0": "ep_market #0",
		"a_very_long_endpoint #1": "a_very_…dpoint #1", "a_very_long_endpoint": "a_very_l…endpoint", "名前名前名前名前名前 #1": "名前名…前名前 #1", "x\n #1234567890123456": "x\\n #12345678901…",
	} {
		assert.Equal(t, want, fitTrack(name, 17), name)
	}
}
