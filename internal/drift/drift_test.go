package drift

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/rowcache"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
)

// Quantiles are those of a sorted list, within a tenth, and forget what is ten minutes old.
func TestQuantilesOfScores(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 30 {
		var s scores
		var all []float64
		sum := 0.0
		now := clock.Time(time.Hour)
		for range 100 {
			s.add(1e6, now) // forgotten below
		}
		now = now.Add(2 * window)
		for range 1 + rng.IntN(2000) {
			x := math.Exp(rng.NormFloat64()*3) - float64(round%3)
			all = append(all, x)
			sum += x
			s.add(x, now)
		}
		slices.Sort(all)
		got := s.stats(now.Add(window - 1))
		assert.InEpsilon(t, sum+1e8, got.Sum, 1e-9, "sums forget nothing")
		assert.EqualValues(t, len(all)+100, got.Count)
		for i, q := range Quantiles {
			want := all[max(int(math.Ceil(q*float64(len(all)))), 1)-1]
			assert.InDelta(t, want, got.At[i], math.Abs(want)/10+2/scale, "round %d, quantile %g", round, q)
		}
		for i := range Quantiles {
			assert.True(t, math.IsNaN(s.stats(now.Add(2 * window)).At[i]))
		}
	}
}

// Counts are those of plain loops over the rows, whichever rows are active.
func TestColumnsAreCountedAsByPlainLoops(t *testing.T) {
	float := &registry.Key{ID: 50, Name: "price", Type: registry.Float, Default: 7.0}
	c := &column{Column: Column{Name: "price"}}
	b := rowset.NewFloatBuilder(50, 0)
	for i := range 500 {
		switch i % 5 {
		case 0:
			b.AppendNull()
		case 1:
			b.Append(7)
		default:
			b.Append(float64(i))
		}
	}
	ids := make([]int64, 500)
	batch := rowset.NewBatch(ids, b.Column())
	c.read(rowset.RowSet{Batch: batch, Rows: []int32{0, 1, 6, 8, 5}, N: 5}, float)
	assert.Equal(t, Column{Name: "price", Rows: 5, Nulls: 2, Defaults: 2}, c.Column)
	c.read(rowset.RowSet{Batch: rowset.NewBatch(ids), N: 500}, float)
	assert.Equal(t, Column{Name: "price", Rows: 505, Nulls: 502, Defaults: 2}, c.Column, "rows without the column")
	c.read(rowset.RowSet{}, float)
	assert.EqualValues(t, 505, c.Rows, "no rows")
	large := rowset.RowSet{Batch: rowset.NewBatch(make([]int64, 100_000)), N: 100_000}
	seen := 0
	eachValue(large, float, func(rowset.Column, int) { seen++ })
	assert.Equal(t, RowsMax, seen)
}

// A plan and side are due once in a while, each for itself, and no more than so many are told apart.
func TestDue(t *testing.T) {
	w := &Watch{Clock: clock.NewReal()}
	now := clock.Time(time.Hour)
	a := w.Due("home", "", "", now)
	require.NotNil(t, a)
	assert.Nil(t, w.Due("home", "", "", now.Add(Every-1)))
	assert.Same(t, a, w.Due("home", "", "", now.Add(Every)))
	assert.NotSame(t, a, w.Due("home", "start", "b", now))
	assert.Zero(t, testing.AllocsPerRun(100, func() { w.Due("home", "start", "b", now) }))
	for i := range seriesMax + 10 {
		w.Due(fmt.Sprint(i), "", "", now)
	}
	assert.Nil(t, w.Due("the last", "", "", now))
	_, sampled := w.Columns()
	assert.Len(t, sampled, seriesMax)
}

// What too many others are counted for is lost, and said to be.
func TestLost(t *testing.T) {
	w := &Watch{Clock: clock.NewReal()}
	s := w.Due("home", "", "", 1)
	w.counting.Store(countingMax)
	s.Count(new(plan.Graph), []scheduler.NodeRows{})
	w.counting.Store(0)
	s.Count(new(plan.Graph), []scheduler.NodeRows{{Cached: rowcache.Use{Values: 3, Old: 1}}})
	w.Wait()
	_, sampled := w.Columns()
	assert.Equal(t, []Sampled{{Plan: "home", Counted: 1, Lost: 1}}, sampled)
}
