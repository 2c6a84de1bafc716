package expr

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rankd/rankd/rowset"
)

// benchRows has n rows: ids, score (1001) without nulls, final (2001) with a tenth of nulls,
// and country (3001) with 200 values. Scores are uniform in [0, 1).
func benchRows(n int) rowset.RowSet {
	rng := rand.New(rand.NewPCG(1, 1))
	ids, scores, finals := make([]int64, n), make([]float64, n), make([]float64, n)
	valid := rowset.NewBitmap(n)
	country := rowset.NewStringBuilder(3001, n)
	for i := range n {
		ids[i], scores[i], finals[i] = int64(i), rng.Float64(), rng.Float64()
		if rng.IntN(10) > 0 {
			valid.Set(i)
		}
		country.Append(fmt.Appendf(nil, "C%d", rng.IntN(200)))
	}
	return rowset.Dense(rowset.NewBatch(ids,
		&rowset.FloatColumn{Key: 1001, Values: scores},
		&rowset.FloatColumn{Key: 2001, Values: finals, Valid: valid},
		country.Column(),
	))
}

// benchShapes are the same rows in three forms: all of them, a random 9 of 10 (dense
// selection), and 1 of 10 (sparse).
func benchShapes(n int) map[string]rowset.RowSet {
	all := benchRows(n)
	shapes := map[string]rowset.RowSet{"dense": all}
	for name, tenths := range map[string]int{"selected": 9, "sparse": 1} {
		rng := rand.New(rand.NewPCG(2, 2))
		rs := rowset.RowSet{Batch: all.Batch}
		for row := range n {
			if rng.IntN(10) < tenths {
				rs.Rows = append(rs.Rows, int32(row))
			}
		}
		rs.N = len(rs.Rows)
		shapes[name] = rs
	}
	return shapes
}

var benchSizes = []int{8, 1000, 1_000_000}

// perRow reports the time per active row.
func perRow(b *testing.B, rows rowset.RowSet) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows.N), "ns/row")
}

func BenchmarkExpr(b *testing.B) {
	const final = `{"op":"key_ref","key_id":2001}`
	for _, c := range []struct{ name, tree string }{
		{"id*coalesce(param,0.2)", bi("mul", id, bi("coalesce", weight, num("0.2")))},
		{"score*final+id", bi("add", bi("mul", score, final), id)},
		{"coalesce(final,score)", bi("coalesce", final, score)},
	} {
		e := mustExpr(b, c.tree)
		benchRuns(b, c.name, func(rows rowset.RowSet) { columnOf(e, rows, nil) })
	}
}

// benchRuns measures a run over rows of each size, dense and selected.
func benchRuns(b *testing.B, name string, run func(rowset.RowSet)) {
	for _, n := range benchSizes {
		for _, shape := range []string{"dense", "selected"} {
			b.Run(fmt.Sprintf("%s/rows=%d/%s", name, n, shape), func(b *testing.B) {
				rows := benchShapes(n)[shape]
				b.ReportAllocs()
				for b.Loop() {
					run(rows)
				}
				perRow(b, rows)
			})
		}
	}
}

func BenchmarkFilter(b *testing.B) {
	const final = `{"op":"key_ref","key_id":2001}`
	for _, c := range []struct{ name, tree string }{
		{"score>=0.6", cmp(score, ">=", num("0.6"))},
		{"final>=score", cmp(final, ">=", score)},
		{"score<0.01&&final>=0.5", bi("and", cmp(score, "<", num("0.01")), cmp(final, ">=", num("0.5")))},
		{"score<0.5||in(country)", bi("or", cmp(score, "<", num("0.5")), in(text, `"C1","C2","C3"`))},
		{"regex(country)", regex("7$", "")},
	} {
		p := mustPred(b, c.tree)
		benchRuns(b, c.name, func(rows rowset.RowSet) {
			if _, err := p.Filter(nil, nil, rows, nil); err != nil {
				b.Fatal(err)
			}
		})
	}
}
