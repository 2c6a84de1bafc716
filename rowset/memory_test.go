package rowset_test

import (
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/rowset"
)

func lendingMemory(p *rowset.Pool) *rowset.Memory {
	m := rowset.NewMemory(p)
	m.SetLending(true)
	return m
}

// A slice that a request gave back serves the next request, at any length in its class.
func TestMemoryIsUsedAgain(t *testing.T) {
	p := rowset.NewPool(rowset.PoolConfig{Poison: true})
	m := lendingMemory(p)
	ids, floats, rows := m.IDs(1000), m.Floats(600), m.Rows(5000)
	assert.Len(t, ids, 1000)
	assert.Equal(t, 1000, cap(ids), "appending to it must not reach what comes after")
	assert.Zero(t, p.Bytes(), "all is lent")
	other := m.IDs(1000)
	assert.NotSame(t, &ids[0], &other[0])

	m.Release(nil)
	assert.Equal(t, 8*(1024+1024+1024)+4*8192, p.Bytes())
	assert.Equal(t, int64(-1), ids[0], "poisoned")
	again := m.IDs(513)
	assert.Contains(t, []*int64{&ids[0], &other[0]}, &again[0])
	assert.Same(t, &floats[0], &m.Floats(1024)[0])
	assert.NotSame(t, &rows[0], &m.Rows(4096)[0], "of another class")
}

// Short slices are parts of blocks, which grow with the request. No two slices overlap.
func TestShortSlicesAreParts(t *testing.T) {
	p := rowset.NewPool(rowset.PoolConfig{Poison: true})
	m := lendingMemory(p)
	var all [][]int32
	for i := range 40 {
		part := m.Rows(100 + i)
		assert.Len(t, part, 100+i)
		assert.Equal(t, 100+i, cap(part), "appending to it must not reach the next one")
		for j := range part {
			part[j] = int32(i)
		}
		all = append(all, part)
	}
	for i, part := range all {
		assert.Equal(t, int32(i), part[0])
		assert.Equal(t, int32(i), part[len(part)-1])
	}
	m.Release(nil)
	assert.Equal(t, 4*(512+1024+2048+4096), p.Bytes(), "few blocks have all")
	assert.Zero(t, all[0][0], "poisoned")
	assert.Same(t, &all[0][0], &m.Rows(64)[0], "the next request begins with the short block")
	m.Release(nil)
}

// A memory that does not lend allocates each slice, and the pool never sees it.
func TestMemoryThatIsNotLent(t *testing.T) {
	p := rowset.NewPool(rowset.PoolConfig{BytesMax: 1 << 20, LengthMin: 100})
	notLending := rowset.NewMemory(p)
	notLending.SetLending(false)
	for _, c := range []struct {
		name   string
		m      *rowset.Memory
		length int
	}{
		{"no memory", nil, 1000}, {"a request that may leave references", notLending, 1000},
		{"few elements", lendingMemory(p), 99}, {"none", lendingMemory(p), 0}, {"too many", lendingMemory(p), 1<<15 + 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, make([]int64, c.length), c.m.IDs(c.length))
			assert.Equal(t, make([]float64, c.length), c.m.Floats(c.length))
			assert.Equal(t, make([]int32, c.length), c.m.Rows(c.length))
			c.m.Release(nil)
			assert.Zero(t, p.Bytes())
		})
	}
}

// The bound holds. A full pool makes room for the sizes in use now.
func TestMemoryIsBounded(t *testing.T) {
	const most = 1 << 20
	p := rowset.NewPool(rowset.PoolConfig{BytesMax: most})
	m := lendingMemory(p)
	for range 100 {
		m.IDs(10_000) // 128 KB as lent
	}
	m.Release(nil)
	assert.Positive(t, p.Bytes())
	assert.LessOrEqual(t, p.Bytes(), most)

	small := m.Rows(600)
	for range 7 {
		m.Floats(10_000)
	}
	m.Release(nil)
	assert.LessOrEqual(t, p.Bytes(), most)
	assert.Same(t, &small[0], &m.Rows(600)[0])
}

// An answer never shows memory that goes to other requests: small outputs are copied, and large
// ones keep their memory.
func TestMemoryOfAnAnswer(t *testing.T) {
	for _, c := range []struct {
		name     string
		show     int
		isCopied bool
	}{{"small", 10, true}, {"none", 0, true}, {"large", 3000, false}} {
		t.Run(c.name, func(t *testing.T) {
			p := rowset.NewPool(rowset.PoolConfig{Poison: true})
			m := lendingMemory(p)
			ids, scores := m.IDs(10_000), m.Floats(10_000)
			for i := range ids {
				ids[i], scores[i] = int64(i), float64(i)/2
			}
			all := rowset.Dense(rowset.NewBatch(ids, &rowset.FloatColumn{Key: 2001, Values: scores}))
			ordered, err := rowset.Sort(nil, m, all, 2001, true)
			require.NoError(t, err)
			outputs := []rowset.RowSet{rowset.Take(ordered, c.show), {}}
			before := p.Bytes() // the scratch memory of the sort
			m.Release(outputs)
			assert.Equal(t, c.isCopied, p.Bytes() > before, "what was lent came back")
			next := lendingMemory(p)
			for range 4 {
				clear(next.IDs(10_000))
				clear(next.Floats(10_000))
				clear(next.Rows(10_000))
			}
			require.NoError(t, outputs[0].Validate())
			require.Equal(t, c.show, outputs[0].Len())
			for i := range c.show {
				row := int(outputs[0].Row(i))
				require.Equal(t, int64(9999-i), outputs[0].ID(i))
				require.Equal(t, float64(9999-i)/2, outputs[0].Batch.Float(2001).Values[row])
			}
			assert.Equal(t, rowset.RowSet{}, outputs[1])
		})
	}
}

// Several bodies of a request take memory at the same time, and several requests do.
func TestMemoryOfManyGoroutines(t *testing.T) {
	p := rowset.NewPool(rowset.PoolConfig{BytesMax: 1 << 20, Poison: true})
	in := rowset.Dense(rowset.NewBatch(make([]int64, 700), &rowset.FloatColumn{Key: 2001, Values: make([]float64, 700)}))
	for i := range in.Batch.IDs {
		in.Batch.Float(2001).Values[i] = math.Mod(float64(i)*7919, 700)
	}
	want := sorted(in, 2001, true)
	var requests sync.WaitGroup
	for range 8 {
		requests.Go(func() {
			m := lendingMemory(p)
			for range 5 {
				var bodies sync.WaitGroup
				for range 3 {
					bodies.Go(func() {
						got, err := rowset.Sort(nil, m, in, 2001, true)
						assert.NoError(t, err)
						assert.Equal(t, want.Rows, got.Rows)
					})
				}
				bodies.Wait()
				m.Release(nil)
			}
		})
	}
	requests.Wait()
	assert.LessOrEqual(t, p.Bytes(), 1<<20)
}
