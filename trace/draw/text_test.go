package draw

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/tracetest"
	"github.com/rankd/rankd/trace"
)

var update = flag.Bool("update", false, "write the drawings in testdata anew")

// TestDrawings draws the fixtures.
func TestDrawings(t *testing.T) {
	for name, tr := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			require.NoError(t, Text(&out, Options{}, Run{Trace: tr}))
			isStored(t, name+".txt", out.String())
		})
	}
}

// isStored compares a drawing with its file in testdata.
func isStored(t *testing.T, file, drawing string) {
	file = filepath.Join("testdata", file)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(drawing), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), drawing, file)
}

// fixtures returns the traces of package trace's tests by the name of their file. Their clocks
// were set by hand.
func fixtures(t testing.TB) map[string]*trace.Trace {
	files, err := filepath.Glob("../testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	traces := make(map[string]*trace.Trace)
	for _, file := range files {
		doc, err := os.ReadFile(file)
		require.NoError(t, err)
		tr, err := trace.Decode(doc)
		require.NoError(t, err)
		traces[strings.TrimSuffix(filepath.Base(file), ".json")] = tr
	}
	return traces
}

// TestHostileTraces draws traces that no engine makes. The drawings stay within bounds, and
// names cannot control the terminal.
func TestHostileTraces(t *testing.T) {
	for name, tr := range tracetest.Hostile() {
		t.Run(name, func(t *testing.T) {
			var out, full strings.Builder
			require.NoError(t, Text(&out, Options{}, Run{Trace: tr}))
			require.NoError(t, Text(&full, Options{Full: true}, Run{Trace: tr}))
			require.NoError(t, Text(&full, Options{}, Run{Name: "a", Trace: tr}, Run{Name: "b", Trace: tr}))
			assert.LessOrEqual(t, strings.Count(out.String(), "\n"), linesMost+nodesMost+20)
			assert.True(t, utf8.ValidString(full.String()))
			unseen := func(r rune) bool { return r != '\n' && !strconv.IsPrint(r) }
			assert.Negative(t, strings.IndexFunc(full.String(), unseen))
		})
	}
}

// Every node of a random trace starts and ends once. Each call and job leaves and comes back.
func TestDrawingsShowAll(t *testing.T) {
	for seed := range uint64(40) {
		tr := tracetest.Random(seed, 1+int(seed))
		s := newScene(tr)
		seen := make(map[string]int)
		for _, i := range s.instants() {
			switch i.word {
			case starts, ends:
				seen[tr.Nodes[i.node].ID]++
			}
		}
		for _, n := range tr.Nodes {
			assert.Equal(t, 2, seen[n.ID], "seed %d, node %s", seed, n.ID)
		}
		drawn, all := 0, 0
		for _, l := range join(s.instants(), tr.Request.Ended) {
			drawn += len(l.instants)
		}
		all = len(s.instants())
		assert.Equal(t, all, drawn)
		d := newDrawing(s, s.lines(), 20)
		assert.Len(t, d.under, len(tr.Flows))
		for _, u := range d.under {
			assert.Less(t, u.from, u.to, "seed %d", seed)
			assert.Less(t, u.to, len(d.lines), "seed %d", seed)
		}
	}
}

// A call that leaves as another one ends has its own number of commands.
func TestTheNextCallOfAConnection(t *testing.T) {
	tr := &trace.Trace{Version: trace.Version, Engine: trace.Reactor, Nodes: []trace.Node{{ID: "a"}, {ID: "b"}}, Tracks: []trace.Track{{Kind: trace.LoopTrack}, {Kind: trace.RedisTrack}}}
	tr.Tracks[1].Slices = []trace.Slice{{Kind: trace.CallSlice, End: 5, Commands: 1}, {Kind: trace.CallSlice, Node: 1, Start: 5, End: 9, Commands: 2}}
	for node, sent := range []time.Duration{0, 5} {
		tr.Flows = append(tr.Flows, trace.Flow{Kind: trace.RedisFlow, Node: node, Points: []trace.Point{{Step: trace.Asked, At: sent}, {Step: trace.Sent, Track: 1, At: sent}}})
	}
	var texts []string
	for _, i := range newScene(tr).instants() {
		if i.word == sent {
			texts = append(texts, i.text)
		}
	}
	assert.Equal(t, []string{"1 command", "2 commands"}, texts)
}

func TestCompareDrawsOneAboveTheOther(t *testing.T) {
	reactor, pool := fixtures(t)["mixed_pipeline.reactor"], fixtures(t)["mixed_pipeline.pool"]
	var out strings.Builder
	require.NoError(t, Text(&out, Options{}, Run{Name: "adaptive", Trace: reactor}, Run{Name: "pool", Trace: pool}))
	text := out.String()
	assert.Contains(t, text, "adaptive  34.1 ms ███")
	first, second := strings.Index(text, "── adaptive ──"), strings.Index(text, "── pool ──")
	assert.True(t, 0 < first && first < second)
	var alone strings.Builder
	newScene(pool).writeTimeline(&alone, Options{})
	assert.Contains(t, text[second:], alone.String())
	assert.NotContains(t, text, "░ waits for Redis", "a comparison has no waterfalls")
	assert.Equal(t, 2, strings.Count(text, "\nCritical path (latency) n0 viewer → n1 follow → n2 vm → n3 filter → n4 sort → n5 take: "))
}

func TestABrokenWriterIsReported(t *testing.T) {
	run := Run{Trace: tracetest.Random(1, 5)}
	for name, err := range map[string]error{
		"text": Text(brokenWriter{}, Options{}, run), "a comparison": Text(brokenWriter{}, Options{}, run, run),
		"html": HTML(brokenWriter{}, run), "perfetto": Perfetto(brokenWriter{}, run),
	} {
		assert.ErrorContains(t, err, "no space", name)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space") }
