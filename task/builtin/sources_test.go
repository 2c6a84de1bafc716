package builtin_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/rowsettest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// Keys of sourceTables.
const (
	keySource registry.KeyID = 5501
	keyRank   registry.KeyID = 5502
)

// keyNames are the names of the keys of rowsettest in sourceTables.
var keyNames = map[registry.KeyID]string{
	registry.IDKey: "id", 1001: "f1", 1002: "f2", 2001: "f3", 3001: "s1", 3002: "s2", 5001: "i1", 5002: "i2", 5101: "b1", 5201: "set1", 5202: "set2", 5251: "v1", 5252: "v2",
	keySource: "source", keyRank: "source_rank",
}

// comparableKeys are the keys by which rows can be compared.
var comparableKeys = []registry.KeyID{registry.IDKey, 1001, 1002, 3001, 3002, 5001, 5002, 5101}

// specOf returns a built-in task.
func specOf(t testing.TB, op string) task.Spec {
	schema, ok := builtin.Catalog().OpSchema(op)
	require.True(t, ok, op)
	return *schema.Impl.(*task.Spec)
}

// keyOf returns one of these keys that the rows have, or else the id.
func keyOf(rng *rand.Rand, rows rowset.RowSet, keys ...registry.KeyID) registry.KeyID {
	for _, i := range rng.Perm(len(keys)) {
		if rows.Batch.Has(keys[i]) {
			return keys[i]
		}
	}
	return registry.IDKey
}

// runSource runs a task over the tables of this file. It checks that the task does not change
// its inputs.
func runSource(t *testing.T, op string, c rankdtest.Case) (rowset.RowSet, error) {
	t.Helper()
	c.Registry = sourceRegistry()
	var before []table
	given := slices.Clone(c.Inputs)
	for _, ref := range c.Refs {
		given = append(given, ref)
	}
	for _, in := range given {
		before = append(before, tableOf(in))
	}
	out, err := rankdtest.Run(specOf(t, op), c)
	for i, in := range given {
		require.True(t, reflect.DeepEqual(before[i], tableOf(in)), "input %d has changed", i)
	}
	return out, err
}

// randomInputs returns row sets whose ids and values overlap.
func randomInputs(rng *rand.Rand, n int) []rowset.RowSet {
	inputs := make([]rowset.RowSet, n)
	for i := range inputs {
		inputs[i] = rowsettest.RowSet(rng, 330)
	}
	return inputs
}

func tablesOf(inputs []rowset.RowSet) []table {
	var tables []table
	for _, in := range inputs {
		tables = append(tables, tableOf(in))
	}
	return tables
}

// randomProvenance returns parameters for source and rank columns, and their meaning.
func randomProvenance(rng *rand.Rand, inputs int, needNames bool) (map[string]any, provenanceOf) {
	params, p := map[string]any{}, provenanceOf{}
	if rng.IntN(2) == 0 {
		params["source"], p.source = "source", keySource
	}
	if rng.IntN(2) == 0 {
		params["rank"], p.rank = "source_rank", keyRank
	}
	if needNames || p.source != 0 {
		for i := range inputs {
			p.names = append(p.names, "in"+strconv.Itoa(i))
		}
		params["names"] = p.names
	}
	return params, p
}

const randomRuns = 40

func TestUnionAsReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 1))
	for range randomRuns {
		inputs := randomInputs(rng, 1+rng.IntN(4))
		params, p := randomProvenance(rng, len(inputs), false)
		out, err := runSource(t, "union", rankdtest.Case{Params: params, Inputs: inputs})
		require.NoError(t, err)
		requireTable(t, refUnion(tablesOf(inputs), p), out)
	}
}

func TestDedupeAsReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 2))
	for range 2 * randomRuns {
		in := rowsettest.RowSet(rng, 2500)
		params := map[string]any{}
		by, keep, column, sets := registry.KeyID(0), "first", registry.KeyID(0), registry.KeyID(0)
		if rng.IntN(3) > 0 {
			by = keyOf(rng, in, comparableKeys...)
			params["by"] = keyNames[by]
		}
		if ordered := keyOf(rng, in, 1001, 2001, 5001); rng.IntN(3) > 0 && ordered != registry.IDKey {
			keep, column = []string{"max", "min"}[rng.IntN(2)], ordered
			params["keep"], params["column"] = keep, keyNames[column]
		}
		if rng.IntN(2) == 0 && in.Batch.Set(5201) != nil {
			sets = 5201
			params["sources"] = "set1"
		}
		out, err := runSource(t, "dedupe", rankdtest.Case{Params: params, Inputs: rankdtest.Inputs(in)})
		require.NoError(t, err)
		requireTable(t, refDedupe(tableOf(in), by, keep, column, sets), out)
	}
}

// Sets with more members than a word has bits are merged in another way.
func TestDedupeMergesSetsOfManyMembers(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 3))
	for _, members := range []int{1, 2, 62, 63, 64, 65, 200} {
		for range 30 {
			const rows = 150
			ids := make([]int64, rows)
			sets := make([]any, rows)
			for i := range ids {
				ids[i] = rng.Int64N(40)
				set := []string{}
				for range rng.IntN(4) {
					set = append(set, "m"+strconv.Itoa(rng.IntN(members)))
				}
				if sets[i] = any(set); rng.IntN(5) == 0 {
					sets[i] = nil
				}
			}
			in := rowsettest.Rows(rng, rankdtest.WithSets(rankdtest.Rows(ids...), 5202, sets...).Batch)
			out, err := runSource(t, "dedupe", rankdtest.Case{Params: map[string]any{"sources": "set2"}, Inputs: rankdtest.Inputs(in)})
			require.NoError(t, err)
			requireTable(t, refDedupe(tableOf(in), 0, "first", 0, 5202), out)
		}
	}
}

func TestJoinAsReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 4))
	sameType := [][]registry.KeyID{{registry.IDKey, 5001, 5002}, {1001, 1002, 2001}, {3001, 3002}, {5101}}
	for range 2 * randomRuns {
		left, right := rowsettest.RowSet(rng, 330), rowsettest.RowSet(rng, 330)
		if rng.IntN(8) == 0 {
			right = left
		}
		params := map[string]any{}
		on, rightOn := registry.IDKey, registry.IDKey
		if rng.IntN(3) > 0 {
			keys := sameType[rng.IntN(len(sameType))]
			on, rightOn = keyOf(rng, left, keys...), keyOf(rng, right, keys...)
			if (on == registry.IDKey || rightOn == registry.IDKey) && keys[0] != registry.IDKey {
				on, rightOn = registry.IDKey, registry.IDKey
			}
			params["on"], params["right_on"] = keyNames[on], keyNames[rightOn]
		}
		how := []string{"left", "inner", "anti"}[rng.IntN(3)]
		params["how"] = how
		var columns []registry.KeyID
		var names []string
		if how != "anti" {
			for _, key := range right.Batch.AppendKeys(nil) {
				if rng.IntN(2) == 0 {
					columns, names = append(columns, key), append(names, keyNames[key])
				}
			}
			params["columns"] = names
		}
		if how == "left" && len(columns) == 0 {
			continue
		}
		out, err := runSource(t, "join", rankdtest.Case{Params: params, Inputs: rankdtest.Inputs(left), Refs: map[string]rowset.RowSet{"right": right}})
		require.NoError(t, err)
		requireTable(t, refJoin(tableOf(left), tableOf(right), how, on, rightOn, columns), out)
	}
}

// Strings of two dictionaries compare by their text, even if there are many.
func TestJoinOfManyStrings(t *testing.T) {
	side := func(from, to int) rowset.RowSet {
		var ids []int64
		var texts []any
		for i := from; i < to; i++ {
			ids, texts = append(ids, int64(i)), append(texts, "text "+strconv.Itoa(i))
		}
		return rankdtest.WithStrings(rankdtest.Rows(ids...), 3001, texts...)
	}
	left, right := side(0, 20_000), side(5_000, 30_000)
	out, err := runSource(t, "join", rankdtest.Case{Params: map[string]any{"on": "s1", "how": "inner"},
		Inputs: rankdtest.Inputs(left), Refs: map[string]rowset.RowSet{"right": right}})
	require.NoError(t, err)
	require.Equal(t, 15_000, out.Len())
	assert.Equal(t, int64(5_000), out.ID(0))
}

func TestBlendAsReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 5))
	for i := range 2 * randomRuns {
		inputs := randomInputs(rng, 2+rng.IntN(3))
		params, p := randomProvenance(rng, len(inputs), true)
		var want table
		c := rankdtest.Case{Params: params, Inputs: inputs, RequestID: "request " + strconv.Itoa(i)}
		unique := i%2 == 1
		if unique {
			params["unique"] = true
		}
		switch rng.IntN(3) {
		case 0:
			ratio := make([]int, len(inputs))
			for i := range ratio {
				ratio[i] = 1 + rng.IntN(5)
			}
			params["ratio"] = ratio
			if p.source == 0 {
				delete(params, "names")
			}
			first := ratioStart(t, ratio, c.RequestID)
			want = refTurns(tablesOf(inputs), p, unique, func(i int) int { return smoothTurn(ratio, first+i) })
		case 1:
			pattern := rng.Perm(len(inputs))
			for range rng.IntN(6) {
				pattern = append(pattern, rng.IntN(len(inputs)))
			}
			var names []string
			for _, input := range pattern {
				names = append(names, p.names[input])
			}
			params["pattern"] = names
			want = refTurns(tablesOf(inputs), p, unique, func(i int) int { return pattern[i%len(pattern)] })
		case 2:
			var positions []int
			var names []string
			fixed := make(map[int]int)
			for position := 1 + rng.IntN(3); len(positions) < 1+i%7; position += 1 + rng.IntN(40) {
				input := 1 + rng.IntN(len(inputs)-1)
				positions, names = append(positions, position), append(names, p.names[input])
				fixed[position] = input
			}
			params["positions"], params["fixed"] = positions, names
			want = refSlots(tablesOf(inputs), p, unique, fixed)
		}
		out, err := runSource(t, "blend", c)
		require.NoError(t, err)
		requireTable(t, want, out)
	}
}

// smoothTurn returns the input that has turn i of a ratio. At each turn every input gains its
// number. The input with the most takes the turn and pays the sum.
func smoothTurn(ratio []int, i int) int {
	sum, gained, most := 0, make([]int, len(ratio)), 0
	for _, n := range ratio {
		sum += n
	}
	for range i%sum + 1 {
		most = 0
		for input, n := range ratio {
			gained[input] += n
			if gained[input] > gained[most] {
				most = input
			}
		}
		gained[most] -= sum
	}
	return most
}

// ratioStart finds the first turn of a request in a blend of long inputs.
func ratioStart(t *testing.T, ratio []int, requestID string) int {
	sum := 0
	inputs := make([]rowset.RowSet, len(ratio))
	for i, n := range ratio {
		sum += n
		ids := make([]int64, 2*n)
		for j := range ids {
			ids[j] = int64(i)
		}
		inputs[i] = rankdtest.Rows(ids...)
	}
	out, err := runSource(t, "blend", rankdtest.Case{Params: map[string]any{"ratio": ratio}, Inputs: inputs, RequestID: requestID})
	require.NoError(t, err)
	for first := range sum {
		same := true
		for i := range 2 * sum {
			same = same && int(out.ID(i)) == smoothTurn(ratio, first+i)
		}
		if same {
			return first
		}
	}
	t.Fatalf("%v: no turn of the ratio begins %v", ratio, rankdtest.IDs(out))
	return 0
}

// Over many requests, each input has each place as often as its number says.
func TestBlendRatioIsFair(t *testing.T) {
	const requests = 1000
	counts := make([][3]int, 4)
	for i := range requests {
		out, err := rankdtest.Run(specOf(t, "blend"), rankdtest.Case{Params: map[string]any{"ratio": []int{2, 1, 1}}, RequestID: strconv.Itoa(i),
			Inputs: rankdtest.Inputs(rankdtest.Rows(0, 0, 0), rankdtest.Rows(1, 1, 1), rankdtest.Rows(2, 2, 2))})
		require.NoError(t, err)
		for place := range counts {
			counts[place][out.ID(place)]++
		}
	}
	for place, count := range counts {
		for input, share := range []float64{0.5, 0.25, 0.25} {
			assert.InDelta(t, share, float64(count[input])/requests, 0.06, "input %d at place %d", input, place)
		}
	}
}

// The table has edge cases that random inputs seldom meet, and about which readers of the
// reference ask.
func TestSourcesEdges(t *testing.T) {
	rows, inputs := rankdtest.Rows, rankdtest.Inputs
	none := rows()
	scored := func(ids []int64, values ...any) rowset.RowSet {
		return rankdtest.WithFloats(rows(ids...), 1001, values...)
	}
	named := func(ids []int64, values ...any) rowset.RowSet {
		return rankdtest.WithStrings(rows(ids...), 3001, values...)
	}
	tagged := func(ids []int64, values ...any) rowset.RowSet {
		return rankdtest.WithSets(rows(ids...), keySource, values...)
	}
	type params = map[string]any
	for _, tt := range []struct {
		name, op string
		c        rankdtest.Case
		want     []int64
		key      registry.KeyID // of a column to look at; 0: none
		values   []any
	}{
		{"a union of one", "union", rankdtest.Case{Inputs: inputs(rows(3, 1))}, []int64{3, 1}, 0, nil},
		{"a union of nothing", "union", rankdtest.Case{Inputs: inputs(none, none)}, []int64{}, 0, nil},
		{"a union keeps doubles", "union", rankdtest.Case{Inputs: inputs(rows(1, 1), rows(1))}, []int64{1, 1, 1}, 0, nil},
		{"a column that one input lacks", "union", rankdtest.Case{Inputs: inputs(rows(1), scored([]int64{2}, 0.5))}, []int64{1, 2}, 1001, []any{nil, 0.5}},
		{"a column of an input without rows", "union", rankdtest.Case{Inputs: inputs(rows(1), scored(nil))}, []int64{1}, 1001, []any{nil}},
		{"a source replaces that of an input", "union", rankdtest.Case{Inputs: inputs(tagged([]int64{1}, []string{"x", "y"}), rows(2)),
			Params: params{"source": "source", "names": []string{"a", "b"}}}, []int64{1, 2}, keySource, []any{[]string{"a"}, []string{"b"}}},
		{"ranks begin again", "union", rankdtest.Case{Inputs: inputs(rows(5, 6), none, rows(7)), Params: params{"rank": "source_rank"}},
			[]int64{5, 6, 7}, keyRank, []any{int64(1), int64(2), int64(1)}},

		{"ids beyond doubles differ", "dedupe", rankdtest.Case{Inputs: inputs(rows(1<<53, 1<<53+1, 1<<53))}, []int64{1 << 53, 1<<53 + 1}, 0, nil},
		{"nulls are no duplicates", "dedupe", rankdtest.Case{Inputs: inputs(named([]int64{1, 2, 3, 4}, nil, "a", nil, "a")), Params: params{"by": "s1"}},
			[]int64{1, 2, 3}, 0, nil},
		{"both zeros are equal", "dedupe", rankdtest.Case{Inputs: inputs(scored([]int64{1, 2, 3}, 0.0, math.Copysign(0, -1), nil)), Params: params{"by": "f1"}},
			[]int64{1, 3}, 0, nil},
		{"max keeps its own place", "dedupe", rankdtest.Case{Inputs: inputs(scored([]int64{1, 2, 1}, 1, 5, 3)), Params: params{"keep": "max", "column": "f1"}},
			[]int64{2, 1}, 1001, []any{5.0, 3.0}},
		{"of equal values the first stays", "dedupe", rankdtest.Case{Inputs: inputs(rankdtest.WithInts(scored([]int64{1, 1}, 2, 2), 5001, int64(8), int64(9))),
			Params: params{"keep": "min", "column": "f1"}}, []int64{1}, 5001, []any{int64(8)}},
		{"a null loses", "dedupe", rankdtest.Case{Inputs: inputs(scored([]int64{1, 1, 1}, nil, -9, nil)), Params: params{"keep": "max", "column": "f1"}},
			[]int64{1}, 1001, []any{-9.0}},
		{"sources are merged", "dedupe", rankdtest.Case{Inputs: inputs(tagged([]int64{1, 2, 1, 1}, []string{"b"}, []string{"a"}, nil, []string{"a", "b"})),
			Params: params{"sources": "source"}}, []int64{1, 2}, keySource, []any{[]string{"a", "b"}, []string{"a"}}},
		{"null sets stay null", "dedupe", rankdtest.Case{Inputs: inputs(tagged([]int64{1, 1}, nil, nil)), Params: params{"sources": "source"}}, []int64{1}, keySource, []any{nil}},
		{"dedupe of nothing", "dedupe", rankdtest.Case{Inputs: inputs(none)}, []int64{}, 0, nil},

		{"the first match counts", "join", rankdtest.Case{Inputs: inputs(rows(1, 2, 1)), Refs: map[string]rowset.RowSet{"right": scored([]int64{1, 1}, 0.1, 0.2)},
			Params: params{"columns": []string{"f1"}}}, []int64{1, 2, 1}, 1001, []any{0.1, nil, 0.1}},
		{"a join replaces", "join", rankdtest.Case{Inputs: inputs(scored([]int64{1, 2}, 7, 8)), Refs: map[string]rowset.RowSet{"right": scored([]int64{1}, 0.1)},
			Params: params{"columns": []string{"f1"}}}, []int64{1, 2}, 1001, []any{0.1, nil}},
		{"nulls match nothing", "join", rankdtest.Case{Inputs: inputs(named([]int64{1, 2}, nil, "a")), Refs: map[string]rowset.RowSet{"right": named([]int64{3, 4}, nil, "a")},
			Params: params{"on": "s1", "how": "inner"}}, []int64{2}, 0, nil},
		{"nulls stay in an anti join", "join", rankdtest.Case{Inputs: inputs(named([]int64{1, 2}, nil, "a")), Refs: map[string]rowset.RowSet{"right": named([]int64{3, 4}, nil, "a")},
			Params: params{"on": "s1", "how": "anti"}}, []int64{1}, 0, nil},
		{"a right side without rows", "join", rankdtest.Case{Inputs: inputs(rows(1)), Refs: map[string]rowset.RowSet{"right": tagged(nil)},
			Params: params{"columns": []string{"source"}}}, []int64{1}, keySource, []any{nil}},
		{"inner with nothing", "join", rankdtest.Case{Inputs: inputs(rows(1)), Refs: map[string]rowset.RowSet{"right": none}, Params: params{"how": "inner"}}, []int64{}, 0, nil},
		{"anti with nothing", "join", rankdtest.Case{Inputs: inputs(rows(1)), Refs: map[string]rowset.RowSet{"right": none}, Params: params{"how": "anti"}}, []int64{1}, 0, nil},
		{"an id finds an int column", "join", rankdtest.Case{Inputs: inputs(rows(1<<53+1, 2)),
			Refs:   map[string]rowset.RowSet{"right": rankdtest.WithInts(rows(10, 11), 5001, int64(1<<53), int64(1<<53+1))},
			Params: params{"right_on": "i1", "how": "inner"}}, []int64{1<<53 + 1}, 0, nil},

		{"a pattern begins with its first", "blend", rankdtest.Case{Inputs: inputs(rows(1, 2, 3), rows(11, 12)),
			Params: params{"names": []string{"a", "b"}, "pattern": []string{"b", "a"}}}, []int64{11, 1, 12, 2, 3}, 0, nil},
		{"an input without rows is skipped", "blend", rankdtest.Case{Inputs: inputs(none, rows(1, 2)), Params: params{"ratio": []int{5, 1}}}, []int64{1, 2}, 0, nil},
		{"a blend of nothing", "blend", rankdtest.Case{Inputs: inputs(none, none), Params: params{"ratio": []int{1, 1}}}, []int64{}, 0, nil},
		{"fixed positions", "blend", rankdtest.Case{Inputs: inputs(rows(1, 2, 3, 4), rows(11, 12, 13)),
			Params: params{"names": []string{"a", "ads"}, "positions": []int{1, 4}, "fixed": []string{"ads", "ads"}}}, []int64{11, 1, 2, 12, 3, 4}, 0, nil},
		{"a fixed position behind the end moves up", "blend", rankdtest.Case{Inputs: inputs(rows(1), rows(11, 12)),
			Params: params{"names": []string{"a", "ads"}, "positions": []int{3, 9}, "fixed": []string{"ads", "ads"}}}, []int64{1, 11, 12}, 0, nil},
		{"a fixed position without a row", "blend", rankdtest.Case{Inputs: inputs(rows(1, 2, 3), rows(11)),
			Params: params{"names": []string{"a", "ads"}, "positions": []int{1, 2}, "fixed": []string{"ads", "ads"}}}, []int64{11, 1, 2, 3}, 0, nil},
		{"a double keeps its first place", "blend", rankdtest.Case{Inputs: inputs(rows(1, 2, 11, 3, 4), rows(2, 11, 12)),
			Params: params{"names": []string{"a", "ads"}, "positions": []int{2, 5}, "fixed": []string{"ads", "ads"}, "unique": true}}, []int64{1, 2, 11, 3, 12, 4}, 0, nil},
		{"a turn passes over doubles", "blend", rankdtest.Case{Inputs: inputs(rows(1, 2, 3), rows(1, 2, 13)),
			Params: params{"names": []string{"a", "b"}, "pattern": []string{"a", "b"}, "unique": true}}, []int64{1, 2, 3, 13}, 0, nil},
		{"the next input fills", "blend", rankdtest.Case{Inputs: inputs(rows(1), rows(11), rows(21)),
			Params: params{"names": []string{"a", "ads", "b"}, "positions": []int{2}, "fixed": []string{"ads"}}}, []int64{1, 11, 21}, 0, nil},

		{"a list alone needs no Redis", "exclude", rankdtest.Case{Inputs: inputs(rows(1, 2, 3)), Params: params{"context": "seen"},
			Context: params{"seen": []int64{2, 9}}}, []int64{1, 3}, 0, nil},
		{"a list that is missing", "exclude", rankdtest.Case{Inputs: inputs(rows(1, 2)), Params: params{"context": "seen"}}, []int64{1, 2}, 0, nil},
		{"scores without end", "exclude", rankdtest.Case{Inputs: inputs(rows(1, 2, 3)), Arrival: time.Unix(100, 0), Redis: func([]string) any { return []any{"inf", "-inf", "200"} },
			Params: params{"endpoint": "ep_0001", "key": "k", "kind": "sorted_set", "max_age": 10}}, []int64{2}, 0, nil},
		{"the oldest score", "exclude", rankdtest.Case{Inputs: inputs(rows(1, 2, 3)), Arrival: time.Unix(100, 0), Redis: func([]string) any { return []any{"90", "89.999", nil} },
			Params: params{"endpoint": "ep_0001", "key": "k", "kind": "sorted_set", "max_age": 10}}, []int64{2, 3}, 0, nil},
	} {
		t.Run(tt.op+": "+tt.name, func(t *testing.T) {
			out, err := runSource(t, tt.op, tt.c)
			require.NoError(t, err)
			assert.Equal(t, tt.want, rankdtest.IDs(out))
			if tt.key != 0 {
				assert.Equal(t, tt.values, rankdtest.Values(out, tt.key))
			}
		})
	}
}

// A plan is refused if a node has a parameter that it must not have. The error is one line that
// names node and field.
func TestSourcesRefuse(t *testing.T) {
	two := rankdtest.Inputs(rankdtest.Rows(1), rankdtest.Rows(2))
	one := two[:1]
	right := map[string]rowset.RowSet{"right": rankdtest.Rows(1)}
	for _, tt := range []struct {
		op     string
		inputs []rowset.RowSet
		params string
		want   string
	}{
		{"union", two, `{"names": ["a", "b"]}`, "params.names: has no effect without source"},
		{"union", two, `{"source": "source"}`, "params.names: has 0 names, and the node has 2 inputs"},
		{"union", two, `{"source": "source", "names": ["a"]}`, "params.names: has 1 names, and the node has 2 inputs"},
		{"union", two, `{"source": "source", "names": ["a", "a"]}`, `params.names[1]: is "a", and so is names[0]`},
		{"union", two, `{"source": "source", "names": ["a", ""]}`, "params.names[1]: is empty"},
		{"union", two, `{"source": "s1", "names": ["a", "b"]}`, "params.source: "},
		{"union", two, `{"rank": "fixed_int"}`, "params.rank: "},
		{"union", two, `{"rank": "no_key"}`, "params.rank: "},
		{"union", nil, `{}`, "inputs"},
		{"dedupe", two, `{}`, "inputs"},
		{"dedupe", one, `{"keep": "last"}`, "params.keep: "},
		{"dedupe", one, `{"keep": "max"}`, `params.column: is missing: keep "max" compares a column`},
		{"dedupe", one, `{"column": "f1"}`, `params.column: has no effect with keep "first"`},
		{"dedupe", one, `{"keep": "max", "column": "s1"}`, "params.column: "},
		{"dedupe", one, `{"by": "set1"}`, "params.by: "},
		{"dedupe", one, `{"sources": "s1"}`, "params.sources: "},
		{"join", one, `{"how": "outer"}`, "params.how: "},
		{"join", one, `{}`, "params.columns: is missing: without columns a left join changes nothing"},
		{"join", one, `{"how": "anti", "columns": ["f1"]}`, `params.columns: has no effect with how "anti", whose rows have no match`},
		{"join", one, `{"columns": ["id"]}`, "params.columns[0]: is the id, which is not a column"},
		{"join", one, `{"columns": ["f1", "f2", "f1"]}`, "params.columns[2]: is f1, and so is columns[0]"},
		{"join", one, `{"on": "s1", "right_on": "i1", "how": "anti"}`, "params.right_on: is i1 of type int, and on is s1 of type string"},
		{"join", one, `{"on": "set1", "how": "anti"}`, "params.on: "},
		{"blend", two, `{}`, "params.ratio: or pattern, or positions must be given, and only one of them"},
		{"blend", two, `{"ratio": [1, 1], "pattern": ["a"], "names": ["a", "b"]}`, "params.ratio: or pattern"},
		{"blend", two, `{"ratio": [1]}`, "params.ratio: has 1 numbers, and the node has 2 inputs"},
		{"blend", two, `{"ratio": [0, 1]}`, "params.ratio[0]: "},
		{"blend", two, `{"ratio": [600, 600]}`, "params.ratio: adds up to 1200, must be at most 1000"},
		{"blend", two, `{"ratio": [1, 1], "names": ["a", "b"]}`, "params.names: has no effect with ratio and without source"},
		{"blend", two, `{"pattern": ["a", "b"]}`, "params.names: is missing: pattern and fixed name inputs"},
		{"blend", two, `{"pattern": ["a", "c"], "names": ["a", "b"]}`, `params.pattern[1]: is "c", which is not among names`},
		{"blend", two, `{"pattern": ["a", "a"], "names": ["a", "b"]}`, `params.pattern: does not name "b", whose rows would never come`},
		{"blend", two, `{"positions": [1], "names": ["a", "b"]}`, "params.fixed: has 0 names for 1 positions"},
		{"blend", two, `{"positions": [2, 2], "fixed": ["b", "b"], "names": ["a", "b"]}`, "params.positions[1]: is 2, must be above 2: positions ascend"},
		{"blend", two, `{"positions": [0], "fixed": ["b"], "names": ["a", "b"]}`, "params.positions[0]: "},
		{"blend", two, `{"positions": [1], "fixed": ["c"], "names": ["a", "b"]}`, `params.fixed[0]: is "c", which is not among names`},
		{"blend", two, `{"positions": [1, 2], "fixed": ["a", "b"], "names": ["a", "b"]}`, "params.fixed: names all inputs"},
		{"cap", one, `{"max": 1}`, "params.by: "},
		{"cap", one, `{"by": "s1", "max": 0}`, "params.max: "},
		{"cap", one, `{"by": "f1", "max": 1}`, "params.by: "},
		{"frequency_cap", one, `{"key": "seen:{id}", "max": 1}`, "params.endpoint: "},
		{"frequency_cap", one, `{"key": "seen:{id}", "endpoint": "ep_0001"}`, "params.max: "},
		{"frequency_cap", one, `{"key": "seen:{nobody}", "endpoint": "ep_0001", "max": 1}`, "params.key: "},
		{"frequency_cap", one, `{"key": "seen:{id}", "endpoint": "ep_0001", "max": 1, "cache_age": 5}`, "params.cache_age: has no effect: fresh is true"},
		{"exclude", one, `{}`, "params.key: or context must be given"},
		{"exclude", one, `{"key": "seen:{user}"}`, "params.endpoint: is missing: key needs it"},
		{"exclude", one, `{"key": "seen:{id}", "endpoint": "ep_0001"}`, "params.key: has {id}, but one set serves all rows"},
		{"exclude", one, `{"key": "seen:{nobody}", "endpoint": "ep_0001"}`, "params.key: "},
		{"exclude", one, `{"key": "seen:{user", "endpoint": "ep_0001"}`, "params.key: "},
		{"exclude", one, `{"key": "k", "endpoint": "ep_0001", "kind": "list"}`, "params.kind: "},
		{"exclude", one, `{"key": "k", "endpoint": "ep_0001", "max_age": 5}`, "params.max_age: has no effect on a set: only a sorted_set has times"},
		{"exclude", one, `{"key": "k", "endpoint": "ep_0001", "kind": "sorted_set", "max_age": -1}`, "params.max_age: "},
		{"exclude", one, `{"context": "seen", "fail_open": true}`, "params.fail_open: has no effect without key"},
		{"exclude", one, `{"context": "nothing"}`, `params.context: is "nothing", must be a field of the request's context of type int_list, or string_list for ids that are strings`},
		{"exclude", one, `{"context": "muted"}`, "compares the id with strings, and its rows are of integers"},
		{"exclude", one, `{"context": "seen", "by": "s1"}`, `params.context: is "seen", must be a field of the request's context of type string_list`},
		{"exclude", one, `{"context": "seen", "by": "f1"}`, "params.by: "},
	} {
		t.Run(tt.op+" "+tt.params, func(t *testing.T) {
			c := rankdtest.Case{Inputs: tt.inputs, Registry: sourceRegistry()}
			require.NoError(t, json.Unmarshal([]byte(tt.params), &c.Params))
			if tt.op == "join" {
				c.Refs = right
			}
			_, err := rankdtest.Run(specOf(t, tt.op), c)
			var refused *plan.Error
			require.ErrorAs(t, err, &refused)
			assert.Contains(t, refused.Error(), tt.want)
			assert.NotContains(t, refused.Error(), "\n")
			assert.Contains(t, refused.Error(), `node "task"`)
		})
	}
}
