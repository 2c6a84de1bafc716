package builtin

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

func aggregated(method, column, out string) map[string]any {
	value := map[string]any{"method": method, "out_key": out}
	if column != "" {
		value["column"] = column
	}
	return value
}

func TestAggregate(t *testing.T) {
	in := rankdtest.WithFloats(rankdtest.Rows(1, 2, 3, 4, 5), keyFloat, 1, 2, nil, 4, 5)
	in = rankdtest.WithStrings(in, keyText, "a", "b", "a", nil, "a")
	in = rankdtest.WithInts(in, keyInt, int64(math.MaxInt64), int64(2), int64(1), int64(4), int64(-1))
	in = rankdtest.WithVectors(in, 5251, 5, []float32{1, 2, 0, -1, 0}, nil, []float32{3, -2, 0, 1, 0}, []float32{8, 7, 6, 5, 4}, nil)
	for name, c := range map[string]struct {
		by   []string
		keep string
		of   map[string]any
		out  registry.KeyID
		want []any
	}{
		"rows of a group":                    {[]string{"k3001"}, "all", aggregated("count", "", "k5002"), 5002, []any{int64(3), int64(1), int64(3), int64(1), int64(3)}},
		"values of a group":                  {[]string{"k3001"}, "all", aggregated("count", "k1001", "k5002"), 5002, []any{int64(2), int64(1), int64(2), int64(1), int64(2)}},
		"a count as a float":                 {nil, "all", aggregated("count", "k3001", "score"), keyScore, []any{4.0, 4.0, 4.0, 4.0, 4.0}},
		"sum":                                {[]string{"k3001"}, "all", aggregated("sum", "k1001", "score"), keyScore, []any{6.0, 2.0, 6.0, 4.0, 6.0}},
		"an exact sum, too large between":    {[]string{"k3001"}, "all", aggregated("sum", "k5001", "k5002"), 5002, []any{int64(math.MaxInt64), int64(2), int64(math.MaxInt64), int64(4), int64(math.MaxInt64)}},
		"an exact sum that is too large":     {nil, "all", aggregated("sum", "k5001", "k5002"), 5002, []any{nil, nil, nil, nil, nil}},
		"mean":                               {nil, "all", aggregated("mean", "k1001", "score"), keyScore, []any{3.0, 3.0, 3.0, 3.0, 3.0}},
		"min over what it replaces":          {[]string{"k3001"}, "all", aggregated("min", "k5001", "k5001"), keyInt, []any{int64(-1), int64(2), int64(-1), int64(4), int64(-1)}},
		"the first rows":                     {[]string{"k3001"}, "first", aggregated("max", "k1001", "score"), keyScore, []any{5.0, 2.0, 4.0}},
		"the first of all":                   {nil, "first", aggregated("sum", "k1001", "score"), keyScore, []any{12.0}},
		"a column that is not there":         {nil, "all", aggregated("sum", "k1002", "score"), keyScore, []any{nil, nil, nil, nil, nil}},
		"a count of one that is not there":   {nil, "first", aggregated("count", "k1002", "k5002"), 5002, []any{int64(0)}},
		"groups by one that is not there":    {[]string{"k3001", "k3002"}, "all", aggregated("count", "", "k5002"), 5002, []any{int64(1), int64(1), int64(1), int64(1), int64(1)}},
		"groups of an id":                    {[]string{"id"}, "first", aggregated("max", "id", "k5002"), 5002, []any{int64(1), int64(2), int64(3), int64(4), int64(5)}},
		"the mean of vectors":                {[]string{"k3001"}, "first", aggregated("mean", "k5251", "k5252"), 5252, []any{[]float32{2, 0, 0, 0, 0}, nil, []float32{8, 7, 6, 5, 4}}},
		"the mean of ids, which are doubles": {nil, "first", aggregated("mean", "id", "score"), keyScore, []any{3.0}},
	} {
		t.Run(name, func(t *testing.T) {
			params := map[string]any{"values": []any{c.of}, "keep": c.keep}
			if c.by != nil {
				params["by"] = c.by
			}
			run := nodeCase{params: params}.runner(t, aggregate())
			out, err := run(in, 0)
			require.NoError(t, err)
			assert.Equal(t, c.want, rankdtest.Values(out, c.out))
			out, err = run(rowset.Take(in, 0), 0)
			require.NoError(t, err)
			assert.Zero(t, out.Len(), "a group needs rows")
		})
	}
	_, err := nodeCase{params: map[string]any{"by": []string{"k3001"}, "values": []any{aggregated("count", "", "strict"), aggregated("sum", "k1002", "strict")}[1:]}}.
		runner(t, aggregate())(in, 0)
	assert.EqualError(t, err, "values[0].out_key: the result is null for 3 groups, and strict is not nullable")
}

// On random rows, the task gives what a walk over all pairs of rows gives.
func TestAggregateIsTheReference(t *testing.T) {
	for _, by := range [][]registry.KeyID{nil, {keyText}, {keyBool, keyText}, {keyInt, keyBool}} {
		for _, keep := range []string{"all", "first"} {
			params := map[string]any{"keep": keep, "values": []any{aggregated("count", "", "k5002"), aggregated("count", "k1001", "score"),
				aggregated("sum", "k1001", "second"), aggregated("max", "k5001", "k5001")}}
			if by != nil {
				names := []string{}
				for _, key := range by {
					names = append(names, fmt.Sprintf("k%d", key))
				}
				params["by"] = names
			}
			run := nodeCase{params: params}.runner(t, aggregate())
			eachRandom(t, 25, func(t *testing.T, _ *rand.Rand, in rowset.RowSet) {
				rows := plainRows(in)
				same := func(a, b plainRow) bool {
					for _, key := range by {
						if x, y := a.fields[key], b.fields[key]; x == nil || y == nil || x != y {
							return a.row == b.row
						}
					}
					return true
				}
				var want []plainRow
				for i, row := range rows {
					fields, sum, first := map[registry.KeyID]any{5002: int64(0), keyScore: 0.0}, 0.0, true
					for k, other := range rows {
						if !same(row, other) {
							continue
						}
						first = first && k >= i
						fields[5002] = fields[5002].(int64) + 1
						if v, ok := other.fields[keyFloat].(float64); ok {
							fields[keyScore] = fields[keyScore].(float64) + 1
							sum += v
							fields[keySecond] = sum
						}
						if v, ok := other.fields[keyInt].(int64); ok && (fields[keyInt] == nil || v > fields[keyInt].(int64)) {
							fields[keyInt] = v
						}
					}
					if math.IsInf(sum, 0) || math.IsNaN(sum) {
						delete(fields, keySecond)
					}
					if keep == "all" || first {
						want = append(want, plainRow{row: row.row, fields: fields})
					}
				}
				out, err := run(in, 0)
				require.NoError(t, err)
				got := plainRows(out)
				require.Len(t, got, len(want))
				for i := range want {
					require.Equal(t, want[i].row, got[i].row)
					for _, key := range []registry.KeyID{5002, keyScore, keySecond, keyInt} {
						require.Equal(t, want[i].fields[key], got[i].fields[key], "key %d of row %d", key, i)
					}
				}
			})
		}
	}
}

func TestAggregateRefuses(t *testing.T) {
	count := aggregated("count", "", "k5002")
	for want, params := range map[string]map[string]any{
		"params.by[1]: key k3001 is there twice":                                                             {"by": []string{"k3001", "k3001"}, "values": []any{count}},
		"params.values[1].out_key: key k5002 is there twice":                                                 {"values": []any{count, count}},
		`params.values[0].column: is missing: method "sum" needs it`:                                         {"values": []any{aggregated("sum", "", "score")}},
		`params.values[0].column: is k3001 of type string, and method "max" is for int or float`:             {"values": []any{aggregated("max", "k3001", "score")}},
		"params.values[1].out_key: is k5001 of type int, and the mean of k5002 (int) is a float":             {"values": []any{count, aggregated("mean", "k5002", "k5001")}},
		"params.values[0].out_key: is k5001 of type int, and the sum of k1001 (float) is a float":            {"values": []any{aggregated("sum", "k1001", "k5001")}},
		"params.values[0].out_key: is k5251 of type vector(5), which is for the mean of such vectors alone":  {"values": []any{aggregated("mean", "k1001", "k5251")}},
		"params.values[0].column: is k5251 of type vector(5), which has a mean of that type alone":           {"values": []any{aggregated("count", "k5251", "k5002")}},
		"params.values: must have 1 to 64 items, not 0":                                                      {"values": []any{}},
		"params.values[0].out_key: must be a key that the task may write, and key 6004 (fixed) is read-only": {"values": []any{aggregated("count", "", "fixed")}},
		"params.by[0]: must be a key of type int, string or bool, not key 1001 (k1001) of type float":        {"by": []string{"k1001"}, "values": []any{count}},
		`params.values[0].method: must be "count", "sum", "mean", "min" or "max", not "median"`:              {"values": []any{aggregated("median", "k1001", "score")}},
	} {
		nodeCase{params: params}.refuses(t, aggregate(), want)
	}
}

// A row that is gone names the row that stays in its place.
func TestAggregateNamesTheRowThatStays(t *testing.T) {
	in := rankdtest.WithStrings(rankdtest.Rows(1, 2, 3, 4), keyText, "a", "b", "a", nil)
	node, err := nodeCase{params: map[string]any{"by": []string{"k3001"}, "keep": "first", "values": []any{aggregated("count", "", "k5002")}}}.load(t, aggregate())
	require.NoError(t, err)
	c := &task.Ctx{Node: node, Inputs: []rowset.RowSet{in}, Registry: testRegistry()}
	out, err := invoke(c)
	require.NoError(t, err)
	why := explainAggregate(c, out).Reason(task.RowAt{Pos: 2})
	assert.Equal(t, task.Reason{Kind: task.Deduplicated, Text: "the first row of its group stays", Instead: []int64{1}, By: keyText}, why)
}
