package rowset

import (
	"slices"

	"github.com/rankd/rankd/registry"
)

// An assembly makes a dense batch of the listed rows of several batches, with the columns of all of them. It does not
// hold the Memory of the result: with it, the list of sides would not fit the stack of the caller.
// One goroutine at a time.
type assembly struct {
	sides []RowSet // each has a batch; rows may repeat
	n     int      // rows of all sides
	holes bool     // rows may be -1: id 0, and null in each column
}

func (a *assembly) batch(m *Memory) *Batch {
	var few [fewFields]field
	fields := a.fields(few[:0])
	b := newBatch(fields)
	b.IDs = m.IDs(a.n)
	rest := b.IDs
	for i := range a.sides {
		side := &a.sides[i]
		gather(rest[:side.N], side.Batch.IDs, side.Rows, 0)
		rest = rest[side.N:]
	}
	a.columns(m, b, fields)
	return b
}

// columns gives b the columns of these fields, type by type.
func (a *assembly) columns(m *Memory, b *Batch, fields []field) {
	for len(fields) > 0 {
		n := 1
		for n < len(fields) && fields[n].typ == fields[0].typ {
			n++
		}
		a.columnsOf(m, b, fields[:n])
		fields = fields[n:]
	}
}

// fields appends the fields of the result, grouped by type, each group ascending by key. A key has the type that it has
// in the first side that has it at all.
func (a *assembly) fields(dst []field) []field {
	for i := range a.sides {
		if i > 0 && a.sides[i].Batch.sameFields(a.sides[0].Batch) {
			continue
		}
		known, all := len(dst), a.sides[i].Batch.appendFields(dst)
		for _, f := range all[known:] {
			if known == 0 || !slices.ContainsFunc(all[:known], func(k field) bool { return k.key == f.key }) {
				dst = append(dst, f)
			}
		}
		if known > 0 && len(dst) > known {
			slices.SortFunc(dst, field.compare)
		}
	}
	return dst
}

// columnsOf gives b the columns of one type.
func (a *assembly) columnsOf(m *Memory, b *Batch, fields []field) {
	typ := fields[0].typ
	if typ != registry.Float && typ != registry.String && b.rare == nil {
		b.rare = new(rareColumns)
	}
	switch typ {
	case registry.Float:
		b.Floats = make([]FloatColumn, len(fields))
		for i, f := range fields {
			a.floats(m, f.key, &b.Floats[i])
		}
	case registry.String:
		if b.Strings == nil {
			b.Strings = make([]StringColumn, len(fields))
		}
		for i, f := range fields {
			a.strings(m, f.key, &b.Strings[i])
		}
	case registry.Int:
		b.rare.ints = make([]IntColumn, len(fields))
		for i, f := range fields {
			a.ints(m, f.key, &b.rare.ints[i])
		}
	case registry.Bool:
		b.rare.bools = make([]BoolColumn, len(fields))
		for i, f := range fields {
			a.bools(f.key, &b.rare.bools[i])
		}
	case registry.StringSet:
		b.rare.sets = make([]SetColumn, len(fields))
		for i, f := range fields {
			a.sets(m, f.key, &b.rare.sets[i])
		}
	}
}

func (a *assembly) floats(m *Memory, key registry.KeyID, out *FloatColumn) {
	out.Key, out.Values = key, m.Floats(a.n)
	out.Valid = numbers(a, out.Values, func(b *Batch) ([]float64, Bitmap, bool) {
		if c := b.Float(key); c != nil {
			return c.Values, c.Valid, true
		}
		return nil, nil, false
	})
}

func (a *assembly) ints(m *Memory, key registry.KeyID, out *IntColumn) {
	out.Key, out.Values = key, m.IDs(a.n)
	out.Valid = numbers(a, out.Values, func(b *Batch) ([]int64, Bitmap, bool) {
		if c := b.Int(key); c != nil {
			return c.Values, c.Valid, true
		}
		return nil, nil, false
	})
}

// numbers gathers a column of numbers into dst, and returns its validity: nil if no row is null. of returns the column's
// values and validity in a batch; false means that the batch lacks it.
func numbers[T any](a *assembly, dst []T, of func(*Batch) ([]T, Bitmap, bool)) Bitmap {
	nulls := a.holes
	for i := range a.sides {
		side := &a.sides[i]
		part := dst[:side.N]
		dst = dst[side.N:]
		values, valid, ok := of(side.Batch)
		if ok {
			var zero T
			gather(part, values, side.Rows, zero)
		} else {
			clear(part)
		}
		nulls = nulls || side.N > 0 && (!ok || valid != nil)
	}
	if !nulls || a.n == 0 {
		return nil
	}
	return a.bits(func(b *Batch) (Bitmap, bool) {
		_, valid, ok := of(b)
		return valid, ok
	})
}

func (a *assembly) bools(key registry.KeyID, out *BoolColumn) {
	out.Key = key
	out.Values = a.bits(func(b *Batch) (Bitmap, bool) {
		if c := b.Bool(key); c != nil {
			return c.Values, true
		}
		return nil, false
	})
	nulls := a.holes
	for i := range a.sides {
		c := a.sides[i].Batch.Bool(key)
		nulls = nulls || a.sides[i].N > 0 && (c == nil || c.Valid != nil)
	}
	if !nulls || a.n == 0 {
		return
	}
	out.Valid = a.bits(func(b *Batch) (Bitmap, bool) {
		if c := b.Bool(key); c != nil {
			return c.Valid, true
		}
		return nil, false
	})
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

func (a *assembly) strings(m *Memory, key registry.KeyID, out *StringColumn) {
	out.Key, out.Codes = key, m.Rows(a.n)
	merge, rest := newDictMerge(a.sides, key), out.Codes
	for i := range a.sides {
		side := &a.sides[i]
		part := rest[:side.N]
		rest = rest[side.N:]
		c := side.Batch.String(key)
		if c == nil {
			fillCodes(part, NullCode)
			continue
		}
		gather(part, c.Codes, side.Rows, NullCode)
		if c.Dict != merge.base {
			merge.recode(part, c.Dict)
		}
	}
	out.Dict = merge.result()
}

func (a *assembly) sets(m *Memory, key registry.KeyID, out *SetColumn) {
	out.Key, out.Codes = key, m.Rows(a.n)
	merge, rest := newSetMerge(a.sides, key), out.Codes
	for i := range a.sides {
		side := &a.sides[i]
		part := rest[:side.N]
		rest = rest[side.N:]
		c := side.Batch.Set(key)
		if c == nil {
			fillCodes(part, NullCode)
			continue
		}
		gather(part, c.Codes, side.Rows, NullCode)
		if c.Dict != merge.base {
			merge.recode(part, c.Dict)
		}
	}
	out.Dict = merge.result()
}

func fillCodes(codes []int32, code int32) {
	for i := range codes {
		codes[i] = code
	}
}
