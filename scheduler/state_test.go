package scheduler

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
)

// now is an instant before every deadline of these tests.
const now = 1000

var update = flag.Bool("update", false, "rewrite the expected output of the stories in testdata")

// graphOf builds a graph from lines. "c: a b" means that c depends on a and b. The last line is
// "out: c".
func graphOf(t *testing.T, lines ...string) *plan.Graph {
	t.Helper()
	g := &plan.Graph{Name: "test"}
	index := map[string]int{}
	for _, line := range lines {
		name, rest, ok := strings.Cut(line, ":")
		require.True(t, ok, line)
		deps := strings.Fields(rest)
		if name == "out" {
			for _, d := range deps {
				g.Outputs = append(g.Outputs, index[d])
				g.Nodes[index[d]].IsOutput = true
			}
			continue
		}
		n := &plan.Node{Index: len(g.Nodes), ID: name, Op: "test::" + name, Deps: len(deps)}
		index[name] = n.Index
		g.Nodes = append(g.Nodes, n)
		for _, d := range deps {
			n.Inputs = append(n.Inputs, index[d])
			g.Nodes[index[d]].Succs = append(g.Nodes[index[d]].Succs, n.Index)
		}
		if n.Waits = len(deps); n.Waits == 0 {
			g.Sources = append(g.Sources, n.Index)
		}
	}
	g.Due = len(g.Nodes)
	for _, n := range g.Nodes {
		if n.Readers = len(n.Succs); n.IsOutput {
			n.Readers++
		}
	}
	return g
}

// rowsOf returns a row set of n rows. Results are told apart by the number.
func rowsOf(n int) rowset.RowSet { return rowset.Dense(&rowset.Batch{IDs: make([]int64, n)}) }

// checkInvariants checks what holds between any two calls on a State.
func checkInvariants(t *testing.T, s *State) {
	t.Helper()
	var count [5]int
	for i := range s.nodes {
		n := &s.nodes[i]
		count[n.status]++
		assert.GreaterOrEqual(t, n.waits, int32(0))
		assert.GreaterOrEqual(t, n.readers, int32(0))
		assert.Equal(t, n.status == waiting, n.waits > 0, "node %d waits for %d", i, n.waits)
		if n.status != done || n.readers == 0 {
			assert.Nil(t, n.result.Batch, "node %d holds a result that nobody will read", i)
		}
	}
	assert.Equal(t, count[ready], len(s.readyQueue)-s.head)
	assert.Equal(t, count[running], s.inflight)
	assert.Equal(t, count[done]+count[failed], s.settled)
	if _, err := s.Err(); err == nil {
		assert.Zero(t, count[failed])
	}
}

// TestStateStories replays the stories in testdata/state: a graph, then
// commands, each followed by what the state answered.
//
//	next       hands out nodes until none is left
//	done a 3   node a succeeded with 3 rows
//	fail a why node a failed
func TestStateStories(t *testing.T) {
	files, err := filepath.Glob("testdata/state/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			var graph, commands, comments []string
			for line := range strings.Lines(string(text)) {
				line = strings.TrimRight(line, "\n")
				switch {
				case strings.HasPrefix(line, "# "):
					comments = append(comments, line)
				case strings.HasPrefix(line, "graph "):
					graph = append(graph, strings.TrimPrefix(line, "graph "))
				case strings.HasPrefix(line, "> "):
					commands = append(commands, strings.TrimPrefix(line, "> "))
				}
			}
			got := new(strings.Builder)
			for _, c := range comments {
				fmt.Fprintln(got, c)
			}
			for _, g := range graph {
				fmt.Fprintln(got, "graph", g)
			}
			runCommands(t, got, graphOf(t, graph...), commands)
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got.String()), 0o644))
			}
			assert.Equal(t, string(text), got.String())
		})
	}
}

func runCommands(t *testing.T, w *strings.Builder, g *plan.Graph, commands []string) {
	var s State
	s.Reset(g, 1, 0)
	node := func(name string) int {
		for _, n := range g.Nodes {
			if n.ID == name {
				return n.Index
			}
		}
		require.Fail(t, "no node "+name)
		return -1
	}
	for _, c := range commands {
		fmt.Fprintln(w, ">", c)
		checkInvariants(t, &s)
		words := strings.Fields(c)
		switch words[0] {
		case "next":
			for i, ok := s.Next(); ok; i, ok = s.Next() {
				in, _ := s.Gather(i, nil, nil)
				var sizes []int
				for _, r := range in {
					sizes = append(sizes, r.Len())
				}
				fmt.Fprintln(w, "run", g.Nodes[i].ID, sizes)
			}
		case "done":
			n := 0
			_, err := fmt.Sscan(words[2], &n)
			require.NoError(t, err)
			s.Succeed(node(words[1]), rowsOf(n))
		case "fail":
			s.Fail(node(words[1]), errors.New(strings.Join(words[2:], " ")), now)
		default:
			require.Fail(t, "unknown command "+c)
		}
		var held []string
		for i := range s.nodes {
			if s.nodes[i].result.Batch != nil {
				held = append(held, g.Nodes[i].ID)
			}
		}
		fmt.Fprintf(w, "inflight %d, holds %v\n", s.Inflight(), held)
		if s.Finished() {
			if at, err := s.Err(); err != nil {
				fmt.Fprintf(w, "finished: node %s: %v\n", g.Nodes[at].ID, err)
				continue
			}
			var sizes []int
			for i := range g.Outputs {
				sizes = append(sizes, s.Output(i).Len())
			}
			fmt.Fprintln(w, "finished:", sizes)
		}
	}
	checkInvariants(t, &s)
}

// TestStateRandomGraphs runs random graphs in random order, with and without a failure, and
// checks what must hold in any run.
func TestStateRandomGraphs(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := rng.IntN(12)
		var lines []string
		for i := range n {
			line := fmt.Sprintf("n%d:", i)
			for j := range i {
				for range rng.IntN(3) {
					if rng.IntN(3) == 0 {
						line += fmt.Sprintf(" n%d", j) // a node may be listed twice
					}
				}
			}
			lines = append(lines, line)
		}
		out := "out:"
		for range rng.IntN(3) {
			if n > 0 {
				out += fmt.Sprintf(" n%d", rng.IntN(n))
			}
		}
		g := graphOf(t, append(lines, out)...)
		failAt := -1
		if rng.IntN(3) == 0 && n > 0 {
			failAt = rng.IntN(n)
		}

		var s State
		s.Reset(g, 1, 0)
		var inflight, settled []int
		var failedNode = -1
		for !s.Finished() {
			if rng.IntN(2) == 0 || len(inflight) == 0 {
				if i, ok := s.Next(); ok {
					require.Equal(t, -1, failedNode, "seed %d: started after the first error", seed)
					for _, d := range g.Nodes[i].Inputs {
						require.Contains(t, settled, d, "seed %d", seed)
					}
					in, _ := s.Gather(i, nil, nil)
					for k, r := range in {
						require.Equal(t, g.Nodes[i].Inputs[k]+1, r.Len(), "seed %d: result of the wrong node", seed)
					}
					inflight = append(inflight, i)
				} else {
					require.NotEmpty(t, inflight, "seed %d: stuck", seed)
				}
				checkInvariants(t, &s)
				continue
			}
			k := rng.IntN(len(inflight))
			i := inflight[k]
			inflight = append(inflight[:k], inflight[k+1:]...)
			if i == failAt {
				s.Fail(i, errors.New("boom"), now)
				if failedNode < 0 {
					failedNode = i
				}
			} else {
				s.Succeed(i, rowsOf(i+1))
				settled = append(settled, i)
			}
			checkInvariants(t, &s)
		}
		require.Empty(t, inflight)
		at, err := s.Err()
		if failedNode >= 0 {
			require.Error(t, err)
			require.Equal(t, failedNode, at)
			continue
		}
		require.NoError(t, err)
		require.Len(t, settled, n, "seed %d: every node runs, needed or not", seed)
		for k, i := range g.Outputs {
			require.Equal(t, i+1, s.Output(k).Len())
		}
	}
}

func TestStateSettlingTwicePanics(t *testing.T) {
	var s State
	s.Reset(graphOf(t, "a:", "b: a", "out: b"), 1, 0)
	i, ok := s.Next()
	require.True(t, ok)
	s.Succeed(i, rowsOf(1))
	assert.Panics(t, func() { s.Succeed(i, rowsOf(1)) })
	assert.Panics(t, func() { s.Fail(i, errors.New("late"), now) })
}

func TestStateResetReusesMemory(t *testing.T) {
	g := graphOf(t, "a:", "b: a", "c: a b", "out: c")
	var s State
	var in []rowset.RowSet
	once := func() {
		s.Reset(g, 1, 0)
		for i, ok := s.Next(); ok; i, ok = s.Next() {
			in, _ = s.Gather(i, in[:0], nil)
			s.Succeed(i, rowset.RowSet{})
		}
		s.Release()
	}
	once()
	assert.Zero(t, testing.AllocsPerRun(100, once))
}
