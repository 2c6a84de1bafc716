package explain_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/explain"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
)

// lostAt finds in the plainest way where an id was lost. It walks all ways back from the
// outputs, except through the right sides of joins. It looks for nodes with an input that has
// the id and a result that does not. It prefers nodes that do not expand, and among them the
// one with the longest way from a source. It returns the node on the right side that lost the
// id before, if that node is an inner join. It returns -1 if there is no such node.
func lostAt(g *plan.Graph, rows []scheduler.NodeRows, id int64) int {
	has := func(node int) bool {
		ids := rows[node].Out
		for i := range ids.Len() {
			if ids.ID(i) == id {
				return true
			}
		}
		return false
	}
	before := func(node int) []int { return append(slices.Clone(g.Nodes[node].Inputs), g.Nodes[node].Refs...) }
	var depth func(node int) int
	depth = func(node int) (d int) {
		for _, b := range before(node) {
			d = max(d, depth(b)+1)
		}
		return d
	}
	var lost []int
	aside := false // the right sides of joins count, too
	var walk func(node int)
	walk = func(node int) {
		found := false
		for i, b := range before(node) {
			if g.Nodes[node].Op == "core::join" && i > 0 && !aside {
				continue
			}
			found = found || has(b)
			walk(b)
		}
		if found && !has(node) {
			lost = append(lost, node)
		}
	}
	for _, output := range g.Outputs {
		walk(output)
	}
	best := -1
	better := func(a, b int) bool { // nodes that do not expand go first, then the deepest
		x, y := g.Nodes[a].Op == "test::children", g.Nodes[b].Op == "test::children"
		if x != y {
			return y
		}
		if depth(a) != depth(b) {
			return depth(a) > depth(b)
		}
		return a < b
	}
	for _, node := range lost {
		if best < 0 || better(node, best) {
			best = node
		}
	}
	// An inner join loses what its right side has lost.
	for best >= 0 && g.Nodes[best].Op == "core::join" && g.Nodes[best].Params.String("how") == "inner" && has(g.Nodes[best].Inputs[0]) {
		lost, aside = nil, true
		if right := g.Nodes[best].Refs[0]; !has(right) {
			walk(right)
		}
		lost = slices.DeleteFunc(lost, func(node int) bool { return g.Nodes[node].Op == "test::children" })
		if len(lost) == 0 {
			break
		}
		best = lost[0]
		for _, node := range lost {
			if better(node, best) {
				best = node
			}
		}
	}
	return best
}

// The test runs random plans and ids. The engines give the same answer with and without an
// explanation, and the same explanation. It says of each missing id what a plain trace of the
// rows says. It says of each returned row what the rows contain.
func TestExplanationsOfRandomPlans(t *testing.T) {
	w := newWorld(t)
	kinds := map[string]int{}
	for seed := range uint64(90) {
		rng := rand.New(rand.NewPCG(seed, 14))
		g := w.randomPlan(rng)
		asked := explain.Asked{All: true, IDs: []int64{0, 1, 2, 5, 10, 11, 20, 30, 39, 40, 41, 1000}}
		var want string
		for _, engine := range []string{"sequential", "pool", "reactor", "offload_all"} {
			e, r := w.explain(engine, g, asked)
			plainly := w.run(engine, g, false)
			require.Equal(t, len(plainly.Outputs), len(r.Outputs))
			for i := range r.Outputs {
				require.Equal(t, idsOf(plainly, i), idsOf(r, i), "seed %d", seed)
			}
			require.Nil(t, plainly.Rows())
			doc, err := e.MarshalJSON()
			require.NoError(t, err)
			if want == "" {
				want = string(doc)
				checkMissing(t, g, r, e, asked, kinds)
				checkRows(t, g, r, e)
			}
			require.Equal(t, want, string(doc), "seed %d on %s", seed, engine)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	for _, kind := range []string{explain.NeverACandidate, task.Filtered, task.Cut, task.Expanded, task.Unmatched} {
		assert.Greater(t, kinds[kind], 5, kind)
	}
}

func idsOf(r *scheduler.Result, output int) (ids []int64) {
	return idsIn(r.Outputs[output])
}

func idsIn(rows rowset.RowSet) (ids []int64) {
	for i := range rows.Len() {
		ids = append(ids, rows.ID(i))
	}
	return ids
}

func checkMissing(t *testing.T, g *plan.Graph, r *scheduler.Result, e *explain.Explanation, asked explain.Asked, kinds map[string]int) {
	missing := map[int64]*explain.Missing{}
	for i := range e.Missing {
		missing[e.Missing[i].ID] = &e.Missing[i]
	}
	for _, id := range asked.IDs {
		returned := false
		for i := range r.Outputs {
			returned = returned || slices.Contains(idsOf(r, i), id)
		}
		m := missing[id]
		assert.Equal(t, returned, m == nil, "id %d", id)
		if m == nil {
			continue
		}
		kinds[m.Kind]++
		at := lostAt(g, r.Rows(), id)
		if at < 0 {
			assert.Equal(t, explain.NeverACandidate, m.Kind)
			assert.Nil(t, m.At)
			continue
		}
		require.NotNil(t, m.At, "id %d", id)
		assert.Equal(t, g.Nodes[at].ID, m.At.Node, "id %d", id)
		switch g.Nodes[at].Op {
		case "core::filter":
			assert.Equal(t, task.Filtered, m.Kind)
			require.NotNil(t, m.At.Tree)
			assert.Equal(t, false, m.At.Tree.Value.Is)
		case "core::take":
			assert.Equal(t, task.Cut, m.Kind)
			assert.Greater(t, m.At.Before, m.At.Kept)
			assert.Equal(t, r.Rows()[at].Out.Len(), m.At.Kept)
		case "test::children":
			assert.Equal(t, task.Expanded, m.Kind)
		case "core::dedupe":
			assert.Equal(t, task.Deduplicated, m.Kind)
			assert.NotEmpty(t, m.At.Instead)
			require.Len(t, m.At.Values, 1, "the value that another row has, too")
			assert.NotNil(t, m.At.Values[0].Value.Is)
			for _, instead := range m.At.Instead {
				assert.True(t, slices.ContainsFunc(idsIn(r.Rows()[at].Out), func(id int64) bool { return id == instead }))
			}
		case "core::aggregate":
			assert.Equal(t, task.Deduplicated, m.Kind)
			require.Len(t, m.At.Instead, 1)
			assert.Contains(t, idsIn(r.Rows()[at].Out), m.At.Instead[0])
		case "core::cap":
			assert.Equal(t, task.Capped, m.Kind)
		case "core::sample":
			assert.Equal(t, task.Cut, m.Kind)
		case "core::join":
			assert.Equal(t, task.Unmatched, m.Kind)
		case "core::blend":
			assert.Equal(t, task.Cut, m.Kind)
		default:
			t.Errorf("%s loses ids", g.Nodes[at].Op)
		}
		last := m.Steps[len(m.Steps)-1]
		assert.Equal(t, m.At.Before, last.After)
	}
}

func checkRows(t *testing.T, g *plan.Graph, r *scheduler.Result, e *explain.Explanation) {
	rows := 0
	for i, output := range g.Outputs {
		for pos := range r.Outputs[i].Len() {
			if rows == explain.RowsMax {
				return
			}
			row := e.Rows[rows]
			rows++
			assert.Equal(t, [3]int{int(r.Outputs[i].ID(pos)), pos + 1, r.Outputs[i].Len()}, [3]int{int(row.ID), row.Rank, row.Of})
			assert.Equal(t, g.Nodes[output].ID, row.Output)
			require.NotEmpty(t, row.Sources)
			assert.Equal(t, row.Sources[0].Node, row.Steps[0].Node)
			assert.Equal(t, row.Output, row.Steps[len(row.Steps)-1].Node)
			for k, s := range row.Steps {
				at := slices.IndexFunc(g.Nodes, func(n *plan.Node) bool { return n.ID == s.Node })
				assert.Equal(t, row.ID, r.Rows()[at].Out.ID(s.After-1), "the row has its id after each step")
				if k == 0 {
					assert.Contains(t, []string{"test::fixed_source", "test::children"}, s.Op)
					assert.Zero(t, s.Before)
					continue
				}
				assert.Equal(t, row.Steps[k-1].After, s.Before, "a row is where the step before left it")
				if s.Kind == task.Computed && s.Op == "core::vm" {
					assert.Equal(t, s.Value.Is, s.Tree.Value.Is, "a tree has the value that the run has written")
				}
			}
			for _, c := range row.Columns {
				assert.Contains(t, []string{"core::vm", "core::aggregate"}, c.Op)
				last := -1
				for k, s := range row.Steps {
					if s.Kind == task.Computed {
						last = k
					}
				}
				require.GreaterOrEqual(t, last, 0)
				assert.Equal(t, row.Steps[last].Node, c.Node)
				assert.Equal(t, row.Steps[last].Value.Is, c.Value.Is)
			}
		}
	}
	assert.Len(t, e.Rows, rows)
}

// The JSON of an explanation.
func TestJSON(t *testing.T) {
	w := newWorld(t)
	g := w.load([]string{
		node("src", "fixed_source", `"row_count": 6`),
		node("score", "vm", `"out_key": 2001, "expr_id": "half"`, "src"),
		node("good", "filter", `"pred_id": "middle"`, "score"),
	}, "good")
	e, _ := w.explain("sequential", g, explain.Asked{IDs: []int64{2}})
	doc, err := json.Marshal(e)
	require.NoError(t, err)
	assert.JSONEq(t, `{"rows":[],"missing":[{"id":2,"kind":"filtered",
		"at":{"node":"good","op":"core::filter","kind":"filtered","rank_before":2,"of":6,
			"tree":{"op":"and","value":false,"terms":[{"op":"cmp","name":">","value":false,"terms":[{"op":"key_ref","name":"id","value":2},{"op":"const_number","value":2.0}]}]},
			"because":{"op":"cmp","name":">","value":false,"terms":[{"op":"key_ref","name":"id","value":2},{"op":"const_number","value":2.0}]}},
		"steps":[{"node":"src","op":"test::fixed_source","kind":"source","rank_after":2,"of":6},
			{"node":"score","op":"core::vm","kind":"computed","rank_before":2,"rank_after":2,"of":6,"column":"final_score","value":0.5,
			"tree":{"op":"mul","value":0.5,"terms":[{"op":"key_ref","name":"id","value":2},
				{"op":"coalesce","value":0.25,"terms":[{"op":"param_ref","name":"weight","value":0.25}]}]}}]}]}`, string(doc))
}

// scored are nodes with labels that score and cut the six rows of the source.
var scored = []string{
	node("src", "fixed_source", `"row_count": 6`),
	node("score", "vm", `"out_key": 2001, "expr_id": "half", "trace": "the score"`, "src"),
	node("good", "filter", `"pred_id": "middle"`, "score"),
	node("sorted", "sort", `"by": 2001, "order": "desc"`, "good"),
	node("top", "take", `"count": 2, "trace": "best"`, "sorted"),
}

// A page explains the rows before it, on it and after it.
func TestAPageIsExplained(t *testing.T) {
	w := newWorld(t)
	g := w.load([]string{
		node("src", "fixed_source", `"row_count": 6`),
		node("sorted", "sort", `"by": 1, "order": "desc"`, "src"),
		node("page", "take", `"count": 2, "offset": 3`, "sorted"),
	}, "page")
	e, _ := w.explain("sequential", g, explain.Asked{IDs: []int64{6, 2, 1}})
	var out strings.Builder
	require.NoError(t, explain.Text(&out, e))
	assert.Contains(t, out.String(), "id 6 is not in the answer: cut by page (core::take), where it had rank 1 of 6, and 2 were kept\n      the first 3 are passed over\n")
	assert.Contains(t, out.String(), "id 1 is not in the answer: cut by page (core::take), where it had rank 6 of 6, and 2 were kept\n      id is 1, and lacks 1\n")
	assert.Contains(t, out.String(), "· page (core::take): kept, rank 5 → 2 of 2\n")
}

// The test has the texts for people. The columns of a join are explained by the row that it
// met. So is an id that the other side has lost. A label comes before the node's id.
func TestTheOtherSideOfAJoinIsFollowed(t *testing.T) {
	w := newWorld(t)
	g := w.load(append(slices.Clone(scored),
		node("bare", "fixed_source", `"row_count": 9`),
		node("both", "join", `"right": "top", "how": "inner", "columns": ["final_score"]`, "bare"),
		node("out", "take", `"count": 1, "trace": "list"`, "both"),
	), "out")
	e, _ := w.explain("sequential", g, explain.Asked{IDs: []int64{5, 3, 2, 8, 77}})
	var out strings.Builder
	require.NoError(t, explain.Text(&out, e))
	assert.Equal(t, strings.TrimPrefix(`
id 3 is not in the answer: cut by best (top, core::take), where it had rank 4 of 4, and 2 were kept
      final_score is 0.75, and lacks 0.5
   before that:
   · src (test::fixed_source): source, rank 3 of 6
   · the score (score, core::vm): computed final_score = 0.75, rank 3 of 6
      mul = 0.75
         id = 3
         coalesce = 0.25
            weight = 0.25
   · good (core::filter): kept, rank 3 → 1 of 4
   · sorted (core::sort): sorted final_score = 0.75, rank 1 → 4 of 4
   it also went elsewhere:
      without a match in both (core::join), where it had rank 3 of 9

id 2 is not in the answer: filtered out by good (core::filter), where it had rank 2 of 6
      because:
         cmp > = false
            id = 2
            2
   before that:
   · src (test::fixed_source): source, rank 2 of 6
   · the score (score, core::vm): computed final_score = 0.5, rank 2 of 6
      mul = 0.5
         id = 2
         coalesce = 0.25
            weight = 0.25
   it also went elsewhere:
      without a match in both (core::join), where it had rank 2 of 9

id 8 is not in the answer: without a match in both (core::join), where it had rank 8 of 9
      the right side does not have it
      id = 8
   before that:
   · bare (test::fixed_source): source, rank 8 of 9

id 77 is not in the answer: it never was a candidate

1. id 5, of the 1 rows of list
   source  bare (test::fixed_source), rank 5 of 9
   column  final_score = 1.25, written by the score (score, core::vm)
   · bare (test::fixed_source): source, rank 5 of 9
   · both (core::join): joined, rank 5 → 1 of 2
      it got its columns from row 2 of the right side
      id = 5
      the row that it met:
      · src (test::fixed_source): source, rank 5 of 6
      · the score (score, core::vm): computed final_score = 1.25, rank 5 of 6
         mul = 1.25
            id = 5
            coalesce = 0.25
               weight = 0.25
      · good (core::filter): kept, rank 5 → 3 of 4
      · sorted (core::sort): sorted final_score = 1.25, rank 3 → 2 of 4
      · best (top, core::take): kept, rank 2 of 2
   · list (out, core::take): kept, rank 1 of 1

`, "\n"), out.String())

	row := e.Rows[0]
	assert.Equal(t, "list", row.Label)
	assert.Equal(t, explain.Column{Name: "final_score", Value: explain.Value{Is: 1.25}, Node: "score", Op: "core::vm", Label: "the score"}, row.Columns[0])
	assert.Equal(t, "best", row.Steps[1].Joined[4].Label)
}

// A join by another column than the id explains the row that it met. It does not take that row
// for a source.
func TestAJoinByAColumn(t *testing.T) {
	w := newWorld(t)
	g := w.load([]string{
		node("src", "fixed_source", `"row_count": 8`),
		node("quarter", "vm", `"out_key": 2001, "expr_id": "half"`, "src"),
		node("other", "fixed_source", `"row_count": 99`),
		node("rest", "vm", `"out_key": 2002, "expr_id": "back"`, "other"),
		node("wanted", "vm", `"out_key": 1001, "expr_id": "half"`, "rest"),
		node("met", "join", `"right": "wanted", "on": "final_score", "right_on": "score", "columns": ["model_score_1"]`, "quarter"),
		node("same", "join", `"right": "quarter", "columns": ["final_score"]`, "met"),
	}, "same")
	e, _ := w.explain("sequential", g, explain.Asked{IDs: []int64{4, 50}})
	require.Len(t, e.Rows, 1)
	row := e.Rows[0]
	assert.Equal(t, []string{"src", "quarter", "met", "same"}, nodesOf(row.Steps))
	assert.Equal(t, []string{"other", "rest", "wanted"}, nodesOf(row.Steps[2].Joined))
	assert.Equal(t, 99, row.Steps[2].Joined[2].After, "id 99, since 100 - 99 is 4 / 4")
	assert.Empty(t, row.Steps[3].Joined, "the row has been at src and quarter itself")
	assert.Equal(t, []explain.Source{{Node: "src", Op: "test::fixed_source", Rank: 4, Of: 8}}, row.Sources)
	written := map[string]string{}
	for _, c := range row.Columns {
		written[c.Name] = c.Node
	}
	assert.Equal(t, map[string]string{"final_score": "quarter", "model_score_1": "wanted"}, written)
	assert.Equal(t, explain.NeverACandidate, e.Missing[0].Kind, "a join only looks at the rows of its right side")

	inner := w.load([]string{
		node("src", "fixed_source", `"row_count": 8`),
		node("quarter", "vm", `"out_key": 2001, "expr_id": "half"`, "src"),
		node("other", "fixed_source", `"row_count": 99`),
		node("rest", "vm", `"out_key": 2002, "expr_id": "back"`, "other"),
		node("few", "take", `"count": 2`, "rest"),
		node("met", "join", `"right": "few", "how": "inner", "on": "final_score", "right_on": "score", "columns": ["score"]`, "quarter"),
	}, "met")
	e, _ = w.explain("sequential", inner, explain.Asked{IDs: []int64{3}})
	require.Len(t, e.Missing, 1)
	assert.Equal(t, task.Unmatched, e.Missing[0].Kind, "a join by another column says nothing of ids")
	assert.Equal(t, "met", e.Missing[0].At.Node)
}

// The From of a task may name rows that do not exist. Its other rows still count. Its node runs
// a second time, but only once, however many rows are explained.
func TestFromBeyondTheRows(t *testing.T) {
	runs := 0
	w := newWorld(t, task.Spec{
		Op: "test::wrong", Inputs: 1, Output: task.SameRows, Run: func(c *task.Ctx) (rowset.RowSet, error) { return c.Inputs[0], nil },
		Explain: func(c *task.Ctx, _ rowset.RowSet) task.Account {
			runs++
			return task.Account{From: func(pos int) []task.RowAt {
				n := c.Inputs[0].Len()
				return []task.RowAt{{Pos: n}, {Pos: -1}, {Pos: n + 7}, {Side: 1}, {Side: -2}, {Side: task.InResult}, {Pos: pos}}
			}}
		},
	})
	g := w.load([]string{node("src", "fixed_source", `"row_count": 3`), node("wrong", "test::wrong", "", "src")}, "wrong")
	e, _ := w.explain("sequential", g, explain.Asked{All: true})
	require.Len(t, e.Rows, 3)
	assert.Equal(t, 1, runs)
	for i, row := range e.Rows {
		assert.Equal(t, []explain.Source{{Node: "src", Op: "test::fixed_source", Rank: i + 1, Of: 3}}, row.Sources)
		assert.Equal(t, []string{"src", "wrong"}, nodesOf(row.Steps))
	}
}

// Lacks is the difference between a cut row's score and the last kept row's, in either order.
func TestLacks(t *testing.T) {
	for _, order := range []string{"asc", "desc"} {
		w := newWorld(t)
		g := w.load([]string{
			node("src", "fixed_source", `"row_count": 5`),
			node("score", "vm", `"out_key": 2001, "expr_id": "half"`, "src"),
			node("sorted", "sort", `"by": 2001, "order": "`+order+`"`, "score"),
			node("top", "take", `"count": 2`, "sorted"),
		}, "top")
		e, _ := w.explain("sequential", g, explain.Asked{IDs: []int64{3}})
		require.Len(t, e.Missing, 1)
		assert.Equal(t, &explain.Value{Is: 0.25}, e.Missing[0].At.Lacks, order)
		assert.Equal(t, &explain.Value{Is: 0.75}, e.Missing[0].At.Score, order)
	}
}

func nodesOf(steps []explain.Step) (ids []string) {
	for _, s := range steps {
		ids = append(ids, s.Node)
	}
	return ids
}

// More rows than the bound are counted.
func TestBounds(t *testing.T) {
	w := newWorld(t)
	g := w.load([]string{node("src", "fixed_source", `"row_count": 250`)}, "src")
	e, _ := w.explain("reactor", g, explain.Asked{All: true, IDs: []int64{240, 240, -1, -1}})
	assert.Len(t, e.Rows, explain.RowsMax)
	assert.Equal(t, 150, e.LeftOut)
	assert.Len(t, e.Missing, 1)
}

// A float has a fraction or an exponent, so that readers can tell it from an integer.
func TestValuesInJSON(t *testing.T) {
	for want, value := range map[string]any{
		"9007199254740993": int64(1<<53 + 1), "0.0": 0.0, "0.5": 0.5, "1.0": 1.0, "-3.0": -3.0, "1000000000000000.0": 1e15, "100000000000000000000.0": 1e20,
		"1e+21": 1e21, "1e-7": 1e-7, `"NaN"`: math.NaN(), `"-Inf"`: math.Inf(-1), "null": nil, `"<a>"`: "<a>",
	} {
		text, err := explain.Value{Is: value}.MarshalJSON()
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
}

// An explanation names a node that has failed, and its stand-in.
func TestNodesThatHaveFailed(t *testing.T) {
	w := newWorld(t)
	failing := func(onError string) string {
		return `{"node_id": "broken", "op": "sleep", "inputs": ["src"], "params": {"duration_ms": 0, "fail_after_sleep": true}, "on_error": ` + onError + `}`
	}
	source, spare := node("src", "fixed_source", `"row_count": 3`), node("spare", "take", `"count": 1`, "src")
	for onError, want := range map[string]string{
		`"empty"`:               "id 2 is not in the answer: gone with the failure of broken (test::sleep), where it had rank 2 of 3",
		`"skip"`:                "the node failed, and its input stood in for its result",
		`{"fallback": "spare"}`: "the node failed, and spare stood in for it",
	} {
		nodes := []string{source, failing(onError), node("top", "take", `"count": 3`, "broken")}
		if strings.Contains(onError, "fallback") {
			nodes = append(nodes, spare)
		}
		g := w.lenient(nodes, "top")
		for engine := range w.engines {
			e, r := w.explain(engine, g, explain.Asked{IDs: []int64{1, 2}})
			var out strings.Builder
			require.NoError(t, explain.Text(&out, e))
			assert.Contains(t, out.String(), want, engine)
			assert.Equal(t, len(idsOf(r, 0)), map[string]int{`"empty"`: 0, `"skip"`: 3, `{"fallback": "spare"}`: 1}[onError])
			for _, row := range e.Rows {
				assert.Equal(t, "src", row.Sources[0].Node)
			}
		}
	}
}
