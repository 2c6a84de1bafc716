package rowset

import "github.com/rankd/rankd/registry"

// An assembly makes a dense batch of the listed rows of several batches, with the columns of all of them. It does not
// hold the Memory of the result: with it, the list of sides would not fit the stack of the caller.
// One goroutine at a time.
type assembly struct {
	sides []RowSet // each has a batch; rows may repeat
	n     int      // rows of all sides
	holes bool     // rows may be -1: id 0, and null in each column
}

func (a *assembly) batch(m *Memory) *Batch {
	ids := m.IDs(a.n)
	collect(a, ids, 0, func(b *Batch) []int64 { return b.IDs })
	return &Batch{IDs: ids, Columns: a.columns(m)}
}

func (a *assembly) columns(m *Memory) Columns {
	return Columns{
		Floats:  join(a, func(b *Batch) []FloatColumn { return b.Floats }, func(key registry.KeyID) FloatColumn { return a.floats(m, key) }),
		Strings: join(a, func(b *Batch) []StringColumn { return b.Strings }, func(key registry.KeyID) StringColumn { return a.strings(m, key) }),
		Ints:    join(a, func(b *Batch) []IntColumn { return b.Ints }, func(key registry.KeyID) IntColumn { return a.ints(m, key) }),
		Bools:   join(a, func(b *Batch) []BoolColumn { return b.Bools }, a.bools),
		Sets:    join(a, func(b *Batch) []SetColumn { return b.Sets }, func(key registry.KeyID) SetColumn { return a.sets(m, key) }),
	}
}

// join makes the columns of one type: one for each key that has this type in the first side that has the key at all.
func join[C column](a *assembly, of func(*Batch) []C, column func(registry.KeyID) C) []C {
	var joined []C
	for i := range a.sides {
		list := of(a.sides[i].Batch)
		for k := range list {
			key := list[k].key()
			if a.before(i, key) {
				continue
			}
			if joined == nil {
				joined = make([]C, 0, most(a, of))
			}
			joined = append(joined, column(key))
		}
	}
	sortByKey(joined)
	return joined
}

// before reports whether a side before side i has that key.
func (a *assembly) before(i int, key registry.KeyID) bool {
	for k := range i {
		if a.sides[k].Batch.TypeOf(key) != 0 {
			return true
		}
	}
	return false
}

// most returns how many columns of one type the side with the most of them has.
func most[C column](a *assembly, of func(*Batch) []C) (n int) {
	for i := range a.sides {
		n = max(n, len(of(a.sides[i].Batch)))
	}
	return n
}

func (a *assembly) floats(m *Memory, key registry.KeyID) FloatColumn {
	out := FloatColumn{Key: key, Values: m.Floats(a.n)}
	collect(a, out.Values, 0, func(b *Batch) []float64 {
		if c := b.Float(key); c != nil {
			return c.Values
		}
		return nil
	})
	out.Valid = a.valid(func(b *Batch) (Bitmap, bool) {
		if c := b.Float(key); c != nil {
			return c.Valid, true
		}
		return nil, false
	})
	return out
}

func (a *assembly) ints(m *Memory, key registry.KeyID) IntColumn {
	out := IntColumn{Key: key, Values: m.IDs(a.n)}
	collect(a, out.Values, 0, func(b *Batch) []int64 {
		if c := b.Int(key); c != nil {
			return c.Values
		}
		return nil
	})
	out.Valid = a.valid(func(b *Batch) (Bitmap, bool) {
		if c := b.Int(key); c != nil {
			return c.Valid, true
		}
		return nil, false
	})
	return out
}

func (a *assembly) bools(key registry.KeyID) BoolColumn {
	out := BoolColumn{Key: key}
	out.Values = a.bits(func(b *Batch) (Bitmap, bool) {
		if c := b.Bool(key); c != nil {
			return c.Values, true
		}
		return nil, false
	})
	out.Valid = a.valid(func(b *Batch) (Bitmap, bool) {
		if c := b.Bool(key); c != nil {
			return c.Valid, true
		}
		return nil, false
	})
	return out
}

func (a *assembly) strings(m *Memory, key registry.KeyID) StringColumn {
	out := StringColumn{Key: key, Codes: m.Rows(a.n)}
	collect(a, out.Codes, NullCode, func(b *Batch) []int32 {
		if c := b.String(key); c != nil {
			return c.Codes
		}
		return nil
	})
	merge, rest := newDictMerge(a.sides, key), out.Codes
	for i := range a.sides {
		side := &a.sides[i]
		codes := rest[:side.N]
		rest = rest[side.N:]
		if c := side.Batch.String(key); c != nil && c.Dict != merge.base {
			merge.recode(codes, c.Dict)
		}
	}
	out.Dict = merge.result()
	return out
}

func (a *assembly) sets(m *Memory, key registry.KeyID) SetColumn {
	out := SetColumn{Key: key, Codes: m.Rows(a.n)}
	collect(a, out.Codes, NullCode, func(b *Batch) []int32 {
		if c := b.Set(key); c != nil {
			return c.Codes
		}
		return nil
	})
	merge, rest := newSetMerge(a.sides, key), out.Codes
	for i := range a.sides {
		side := &a.sides[i]
		codes := rest[:side.N]
		rest = rest[side.N:]
		if c := side.Batch.Set(key); c != nil && c.Dict != merge.base {
			merge.recode(codes, c.Dict)
		}
	}
	out.Dict = merge.result()
	return out
}

// collect gathers the rows of all sides into dst. of returns the values of a batch, or nothing if it lacks
// them; its rows are then missing.
func collect[T any](a *assembly, dst []T, missing T, of func(*Batch) []T) {
	for i := range a.sides {
		side := &a.sides[i]
		part := dst[:side.N]
		dst = dst[side.N:]
		if values := of(side.Batch); len(values) > 0 {
			gather(part, values, *side, missing)
			continue
		}
		for k := range part {
			part[k] = missing
		}
	}
}

// bits gathers one bit per row. of returns the bits of a batch; false means that it lacks them, and those of its rows are then clear.
func (a *assembly) bits(of func(*Batch) (Bitmap, bool)) Bitmap {
	out, at := NewBitmap(a.n), 0
	for i := range a.sides {
		side := &a.sides[i]
		if bits, ok := of(side.Batch); ok {
			gatherBits(out, at, bits, *side, a.holes)
		}
		at += side.N
	}
	return out
}

// valid gathers the validity of a column's rows, or returns nil if none is null. of returns the validity in
// a batch; false means that it lacks the column.
func (a *assembly) valid(of func(*Batch) (Bitmap, bool)) Bitmap {
	for i := range a.sides {
		if valid, ok := of(a.sides[i].Batch); a.sides[i].N > 0 && (a.holes || !ok || valid != nil) {
			return a.bits(of)
		}
	}
	return nil
}
