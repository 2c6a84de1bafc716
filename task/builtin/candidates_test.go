package builtin_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/rowsettest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// member is an entry of a key, as Redis has it.
type member struct{ text, score string }

// lists answers LRANGE, SMEMBERS, ZRANGE and ZREVRANGE from plain slices. A list begins at its
// head, a sorted set at its lowest score.
type lists map[string][]member

func (l lists) answer(command []string) any {
	entries := l[command[1]]
	if command[0] == "ZREVRANGE" {
		entries = slices.Clone(entries)
		slices.Reverse(entries)
	}
	if command[0] != "SMEMBERS" {
		first, _ := strconv.Atoi(command[2])
		last, _ := strconv.Atoi(command[3])
		if first < 0 {
			first = max(0, len(entries)+first)
		}
		if last < 0 {
			last = len(entries) + last
		}
		last = min(last, len(entries)-1)
		if first > last {
			return []any{}
		}
		entries = entries[first : last+1]
	}
	reply := []any{}
	for _, e := range entries {
		reply = append(reply, e.text)
		if len(command) == 5 {
			reply = append(reply, e.score)
		}
	}
	return reply
}

func runCandidates(t *testing.T, c rankdtest.Case) (rowset.RowSet, error) {
	t.Helper()
	c.Registry = lookupRegistry()
	return rankdtest.Run(specOf(t, "candidates"), c)
}

// refCandidates returns the rows of one key, and the number of entries that do not parse.
func refCandidates(entries []member, kind string, limit int, reverse, scored bool) (rows []record, malformed int) {
	entries = slices.Clone(entries)
	if (kind == "sorted_set") != reverse {
		slices.Reverse(entries) // a sorted set ascends, and its best entries come first
	}
	if kind != "set" {
		entries = entries[:min(len(entries), limit)]
	}
	for _, e := range entries {
		id, ok := refParse("int", e.text).(int64)
		score, finite := refParse("float", e.score).(float64)
		if !ok || scored && !finite {
			malformed++
			continue
		}
		row := record{id, map[registry.KeyID]any{}}
		if scored {
			row.values[1001] = score
		}
		rows = append(rows, row)
	}
	if kind == "set" {
		slices.SortFunc(rows, func(a, b record) int { return int(max(-1, min(1, float64(a.id)-float64(b.id)))) })
		rows = rows[:min(len(rows), limit)]
	}
	return rows, malformed
}

// TestCandidatesAsReference compares random keys with a reference that reads one key after
// another.
func TestCandidatesAsReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 4))
	for range 2 * randomRuns {
		kind := []string{"list", "set", "sorted_set"}[rng.IntN(3)]
		limit := 1 + rng.IntN(12)
		if rng.IntN(40) == 0 {
			limit = 10_000 + rng.IntN(3_000)
		}
		reverse, scored := kind != "set" && rng.IntN(2) == 0, kind == "sorted_set" && rng.IntN(2) == 0
		params := map[string]any{"endpoint": "ep_0001", "key": "inbox:{user}", "kind": kind, "limit": limit, "reverse": reverse}
		if scored {
			params["score"] = "f1"
		}
		if kind == "list" {
			delete(params, "kind")
		}
		store := make(lists)
		fill := func(key string) {
			size := rng.IntN(20)
			if limit > 20 {
				size = rng.IntN(15_000)
			}
			for range size {
				m := member{strconv.Itoa(rng.IntN(50)), strconv.FormatFloat(rng.NormFloat64(), 'g', -1, 64)}
				switch rng.IntN(12) {
				case 0:
					m.text = []string{"", "x", "5 ", "1.0", "9223372036854775808", "-9223372036854775808", "+1"}[rng.IntN(7)]
				case 1:
					m.score = []string{"inf", "-inf", "nan", "1e308", "-0"}[rng.IntN(5)]
				}
				store[key] = append(store[key], m)
			}
		}
		c := rankdtest.Case{Params: params, UserID: 42, Redis: store.answer, Outside: new(task.Outside)}
		keys := []string{"inbox:42"}
		if rng.IntN(2) == 0 {
			in := rowsettest.RowSet(rng, 40)
			if limit > 20 {
				in = rowset.Take(in, 3)
			}
			c.Inputs, keys = rankdtest.Inputs(in), nil
			params["key"] = "sim:{id}:{user}"
			for _, id := range rankdtest.IDs(in) {
				keys = append(keys, fmt.Sprintf("sim:%d:42", id))
			}
		}
		want, malformed := table{}, 0
		if scored {
			want.columns = []registry.KeyID{1001}
		}
		for _, key := range keys {
			if store[key] == nil && rng.IntN(5) > 0 {
				fill(key)
			}
		}
		for _, key := range keys {
			rows, bad := refCandidates(store[key], kind, limit, reverse, scored)
			want.rows, malformed = append(want.rows, rows...), malformed+bad
		}
		var shortfall task.Shortfall
		c.Shortfall = &shortfall
		out, err := runCandidates(t, c)
		require.NoError(t, err)
		requireTable(t, want, out)
		require.Equal(t, int64(malformed), c.Outside.Malformed())
		told := 0
		if m := shortfall.Malformed; m != nil {
			told = m.Count
			require.Contains(t, keys, m.Key)
			require.True(t, slices.ContainsFunc(store[m.Key], func(e member) bool { return e.text == m.First }), "%+v", m)
			require.LessOrEqual(t, m.Count, m.Of)
		}
		require.Equal(t, c.Outside.ByKey()["id"].Malformed, uint64(told))
	}
}

func TestCandidates(t *testing.T) {
	store := lists{
		"l": {{"3", ""}, {"1", ""}, {"3", ""}, {"x", ""}, {"2", ""}},
		"z": {{"7", "-1"}, {"8", "0"}, {"9", "2.5"}, {"6", "inf"}},
		"s": {{"30", ""}, {"-4", ""}, {"9007199254740993", ""}, {"7", ""}},
	}
	for _, tt := range []struct {
		params map[string]any
		want   []int64
		scores []any
	}{
		{map[string]any{"key": "l"}, []int64{3, 1, 3, 2}, nil},
		{map[string]any{"key": "l", "limit": 4}, []int64{3, 1, 3}, nil}, // the entry that does not parse uses up the limit
		{map[string]any{"key": "l", "limit": 2, "reverse": true}, []int64{2}, nil},
		{map[string]any{"key": "z", "kind": "sorted_set", "limit": 3}, []int64{6, 9, 8}, nil},
		{map[string]any{"key": "z", "kind": "sorted_set", "limit": 3, "score": "f1"}, []int64{9, 8}, []any{2.5, 0.0}},
		{map[string]any{"key": "z", "kind": "sorted_set", "limit": 2, "reverse": true, "score": 1001}, []int64{7, 8}, []any{-1.0, 0.0}},
		{map[string]any{"key": "s", "kind": "set"}, []int64{-4, 7, 30, 1<<53 + 1}, nil},
		{map[string]any{"key": "s", "kind": "set", "limit": 2}, []int64{-4, 7}, nil},
		{map[string]any{"key": "none"}, []int64{}, nil},
		{map[string]any{"key": "none", "kind": "sorted_set", "score": "f1"}, []int64{}, []any{}},
	} {
		tt.params["endpoint"] = "ep_0001"
		out, err := runCandidates(t, rankdtest.Case{Params: tt.params, Redis: store.answer})
		require.NoError(t, err, tt.params)
		assert.Equal(t, tt.want, rankdtest.IDs(out), tt.params)
		assert.Equal(t, tt.scores, rankdtest.Values(out, 1001), tt.params)
	}
	out, err := runCandidates(t, rankdtest.Case{Params: map[string]any{"endpoint": "ep_0001", "key": "sim:{id}"}, Inputs: rankdtest.Inputs(rankdtest.Rows())})
	require.NoError(t, err, "Redis is not asked")
	assert.Zero(t, out.Len())
}

func TestCandidatesFailures(t *testing.T) {
	params := func() map[string]any { return map[string]any{"endpoint": "ep_0001", "key": "inbox:{user}"} }
	for _, tt := range []struct {
		reply any
		text  string
	}{
		{errors.New("WRONGTYPE a hash"), `LRANGE inbox:42: WRONGTYPE a hash`},
		{"text", `LRANGE inbox:42: reply is bulk string, want array`},
		{rankdtest.Failure{Err: errors.New("connection lost")}, "connection lost"},
	} {
		_, err := runCandidates(t, rankdtest.Case{Params: params(), UserID: 42, Redis: func([]string) any { return tt.reply }})
		assert.ErrorIs(t, err, task.ErrRedis)
		assert.ErrorContains(t, err, tt.text)
	}
	ten := func([]string) any { return slices.Repeat([]any{"1"}, 10) }
	_, err := runCandidates(t, rankdtest.Case{Params: params(), Redis: ten, MaxRows: 9})
	assert.ErrorIs(t, err, task.ErrTooManyRows)
	_, err = runCandidates(t, rankdtest.Case{Params: params(), Redis: ten, MaxRows: 10})
	assert.NoError(t, err)
	_, err = runCandidates(t, rankdtest.Case{Params: params(), Redis: ten, Cancelled: true})
	assert.ErrorIs(t, err, task.ErrCancelled)
}

// Hostile parameters are refused when the plan is loaded.
func TestCandidatesRefusesParameters(t *testing.T) {
	for _, tt := range []struct {
		params map[string]any
		inputs []rowset.RowSet
		text   string
	}{
		{map[string]any{}, nil, "params.key: is missing, must be a key template"},
		{map[string]any{"key": "sim:{id}"}, nil, "params.key: has {id}, so the node needs an input"},
		{map[string]any{"key": "inbox:{user}"}, rankdtest.Inputs(rankdtest.Rows(1)), "params.key: has no {id}"},
		{map[string]any{"key": "a:{id}"}, rankdtest.Inputs(rankdtest.Rows(1), rankdtest.Rows(1)), "nodes[0].inputs: must list 0 to 1 nodes, not 2"},
		{map[string]any{"key": "{nobody}"}, nil, "params.key: {nobody} is neither"},
		{map[string]any{"key": "a", "kind": "hash"}, nil, "params.kind: must be"},
		{map[string]any{"key": "a", "limit": 0}, nil, "params.limit: must be 1 to 100000"},
		{map[string]any{"key": "a", "limit": int64(math.MaxInt64)}, nil, "params.limit: must be 1 to 100000"},
		{map[string]any{"key": "a", "score": "f1"}, nil, `params.score: is for kind "sorted_set"`},
		{map[string]any{"key": "a", "kind": "sorted_set", "score": "i1"}, nil, "params.score: must be a key of type float, not key 5001 (i1) of type int"},
		{map[string]any{"key": "a", "kind": "set", "reverse": true}, nil, "params.reverse: is not for kind"},
		{map[string]any{"key": "a", "order": "asc"}, nil, "params.order: core::candidates has no such parameter"},
	} {
		tt.params["endpoint"] = "ep_0001"
		_, err := runCandidates(t, rankdtest.Case{Params: tt.params, Inputs: tt.inputs})
		var bad *plan.Error
		require.ErrorAs(t, err, &bad, tt.text)
		assert.ErrorContains(t, err, tt.text)
		assert.Equal(t, "task", bad.Node)
	}
}

// infinite is an endless expression.
const infinite = `{"op": "mul", "a": {"op": "const_number", "value": 1e300}, "b": {"op": "const_number", "value": 1e300}}`

// Ranges that no request could have are refused when the plan is loaded.
func TestCandidatesRefusesRanges(t *testing.T) {
	exprs := map[string]string{
		"one": `{"op": "const_number", "value": 1}`, "null": `{"op": "const_null"}`, "f1": `{"op": "key_ref", "key_id": 1001}`,
		"nan": `{"op": "sub", "a": ` + infinite + `, "b": ` + infinite + `}`,
	}
	for _, tt := range []struct {
		params map[string]any
		text   string
	}{
		{map[string]any{"min": "one", "kind": "list"}, `params.min: is for kind "sorted_set", not "list"`},
		{map[string]any{"max_member": "a", "kind": "set"}, `params.max_member: is for kind "sorted_set", not "set"`},
		{map[string]any{"min": "f1"}, "params.min: reads a column, and one range serves all rows"},
		{map[string]any{"max": "null"}, "params.max: is null, must be a number"},
		{map[string]any{"max": "nan"}, "params.max: is not a number, must be a number"},
		{map[string]any{"min": "two"}, "params.min: expr_table has no entry"},
		{map[string]any{"min": "one", "min_member": "a"}, "params.min_member: and max_member are a range of members"},
		{map[string]any{"min_member": "a:{id}"}, "params.min_member: has {id}, and one range serves all rows"},
		{map[string]any{"min_member": "a", "score": "f1"}, "params.score: is not for a range of members"},
		{map[string]any{"min": "one", "exclusive": "max"}, `params.exclusive: is "max", and there is no max`},
		{map[string]any{"exclusive": "both"}, `params.exclusive: is "both", and there is no min`},
		{map[string]any{"min": "one", "exclusive": "left"}, "params.exclusive: must be"},
	} {
		params := map[string]any{"endpoint": "ep_0001", "key": "z", "kind": "sorted_set"}
		maps.Copy(params, tt.params)
		_, err := runCandidates(t, rankdtest.Case{Params: params, Exprs: exprs})
		var bad *plan.Error
		require.ErrorAs(t, err, &bad, tt.text)
		assert.ErrorContains(t, err, tt.text)
	}
}

// A range takes one command for each 10,000 members. Its bounds are written as Redis takes
// them.
func TestCandidatesAsksForRanges(t *testing.T) {
	exprs := map[string]string{"one": `{"op": "const_number", "value": 1e-7}`, "inf": infinite}
	for _, tt := range []struct {
		params map[string]any
		want   []string
	}{
		{map[string]any{"min": "one"}, []string{"ZRANGE z +inf 1e-07 BYSCORE REV LIMIT 0 100"}},
		{map[string]any{"min": "one", "score": "f1", "reverse": true}, []string{"ZRANGE z 1e-07 +inf BYSCORE LIMIT 0 100 WITHSCORES"}},
		{map[string]any{"max": "inf", "exclusive": "max"}, []string{"ZRANGE z (+Infinity -inf BYSCORE REV LIMIT 0 100"}},
		{map[string]any{"min_member": "sku-", "max_member": "sku-{tab}", "exclusive": "both"}, []string{"ZRANGE z (sku-new (sku- BYLEX REV LIMIT 0 100"}},
		{map[string]any{"max_member": "b", "reverse": true}, []string{"ZRANGE z - [b BYLEX LIMIT 0 100"}},
		{map[string]any{"min": "one", "limit": 20_001}, []string{"ZRANGE z +inf 1e-07 BYSCORE REV LIMIT 0 10000",
			"ZRANGE z +inf 1e-07 BYSCORE REV LIMIT 10000 10000", "ZRANGE z +inf 1e-07 BYSCORE REV LIMIT 20000 1"}},
	} {
		params := map[string]any{"endpoint": "ep_0001", "key": "z", "kind": "sorted_set"}
		maps.Copy(params, tt.params)
		var asked []string
		_, err := runCandidates(t, rankdtest.Case{Params: params, Exprs: exprs, Context: map[string]any{"tab": "new"}, Redis: func(command []string) any {
			asked = append(asked, strings.Join(command, " "))
			return []any{}
		}})
		require.NoError(t, err)
		assert.Equal(t, tt.want, asked)
	}
}

// TestCandidatesAllocations: twice as many keys, or entries, cost no more allocations.
func TestCandidatesAllocations(t *testing.T) {
	spec := specOf(t, "candidates")
	for _, score := range []bool{false, true} {
		params := map[string]any{"endpoint": "ep_0001", "key": "sim:{id}", "kind": "sorted_set"}
		reply := []byte("*4\r\n$1\r\n4\r\n$2\r\n11\r\n$1\r\n7\r\n$1\r\n9\r\n")
		if score {
			params["score"] = "f1"
		}
		measure := func(rows int) float64 {
			ids := make([]int64, rows)
			for i := range ids {
				ids[i] = int64(i)
			}
			return testing.AllocsPerRun(5, preparedRun(t, spec, params, rankdtest.Rows(ids...), reply))
		}
		few, many := measure(1000), measure(4000)
		assert.LessOrEqual(t, many, few+1)
		t.Logf("%v and %v allocations", few, many)
	}
}

// A partial node goes on without the keys that failed, and counts the rows that read them.
func TestCandidatesPartial(t *testing.T) {
	for _, limit := range []int{5, 25_000} {
		params := map[string]any{"endpoint": "ep_0001", "key": "sim:{id}", "limit": limit}
		var shortfall task.Shortfall
		out, err := runCandidates(t, rankdtest.Case{
			Params: params, Inputs: rankdtest.Inputs(rankdtest.Rows(1, 2, 3)), Partial: true, Shortfall: &shortfall,
			Redis: func(command []string) any {
				if command[1] != "sim:2" {
					return errors.New("WRONGTYPE a hash")
				}
				return lists{"sim:2": {{"20", ""}, {"21", ""}}}.answer(command)
			},
		})
		require.NoError(t, err)
		assert.Equal(t, []int64{20, 21}, rankdtest.IDs(out))
		assert.Equal(t, 2, shortfall.Dropped)
		assert.ErrorContains(t, shortfall.Err, `LRANGE sim:1: WRONGTYPE a hash`)
	}
}
