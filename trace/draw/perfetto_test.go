package draw

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/tracetest"
)

// readEvent is an event as a reader of the format sees it. Times are in ns.
type readEvent struct {
	Ph, Name, Cat string
	Pid, Tid, ID  int
	Ts, Dur       float64
	Bp            string
	Args          map[string]any
}

func (r *readEvent) start() int64 { return int64(math.Round(r.Ts * 1000)) }
func (r *readEvent) end() int64   { return int64(math.Round((r.Ts + r.Dur) * 1000)) }

// written returns the events of a document that the package writes.
func written(t *testing.T, runs ...Run) []readEvent {
	var out bytes.Buffer
	require.NoError(t, Perfetto(&out, runs...))
	var d struct{ TraceEvents []readEvent }
	require.NoError(t, json.Unmarshal(out.Bytes(), &d))
	return d.TraceEvents
}

var whole = regexp.MustCompile(`^st*f$`)

// moved bounds by how many ns a slice makes room for the empty ones before it.
const moved = 100

// check checks that no two slices of a thread overlap. It also checks that each flow begins,
// goes on and ends inside a slice.
func check(t *testing.T, events []readEvent, flows int) {
	type thread struct{ pid, tid int }
	slices := make(map[thread][]readEvent)
	named := make(map[thread]bool)
	for _, e := range events {
		at := thread{e.Pid, e.Tid}
		switch e.Ph {
		case "X":
			if e.start() >= e.end() {
				t.Errorf("a flow binds to no empty slice: %v", e)
			}
			if before := slices[at]; len(before) > 0 && before[len(before)-1].end() > e.start() {
				t.Errorf("slices of thread %v overlap: %v", at, e)
			}
			slices[at] = append(slices[at], e)
		case "M":
			named[at] = named[at] || e.Name == "thread_name"
		}
	}
	processes := make(map[int]int) // by thread
	for at := range slices {
		assert.True(t, named[at], "thread %v has no name", at)
		assert.Positive(t, at.tid)
		assert.Zero(t, processes[at.tid], "thread %v is one of two processes", at)
		processes[at.tid] = at.pid
	}
	phases := make(map[int]string)
	last := make(map[int]int64)
	for _, e := range events {
		if e.ID == 0 {
			continue
		}
		phases[e.ID] += e.Ph
		if last[e.ID] > e.start()+moved {
			t.Errorf("flow %d goes back in time", e.ID)
		}
		last[e.ID] = e.start()
		within := false
		for _, s := range slices[thread{e.Pid, e.Tid}] {
			within = within || s.start() <= e.start() && e.start() < s.end()
		}
		if !within {
			t.Errorf("%q of flow %d lies in no slice", e.Ph, e.ID)
		}
		if (e.Ph == "f") != (e.Bp == "e") {
			t.Errorf("%q of flow %d has bp %q: its end is bound to the slice around it", e.Ph, e.ID, e.Bp)
		}
	}
	assert.Len(t, phases, flows)
	for id, p := range phases {
		if !whole.MatchString(p) {
			t.Errorf("flow %d has the phases %s", id, p)
		}
	}
}

// Perfetto needs it: slices of a thread do not overlap, and each flow begins and ends inside a slice.
func TestFlowsBeginAndEndInsideSlices(t *testing.T) {
	for _, tr := range fixtures(t) {
		check(t, written(t, Run{Trace: tr}), len(tr.Flows))
	}
	for seed := range uint64(20) {
		tr := tracetest.Random(seed, 1+int(seed)*8)
		check(t, written(t, Run{Trace: tr}), len(tr.Flows))
	}
}

func TestARowIsAThread(t *testing.T) {
	tr := fixtures(t)["parallel_sleep"]
	var threads, rows []string
	for _, e := range written(t, Run{Trace: tr}) {
		if e.Name == "thread_name" {
			threads = append(threads, fmt.Sprint(e.Args["name"]))
		}
	}
	for _, r := range newScene(tr).rows {
		rows = append(rows, r.name)
	}
	assert.Equal(t, rows, threads)
	assert.Contains(t, threads, "Timer 1")
}

func TestTracesOfAComparisonAreProcesses(t *testing.T) {
	a, b := tracetest.Random(1, 9), tracetest.Random(2, 9)
	events := written(t, Run{Name: "offload_all", Trace: a}, Run{Name: "adaptive", Trace: b})
	check(t, events, len(a.Flows)+len(b.Flows))
	var names []string
	for _, e := range events {
		if e.Name == "process_name" {
			names = append(names, fmt.Sprint(e.Pid, " ", e.Args["name"]))
		}
	}
	require.Len(t, names, 2)
	assert.Contains(t, names[0], "1 offload_all: random_9 took")
	assert.Contains(t, names[1], "2 adaptive: random_9 took")
}

// An empty slice has a width of 1 ns, and flows find it.
func TestEmptySlices(t *testing.T) {
	for name, tr := range tracetest.Hostile() {
		t.Run(name, func(t *testing.T) { check(t, written(t, Run{Trace: tr}), len(tr.Flows)) })
	}
}

func TestMicros(t *testing.T) {
	for ns, want := range map[micros]string{0: "0.000", 1: "0.001", 1_234_567: "1234.567", 60_000_000_000: "60000000.000"} {
		got, err := ns.MarshalJSON()
		require.NoError(t, err)
		assert.Equal(t, want, string(got))
	}
}
