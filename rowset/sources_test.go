package rowset

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/registry"
)

// The property tests of these kernels are those of their tasks, in task/builtin. This file
// tests the parts that no task reaches.

const (
	testScore  registry.KeyID = 11
	testName   registry.KeyID = 12
	testSource registry.KeyID = 13
)

// sourceRows returns rows, half of which repeat an id, with a float, a string and a set column.
// They are in a random order, if listed.
func sourceRows(n int, listed bool) RowSet {
	rng := rand.New(rand.NewPCG(14, uint64(n)))
	ids := make([]int64, n)
	scores := NewFloatBuilder(testScore, n)
	names := NewStringBuilder(testName, n)
	sources := SetColumn{Key: testSource, Codes: make([]int32, n), Dict: &SetDict{
		Offsets: []int32{0, 1, 2, 3}, Members: []int32{0, 1, 2}, Strings: &Dict{Values: []string{"follow", "popular", "similar"}},
	}}
	for i := range ids {
		ids[i] = rng.Int64N(int64(n)/2+1) * 1_000_003
		scores.Append(rng.Float64())
		names.Append(strconv.AppendInt(nil, ids[i]%100, 10))
		sources.Codes[i] = rng.Int32N(3)
	}
	rs := Dense(NewBatch(ids, scores.Column(), names.Column(), &sources))
	if listed {
		rs.Rows = make([]int32, n)
		for i, row := range rng.Perm(n) {
			rs.Rows[i] = int32(row)
		}
	}
	return rs
}

// sourceKernels are the kernels that join sources, over n rows.
func sourceKernels(n int, listed bool) map[string]func(Stop, *Memory) error {
	in, right := sourceRows(n, listed), sourceRows(n, false)
	dedupe := func(d Distinction) func(Stop, *Memory) error {
		return func(stop Stop, m *Memory) error {
			_, err := Dedupe(stop, m, in, d)
			return err
		}
	}
	match := func(key registry.KeyID) func(Stop, *Memory) error {
		return func(stop Stop, m *Memory) error {
			_, err := Match(stop, m, Side{in, key}, Side{right, key})
			return err
		}
	}
	first, second := sourceRows(n/2, listed), sourceRows(n-n/2, listed)
	half := NewBitmap(n)
	for i := 0; i < n; i += 2 {
		half.Set(i)
	}
	counts := []int{n / 2, n / 4, n - n/2 - n/4}
	return map[string]func(Stop, *Memory) error{
		"Dedupe/id":        dedupe(Distinction{By: registry.IDKey}),
		"Dedupe/string":    dedupe(Distinction{By: testName}),
		"Dedupe/max":       dedupe(Distinction{By: registry.IDKey, Keep: KeepMax, Column: testScore}),
		"Dedupe/sources":   dedupe(Distinction{By: registry.IDKey, Sets: testSource}),
		"Match/id":         match(registry.IDKey),
		"Match/string":     match(testName),
		"Where/half":       func(_ Stop, m *Memory) error { Where(m, in, half); return nil },
		"Interleave/ratio": func(_ Stop, m *Memory) error { Interleave(m, counts, nil, []int32{0, 1, 0, 2}, 1); return nil },
		"FillSlots/ads":    func(_ Stop, m *Memory) error { FillSlots(m, counts, nil, []Slot{{3, 1}, {8, 1}}); return nil },
		"Union/two":        func(_ Stop, m *Memory) error { Concat(m, first, second); return nil },
	}
}

// lendingMemory returns a Memory with slices from a pool, and a function that gives them back.
func lendingMemory() (*Memory, func()) {
	m := NewMemory(NewPool(PoolConfig{LengthMin: 1, BytesMax: 1 << 30}))
	m.SetLending(true)
	return m, func() { m.Release(nil) }
}

// Each kernel makes a fixed number of allocations, whatever the number of rows.
func TestSourceKernelsAllocateNothingPerRow(t *testing.T) {
	few, many := sourceKernels(1_000, true), sourceKernels(100_000, true)
	for name := range few {
		t.Run(name, func(t *testing.T) {
			allocations := func(kernel func(Stop, *Memory) error) float64 {
				m, release := lendingMemory()
				return testing.AllocsPerRun(5, func() {
					assert.NoError(t, kernel(nil, m))
					release()
				})
			}
			at1000, at100000 := allocations(few[name]), allocations(many[name])
			assert.LessOrEqual(t, at100000, at1000+1)
			assert.Less(t, at100000, 40.0)
		})
	}
}

// Each kernel that looks at a large table stops when nobody wants its result any more.
func TestSourceKernelsStop(t *testing.T) {
	for name, kernel := range sourceKernels(100, true) {
		switch name {
		case "Dedupe/id", "Dedupe/string", "Dedupe/max", "Match/id", "Match/string":
			assert.ErrorIs(t, kernel(stopped{}, nil), ErrStopped, name)
		}
	}
}

type stopped struct{}

func (stopped) Cancelled() bool { return true }

// Texts with the same hash are not the same text. Few texts have their lengths for hashes.
func TestMatchComparesTextsOfEqualHashes(t *testing.T) {
	left := &StringColumn{Places: []int32{3, 0, 2, 1, 0, -1}, Dict: &Dict{Values: []string{"a", "b", "x", "c", "never"}}}
	to := &Dict{Values: []string{"c", "unused", "b", "a"}}
	right := rowKeys{values: []int64{3, 0, -1, 2, 0}, valid: NewBitmapOf(5, 5)}
	right.valid.Clear(2)
	in := RowSet{Batch: NewBatch(make([]int64, 6), left), N: 6}
	assert.Equal(t, []int64{0, 3, -2, 2, 3}, translate(nil, in, left, to, right).values[:5])

	many := &Dict{}
	for i := range 10_000 {
		many.Values = append(many.Values, strconv.Itoa(i%5000))
	}
	index := newTextIndex(nil, many.Values, len(many.Values))
	for place := range int32(10_000) {
		require.Equal(t, place%5000, index.add(place))
	}
	for place, text := range many.Values {
		found, _ := index.find(text, index.hash(text))
		require.EqualValues(t, place%5000, found)
	}
	found, _ := index.find("none", index.hash("none"))
	assert.Negative(t, found)
}

// A table finds what was put in, whatever the keys are.
func TestKeyTable(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 9))
	for range 200 {
		keys := make([]int64, 1+rng.IntN(300))
		for i := range keys {
			switch rng.IntN(3) {
			case 0:
				keys[i] = int64(rng.Uint64())
			case 1:
				keys[i] = int64(rng.IntN(50)) << 56
			default:
				keys[i] = int64(rng.IntN(50))
			}
		}
		table, first := newKeyTable(nil, keys, len(keys)), make(map[int64]int32)
		for pos, key := range keys {
			found, slot := table.find(key)
			if want, ok := first[key]; ok {
				require.Equal(t, want, found)
				continue
			}
			require.Equal(t, int32(-1), found)
			table.put(slot, int32(pos))
			first[key] = int32(pos)
		}
		for key, want := range first {
			found, _ := table.find(key)
			require.Equal(t, want, found)
		}
	}
}

func TestSetsHaveNoOrderAndNoKeys(t *testing.T) {
	in := sourceRows(10, false)
	var wrong *KeyTypeError
	_, err := Dedupe(nil, nil, in, Distinction{By: testSource})
	require.ErrorAs(t, err, &wrong)
	assert.EqualError(t, wrong, "rows cannot be compared by key 13: its column has type string_set")
	_, err = Match(nil, nil, Side{in, testSource}, Side{in, testSource})
	require.ErrorAs(t, err, &wrong)
	_, err = Match(nil, nil, Side{in, testScore}, Side{in, testName})
	require.ErrorAs(t, err, &wrong)
}

// A column that a batch lacks is null in all rows.
func TestSourcesOfMissingColumns(t *testing.T) {
	const missing registry.KeyID = 99
	in := sourceRows(10, false)
	out, err := Dedupe(nil, nil, in, Distinction{By: missing})
	require.NoError(t, err)
	assert.Equal(t, 10, out.N, "nulls are not duplicates")
	out, err = Dedupe(nil, nil, in, Distinction{By: registry.IDKey, Keep: KeepMax, Column: missing, Sets: missing})
	require.NoError(t, err)
	first, err := Dedupe(nil, nil, in, Distinction{By: registry.IDKey})
	require.NoError(t, err)
	assert.Equal(t, first, out)
	for _, sides := range [][2]Side{{{in, missing}, {in, registry.IDKey}}, {{in, registry.IDKey}, {in, missing}}, {{in, registry.IDKey}, {Key: registry.IDKey}}} {
		rowOf, err := Match(nil, nil, sides[0], sides[1])
		require.NoError(t, err)
		assert.Equal(t, slices.Repeat([]int32{-1}, 10), rowOf)
	}
}

func TestProject(t *testing.T) {
	in := sourceRows(3, false).Batch
	keys := []*registry.Key{{ID: testName, Type: registry.String}, {ID: testScore, Type: registry.Int}}
	for i, missing := range []registry.Type{registry.Int, registry.Float, registry.Bool, registry.String, registry.StringSet} {
		keys = append(keys, &registry.Key{ID: registry.KeyID(20 + i), Type: missing})
	}
	out := Project(in, keys, true)
	require.NoError(t, out.Validate())
	assert.Equal(t, []registry.KeyID{testScore, testName, 20, 21, 22, 23, 24}, out.AppendKeys(nil))
	assert.True(t, SharesColumn(in, out, testName))
	for _, key := range keys[1:] {
		assert.Equal(t, key.Type, out.TypeOf(key.ID))
		for row := range 3 {
			assert.True(t, isNullAt(out, key.ID, row), "key %d", key.ID)
		}
	}
	require.NoError(t, Project(new(Batch), keys, true).Validate())

	out = Project(in, keys[2:], false)
	assert.Empty(t, out.AppendKeys(nil), "it has none of them")
	assert.Equal(t, in.IDs, out.IDs)
	out = Project(in, []*registry.Key{{ID: testName, Type: registry.String}, keys[2], {ID: testScore, Type: registry.Float}}, false)
	assert.Equal(t, []registry.KeyID{testScore, testName}, out.AppendKeys(nil))
	assert.True(t, SharesColumn(in, out, testScore))
	assert.Nil(t, Project(nil, keys, false))
}

func isNullAt(b *Batch, key registry.KeyID, row int) bool {
	switch b.TypeOf(key) {
	case registry.Int:
		return !b.Int(key).Valid.Get(row)
	case registry.Float:
		return !b.Float(key).Valid.Get(row)
	case registry.Bool:
		return !b.Bool(key).Valid.Get(row)
	case registry.String:
		return b.String(key).Places[row] == NullCode
	default:
		return b.Set(key).Codes[row] == NullCode
	}
}

func TestWhereWithNothingToDrop(t *testing.T) {
	in := sourceRows(70, false)
	all := NewBitmapOf(70, 70)
	assert.Equal(t, in, Where(nil, in, all))
	all.Clear(69)
	assert.Equal(t, 69, Where(nil, in, all).N)
	assert.Zero(t, Where(nil, in, NewBitmap(70)).N)
}

// benchmarkSources times the kernels whose names begin with family.
func benchmarkSources(b *testing.B, family string) {
	for _, name := range slices.Sorted(maps.Keys(sourceKernels(4, false))) {
		if !strings.HasPrefix(name, family+"/") {
			continue
		}
		for _, order := range []string{"dense", "listed"} {
			for _, rows := range []int{100, 10_000, 1_000_000} {
				b.Run(fmt.Sprintf("%s/%s/%d", strings.TrimPrefix(name, family+"/"), order, rows), func(b *testing.B) {
					kernel := sourceKernels(rows, order == "listed")[name]
					m, release := lendingMemory()
					b.ReportAllocs()
					for b.Loop() {
						if err := kernel(nil, m); err != nil {
							b.Fatal(err)
						}
						release()
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/row")
				})
			}
		}
	}
}

func BenchmarkDedupe(b *testing.B)     { benchmarkSources(b, "Dedupe") }
func BenchmarkMatch(b *testing.B)      { benchmarkSources(b, "Match") }
func BenchmarkUnion(b *testing.B)      { benchmarkSources(b, "Union") }
func BenchmarkInterleave(b *testing.B) { benchmarkSources(b, "Interleave") }
func BenchmarkWhere(b *testing.B)      { benchmarkSources(b, "Where") }
