package builtin

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// refRule is a rule over the groups of rows; nil belongs to no group.
type refRule struct {
	groups       []any
	most, window int
}

// fits reports whether the rule allows a row after a result.
func (r refRule) fits(result []int, pos int) bool {
	from, inside := 0, 0
	if r.window > 0 {
		from = max(0, len(result)-r.window+1)
	}
	for _, before := range result[from:] {
		if r.groups[before] == r.groups[pos] {
			inside++
		}
	}
	return r.groups[pos] == nil || inside < r.most
}

// spreadReference orders n rows, one place at a time. It takes the first remaining row that
// fits all rules. It drops the last rule if there is none, and so on.
func spreadReference(n int, rules ...refRule) []int {
	taken := make([]bool, n)
	var result []int
	for range n {
		choice := -1
		for kept := len(rules); choice < 0; kept-- {
			for pos := range n {
				fits := !taken[pos]
				for _, r := range rules[:kept] {
					fits = fits && r.fits(result, pos)
				}
				if fits {
					choice = pos
					break
				}
			}
		}
		taken[choice] = true
		result = append(result, choice)
	}
	return result
}

func TestSpread(t *testing.T) {
	for name, c := range map[string]struct {
		groups       string // a letter per row; '-' has none
		most, window int
		want         string // the rows by group and number
	}{
		"no row":                 {"", 1, 2, ""},
		"nothing to do":          {"abc", 1, 2, "a0 b1 c2"},
		"one waits":              {"aab", 1, 2, "a0 b2 a1"},
		"looking far ahead":      {"aaaaaab", 1, 2, "a0 b6 a1 a2 a3 a4 a5"},
		"two of three":           {"aaabbb", 2, 3, "a0 a1 b3 a2 b4 b5"},
		"the whole result":       {"aabac", 1, 0, "a0 b2 c4 a1 a3"},
		"a window of all rows":   {"aabac", 1, 5, "a0 b2 c4 a1 a3"},
		"a window beyond":        {"aabac", 1, 99, "a0 b2 c4 a1 a3"},
		"a window of one":        {"aab", 1, 1, "a0 a1 b2"},
		"nulls fit anywhere":     {"a-a--", 1, 2, "a0 -1 a2 -3 -4"},
		"nulls come between":     {"aaa--", 1, 2, "a0 -3 a1 -4 a2"},
		"the earlier of two":     {"aabbc", 1, 3, "a0 b2 c4 a1 b3"},
		"more than the window":   {"aab", 5, 2, "a0 a1 b2"},
		"relaxed, and then not":  {"aaab", 1, 3, "a0 b3 a1 a2"},
		"those that wait, first": {"aabb", 1, 2, "a0 b2 a1 b3"},
	} {
		t.Run(name, func(t *testing.T) {
			groups, plain := make([]int32, len(c.groups)), make([]any, len(c.groups))
			for i, g := range c.groups {
				groups[i] = int32(26 + i) // nulls form their own group
				if g != '-' {
					groups[i], plain[i] = g-'a', g
				}
			}
			show := func(pos int) string { return c.groups[pos:pos+1] + string(rune('0'+pos)) }
			rows, ok := spread(nil, nil, len(groups), []spreadRule{{groups: groups, n: 26 + len(groups), most: int32(c.most), window: c.window}}, 0)
			require.True(t, ok)
			got, reference := "", ""
			for _, pos := range rows {
				got += " " + show(int(pos))
			}
			for _, pos := range spreadReference(len(plain), refRule{plain, c.most, c.window}) {
				reference += " " + show(pos)
			}
			assert.Equal(t, c.want, got[min(1, len(got)):])
			assert.Equal(t, got, reference)
		})
	}
}

// checkSpread checks that a spread loses and duplicates no row. It also compares the spread
// with the reference if there are few rows.
func checkSpread(t *testing.T, rows int, rules []spreadRule, limit int) {
	var plain []refRule
	for _, r := range rules {
		groups := make([]any, rows)
		for i, g := range r.groups {
			groups[i] = g
		}
		plain = append(plain, refRule{groups, int(r.most), r.window})
	}
	got, ok := spread(nil, nil, rows, rules, limit)
	require.True(t, ok)
	if limit <= 0 || limit > rows {
		limit = rows
	}
	require.Len(t, got, limit)
	seen := make([]bool, rows)
	for _, pos := range got {
		require.False(t, seen[pos], "position %d twice", pos)
		seen[pos] = true
	}
	if rows > 120 {
		return
	}
	for i, pos := range spreadReference(rows, plain...)[:limit] {
		require.Equal(t, pos, int(got[i]), "place %d of %v", i, plain)
	}
}

func TestSpreadIsTheReference(t *testing.T) {
	for seed := range uint64(800) {
		rng := rand.New(rand.NewPCG(seed, 3))
		rows := rng.IntN(120)
		var rules []spreadRule
		for range 1 + rng.IntN(1+int(seed%4)) {
			n := 1 + rng.IntN(1+rng.IntN(20))
			groups := make([]int32, rows)
			for i := range groups {
				groups[i] = int32(rng.IntN(1 + rng.IntN(n)))
			}
			rules = append(rules, spreadRule{groups: groups, n: n, most: 1 + rng.Int32N(4), window: rng.IntN(12)})
		}
		checkSpread(t, rows, rules, rng.IntN(2)*rng.IntN(rows+2))
	}
}

// A spread loses and duplicates no row, whatever the groups and parameters are.
func FuzzSpread(f *testing.F) {
	f.Add([]byte("aabbab-c"), uint8(1), uint8(3), uint8(0))
	f.Add([]byte("aaaaaaaaab"), uint8(2), uint8(0), uint8(4))
	f.Fuzz(func(t *testing.T, text []byte, most, window, limit uint8) {
		rules := make([]spreadRule, 1+int(limit)%3)
		for i := range rules { // rule i groups bytes by their value without the 4·i lower bits
			rules[i] = spreadRule{groups: make([]int32, len(text)), n: 256, most: max(1, int32(most)>>i), window: int(window) + i}
			for pos, b := range text {
				rules[i].groups[pos] = int32(b) >> (4 * i)
			}
		}
		checkSpread(t, len(text), rules, int(limit))
	})
}

func TestSpreadStops(t *testing.T) {
	_, ok := spread(cancelled{}, nil, 10, []spreadRule{{groups: make([]int32, 10), n: 1, most: 1, window: 2}}, 0)
	assert.False(t, ok)
}

type cancelled struct{}

func (cancelled) Cancelled() bool { return true }

// diversify groups by every type of column, and by the id, as Go compares values.
func TestDiversifyByWindow(t *testing.T) {
	for _, by := range []string{"id", "k3001", "k5001", "k5101"} {
		for _, window := range []any{nil, 1, 2, 7, 1000} {
			run := nodeCase{params: map[string]any{"by": by, "max": 2, "window": window}}.runner(t, diversify())
			key, _ := testRegistry().KeyByName(by)
			size, _ := window.(int)
			eachRandom(t, 20, func(t *testing.T, rng *rand.Rand, in rowset.RowSet) {
				in = rowset.Take(in, 130) // the reference takes long
				rows := plainRows(in)
				groups := make([]any, len(rows))
				for i, row := range rows {
					groups[i] = row.fields[key.ID]
				}
				limit := rng.IntN(2) * rng.IntN(in.Len()+2)
				out, err := run(in, limit)
				require.NoError(t, err)
				want := []int32{}
				for _, pos := range spreadReference(len(rows), refRule{groups, 2, size}) {
					want = append(want, rows[pos].row)
				}
				if limit > 0 {
					want = want[:min(limit, len(want))]
				}
				require.Equal(t, want, batchRows(out), by)
			})
		}
	}
}

// Several rules of one node hold at the same time.
func TestDiversifyByRules(t *testing.T) {
	rules := []map[string]any{{"by": "k3001", "window": 3}, {"by": "k5001", "max": 2, "window": 4}, {"by": "k5101", "max": 5}}
	run := nodeCase{params: map[string]any{"rules": rules}}.runner(t, diversify())
	eachRandom(t, 60, func(t *testing.T, rng *rand.Rand, in rowset.RowSet) {
		in = rowset.Take(in, 100)
		rows := plainRows(in)
		var want []refRule
		for _, r := range []struct {
			by           registry.KeyID
			most, window int
		}{{3001, 1, 3}, {5001, 2, 4}, {5101, 5, 0}} {
			groups := make([]any, len(rows))
			for i, row := range rows {
				groups[i] = row.fields[r.by]
			}
			want = append(want, refRule{groups, r.most, r.window})
		}
		limit := rng.IntN(2) * rng.IntN(in.Len()+2)
		out, err := run(in, limit)
		require.NoError(t, err)
		for i, row := range batchRows(out) {
			require.Equal(t, rows[spreadReference(len(rows), want...)[i]].row, row)
		}
	})
}

func TestDecay(t *testing.T) {
	in := rankdtest.WithStrings(rankdtest.Rows(1, 2, 3, 4, 5, 6, 7), keyText, "a", "a", "b", "a", nil, nil, "a")
	in = rankdtest.WithFloats(in, keyFloat, 8, 10, 7, 6, 5, 4, nil)
	out, err := nodeCase{params: map[string]any{"by": "k3001", "method": "decay", "score": "k1001", "out_key": "score"}}.runner(t, diversify())(in, 0)
	require.NoError(t, err)
	assert.Equal(t, []int64{2, 3, 5, 1, 6, 4, 7}, rankdtest.IDs(out))
	assert.Equal(t, []any{10.0, 7.0, 5.0, 4.0, 4.0, 1.5, nil}, rankdtest.Values(out, keyScore))
	assert.Equal(t, []any{10.0, 7.0, 5.0, 8.0, 4.0, 6.0, nil}, rankdtest.Values(out, keyFloat))
	_, err = nodeCase{params: map[string]any{"by": "k3001", "method": "decay", "score": "k1001", "out_key": "strict"}}.runner(t, diversify())(in, 0)
	assert.EqualError(t, err, "out_key: the result is null for 1 rows, and strict is not nullable")
}

// A score falls by a fraction of its size, and stays finite.
func TestDecayOfHugeScores(t *testing.T) {
	in := rankdtest.WithStrings(rankdtest.Rows(1, 2, 3, 4), keyText, "a", "a", "b", "b")
	in = rankdtest.WithFloats(in, keyFloat, -math.MaxFloat64, -math.MaxFloat64, math.MaxFloat64, math.MaxFloat64)
	out, err := nodeCase{params: map[string]any{"by": "k3001", "method": "decay", "score": "k1001", "out_key": "score"}}.runner(t, diversify())(in, 0)
	require.NoError(t, err)
	assert.Equal(t, []int64{3, 4, 1, 2}, rankdtest.IDs(out))
	assert.Equal(t, []any{math.MaxFloat64, math.MaxFloat64 / 2, -math.MaxFloat64, -math.MaxFloat64}, rankdtest.Values(out, keyScore))
}

// decayReference computes the score of each row on its own: it counts the rows of its key that
// rank before it.
func decayReference(rows []plainRow, by, score registry.KeyID, factor, floor float64) ([]plainRow, map[int32]float64) {
	ranked := slices.Clone(rows)
	better := func(a, b plainRow, value func(plainRow) (float64, bool)) int {
		x, xOK := value(a)
		y, yOK := value(b)
		switch {
		case !xOK && !yOK:
			return 0
		case !xOK:
			return 1
		case !yOK:
			return -1
		}
		return cmp.Compare(y, x)
	}
	slices.SortStableFunc(ranked, func(a, b plainRow) int {
		if x, ok := a.fields[score].(int64); ok { // exactly, beyond 2^53
			if y, ok := b.fields[score].(int64); ok {
				return cmp.Compare(y, x)
			}
		}
		return better(a, b, func(r plainRow) (float64, bool) { return r.number(score) })
	})
	decayed := map[int32]float64{}
	for i, row := range ranked {
		v, ok := row.number(score)
		if !ok {
			continue
		}
		power := 1.0
		for _, before := range ranked[:i] {
			if g, ok := row.fields[by]; ok && before.fields[by] == g {
				power *= factor
			}
		}
		kept := floor + (1-floor)*power
		if v >= 0 {
			decayed[row.row] = v * kept
		} else {
			decayed[row.row] = max(-math.MaxFloat64, v*(2-kept))
		}
	}
	slices.SortStableFunc(ranked, func(a, b plainRow) int {
		return better(a, b, func(r plainRow) (float64, bool) { v, ok := decayed[r.row]; return v, ok })
	})
	return ranked, decayed
}

func TestDecayIsTheReference(t *testing.T) {
	for _, c := range []struct {
		score         string
		factor, floor float64
	}{{"k1001", 0.5, 0}, {"k1001", 0.7, 0.2}, {"k5001", 0.5, 0.1}, {"k1001", 0, 0}, {"k1001", 1, 0}, {"id", 0.5, 0}} {
		params := map[string]any{"by": "k3001", "method": "decay", "score": c.score, "out_key": "score", "factor": c.factor, "floor": c.floor}
		run := nodeCase{params: params}.runner(t, diversify())
		score, _ := testRegistry().KeyByName(c.score)
		eachRandom(t, 30, func(t *testing.T, rng *rand.Rand, in rowset.RowSet) {
			in = rowset.Take(in, 200)
			limit := rng.IntN(2) * rng.IntN(in.Len()+2)
			out, err := run(in, limit)
			require.NoError(t, err)
			ranked, decayed := decayReference(plainRows(in), keyText, score.ID, c.factor, c.floor)
			if limit > 0 {
				ranked = ranked[:min(limit, len(ranked))]
			}
			got := plainRows(out)
			require.Len(t, got, len(ranked))
			for i, row := range ranked {
				require.Equal(t, row.row, got[i].row, "place %d", i)
				want, ok := decayed[row.row]
				v, gotOK := got[i].number(keyScore)
				require.Equal(t, ok, gotOK)
				require.Equal(t, want, v)
			}
		})
	}
}

func TestDiversifyRefuses(t *testing.T) {
	params := func(more map[string]any) map[string]any {
		p := map[string]any{"by": "k3001"}
		for name, v := range more {
			p[name] = v
		}
		return p
	}
	relevance := func(name string, value any) map[string]any {
		p := map[string]any{"by": nil, "method": "mmr", "vector": "k5251", "score": "k1001", "out_key": "score"}
		p[name] = value
		return p
	}
	for name, c := range map[string]struct {
		more map[string]any
		want string
	}{
		"a node with rules":      {map[string]any{"rules": []map[string]any{{"by": "k3001"}}}, "params.by: or rules must be given, and only one of them"},
		"neither of them":        {map[string]any{"by": nil}, "params.by: or rules must be given, and only one of them"},
		"a window beside rules":  {map[string]any{"by": nil, "rules": []map[string]any{{"by": "k3001"}}, "window": 3}, "params.rules: have a max and a window each, so the node has none"},
		"rules for decay":        {map[string]any{"by": nil, "rules": []map[string]any{{"by": "k3001"}}, "method": "decay"}, `params.rules: belongs to method "window", and the method is "decay"`},
		"a rule by a set":        {map[string]any{"by": nil, "rules": []map[string]any{{"by": "k5201"}}}, ""},
		"a score for a window":   {map[string]any{"score": "k1001"}, `params.score: belongs to method "decay" or "mmr", and the method is "window"`},
		"a window for decay":     {map[string]any{"method": "decay", "window": 3}, `params.window: belongs to method "window", and the method is "decay"`},
		"decay without a score":  {map[string]any{"method": "decay", "out_key": "score"}, `params.score: is missing: method "decay" needs it`},
		"decay without a column": {map[string]any{"method": "decay", "score": "k1001"}, `params.out_key: is missing: method "decay" needs it`},
		"decay in place":         {map[string]any{"method": "decay", "score": "k1001", "out_key": "k1001"}, `params.out_key: is the key of score, which keeps its values`},
		"by a set":               {map[string]any{"by": "k5201"}, ""},
		"by a float":             {map[string]any{"by": "k1001"}, ""},
		"no rows":                {map[string]any{"max": 0}, ""},
		"no window":              {map[string]any{"window": 0}, ""},
		"a factor":               {map[string]any{"method": "decay", "score": "k1001", "out_key": "score", "factor": 1.5}, ""},
		"a method":               {map[string]any{"method": "nearest"}, ""},
		"a group for mmr":        {relevance("by", "k3001"), `params.by: belongs to method "window" or "decay", and the method is "mmr"`},
		"a factor for mmr":       {relevance("factor", 0.5), `params.factor: belongs to method "decay", and the method is "mmr"`},
		"mmr without a vector":   {relevance("vector", nil), `params.vector: is missing: method "mmr" needs it`},
		"mmr without a score":    {relevance("score", nil), `params.score: is missing: method "mmr" needs it`},
		"mmr without a column":   {relevance("out_key", nil), `params.out_key: is missing: method "mmr" needs it`},
		"mmr in place":           {relevance("out_key", "k1001"), `params.out_key: is the key of score, which keeps its values`},
		"a vector for decay":     {map[string]any{"method": "decay", "score": "k1001", "out_key": "score", "vector": "k5251"}, `params.vector: belongs to method "mmr", and the method is "decay"`},
		"a vector of numbers":    {relevance("vector", "k1001"), ""},
		"a lambda":               {relevance("lambda", -0.5), ""},
		"no limit":               {relevance("limit", 0), ""},
		"a measure":              {relevance("measure", "angle"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			node := nodeCase{params: params(c.more)}
			if c.want != "" {
				node.refuses(t, diversify(), c.want)
				return
			}
			_, err := node.load(t, diversify())
			t.Log(err)
			assert.ErrorContains(t, err, `node "it": nodes[0].params.`)
		})
	}
}

// relevanceReference chooses rows for the method mmr as its description says, and computes each similarity anew.
func relevanceReference(in rowset.RowSet, score, vector registry.KeyID, measure string, lambda float64) (order []int32, lowered map[int32]float64) {
	order = []int32{}
	rows, lowered := plainRows(in), map[int32]float64{}
	similarity := func(a, b int32) (float64, bool) {
		column := in.Batch.Vector(vector)
		if column == nil {
			return 0, false
		}
		x, xOK := column.Value(int(a))
		y, yOK := column.Value(int(b))
		if !xOK || !yOK {
			return 0, false
		}
		s := map[string]float64{"dot": rowset.Dot(x, y), "cosine": rowset.Cosine(x, y), "l2": 1 / (1 + rowset.L2(x, y))}[measure]
		return s, !math.IsNaN(s)
	}
	var nulls []int32
	left := slices.DeleteFunc(slices.Clone(rows), func(r plainRow) bool {
		_, ok := r.number(score)
		if !ok {
			nulls = append(nulls, r.row)
		}
		return !ok
	})
	for len(left) > 0 {
		value := func(r plainRow) float64 {
			v, _ := r.number(score)
			greatest, any := math.Inf(-1), false
			for _, chosen := range order {
				if s, ok := similarity(r.row, chosen); ok {
					greatest, any = max(greatest, s), true
				}
			}
			if !any {
				return v
			}
			return max(-math.MaxFloat64, min(math.MaxFloat64, v-float64(lambda*greatest)))
		}
		best := 0
		for i := range left {
			if value(left[i]) > value(left[best]) {
				best = i
			}
		}
		row := left[best]
		lowered[row.row] = value(row)
		order, left = append(order, row.row), slices.Delete(left, best, best+1)
	}
	return append(order, nulls...), lowered
}

func TestRelevanceIsTheReference(t *testing.T) {
	for _, measure := range []string{"dot", "cosine", "l2"} {
		for _, c := range []struct {
			score  string
			lambda float64
			limit  any
		}{{"k1001", 0.5, nil}, {"k5001", 3, 7}, {"id", 1000, nil}, {"k1001", 0, 1000}, {"k1002", 1e300, 20}} {
			params := map[string]any{"method": "mmr", "vector": "k5251", "score": c.score, "lambda": c.lambda, "out_key": "score", "measure": measure}
			if c.limit != nil {
				params["limit"] = c.limit
			}
			run := nodeCase{params: params}.runner(t, diversify())
			score, _ := testRegistry().KeyByName(c.score)
			eachRandom(t, 25, func(t *testing.T, rng *rand.Rand, in rowset.RowSet) {
				in = rowset.Take(in, 60) // the reference takes long
				behind := rng.IntN(2) * rng.IntN(in.Len()+2)
				out, err := run(in, behind)
				require.NoError(t, err)
				order, lowered := relevanceReference(in, score.ID, 5251, measure, c.lambda)
				for _, limit := range []int{behind, int(cmp.Or(params["limit"], any(0)).(int))} {
					if limit > 0 {
						order = order[:min(limit, len(order))]
					}
				}
				require.Equal(t, order, append([]int32{}, batchRows(out)...))
				for _, row := range plainRows(out) {
					want, ok := lowered[row.row]
					got, gotOK := row.number(keyScore)
					require.Equal(t, ok, gotOK)
					require.Equal(t, want, got)
				}
			})
		}
	}
}

func TestRelevanceStops(t *testing.T) {
	scores := make([]float64, 10)
	_, err := rowset.MarginalRelevance(cancelled{}, nil, rankdtest.Rows(1, 2, 3), nil, scores, nil, rowset.ByDot, 1, 2)
	assert.ErrorIs(t, err, rowset.ErrStopped)
}

func TestRelevance(t *testing.T) {
	in := rankdtest.WithVectors(rankdtest.Rows(1, 2, 3, 4, 5, 6), 5251, 5,
		[]float32{1, 0, 0, 0, 0}, []float32{2, 0, 0, 0, 0}, []float32{0, 1, 0, 0, 0}, nil, []float32{0, 0, 0, 0, 0}, []float32{1, 0, 0, 0, 0})
	in = rankdtest.WithFloats(in, keyFloat, 10, 9.5, 9.25, 9, 9, nil)
	params := func(out string) nodeCase {
		return nodeCase{params: map[string]any{"method": "mmr", "vector": "k5251", "score": "k1001", "lambda": 1, "out_key": out}}
	}
	out, err := params("score").runner(t, diversify())(in, 0)
	require.NoError(t, err)
	assert.Equal(t, []int64{1, 3, 4, 5, 2, 6}, rankdtest.IDs(out), "the second row has the direction of the first; of equal ones the first is chosen")
	assert.Equal(t, []any{10.0, 9.25, 9.0, 9.0, 8.5, nil}, rankdtest.Values(out, keyScore))
	_, err = params("strict").runner(t, diversify())(in, 0)
	assert.EqualError(t, err, "out_key: the result is null for 1 rows, and strict is not nullable")

	node := params("score")
	node.params["limit"] = 4
	assert.Equal(t, []string{
		"computed; it is similar to no row before it; k1001=10; score=10",
		`cut; of the rows before it, it is most similar to id "1", which takes 1 times this similarity from its score; score 8.5; lacks 0.5; k1001=9.5; score=8.5; cosine=1`,
		`computed; of the rows before it, it is most similar to id "1", which takes 1 times this similarity from its score; k1001=9.25; score=9.25; cosine=0`,
		"computed; it is similar to no row before it; k1001=9; score=9",
		"computed; it is similar to no row before it; k1001=9; score=9",
		"cut; k1001 is null",
	}, reasons(t, node, diversify(), in))
}
