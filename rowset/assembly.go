package rowset

import (
	"slices"

	"github.com/rankd/rankd/registry"
)

// An assembly makes a dense batch of the listed rows of several batches, with the columns of all of them. It does not
// hold the Memory of the result, so that the list of sides fits the stack of the caller. One goroutine at a time.
type assembly struct {
	sides []RowSet // each has a batch; rows may repeat
	n     int      // rows of all sides
	holes bool     // rows may be -1: id 0, and null in each column

	there Bitmap // of rows that are not -1: the validity of all columns without other nulls; nil before the first of them
}

func (a *assembly) batch(m *Memory) *Batch {
	var few [fewColumns]Column
	like := a.like(few[:0])
	var b *Batch
	var oneString []StringColumn
	if len(like) == 1 && like[0].Type() == registry.String { // what users have: one block
		one := new(struct {
			Batch
			list   [1]Column
			column [1]StringColumn
		})
		b, oneString = &one.Batch, one.column[:]
		b.columns = one.list[:0]
	} else {
		b = newBatch(len(like))
	}
	b.IDs = m.IDs(a.n)
	rest := b.IDs
	for i := range a.sides {
		side := &a.sides[i]
		gather(rest[:side.N], side.Batch.IDs, side.Rows, 0)
		rest = rest[side.N:]
	}
	a.columns(m, b, like, oneString)
	return b
}

// columns gives b columns with the keys of these, kind by kind. oneString has room for one column of strings, or for none.
func (a *assembly) columns(m *Memory, b *Batch, like []Column, oneString []StringColumn) {
	for len(like) > 0 {
		n := 1
		for n < len(like) && like[n].Type() == like[0].Type() {
			n++
		}
		b.columns = a.columnsOf(m, like[:n], oneString, b.columns)
		like = like[n:]
	}
}

// fewColumns is how many columns a list on the stack has room for.
const fewColumns = 16

// like appends a column for each column of the result with its key and type, in the order of the result. If sides
// differ in the type of a key, the first side with that key decides.
func (a *assembly) like(dst []Column) []Column {
	for i := range a.sides {
		b := a.sides[i].Batch
		if i > 0 && b.sameFields(a.sides[0].Batch) {
			continue
		}
		known := len(dst)
		for _, c := range b.columns {
			if known == 0 || !slices.ContainsFunc(dst[:known], func(k Column) bool { return k.KeyID() == c.KeyID() }) {
				dst = append(dst, c)
			}
		}
		if known > 0 && len(dst) > known {
			sortColumns(dst)
		}
	}
	return dst
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

// vectors gathers the column of like's key, whose vectors are as long in each batch. A batch whose vectors have another length has none.
func (a *assembly) vectors(like *VectorColumn, out *VectorColumn) {
	dims := like.Dims
	out.Key, out.Dims, out.Values = like.Key, dims, make([]float32, a.n*dims)
	of := func(b *Batch) *VectorColumn {
		if c := b.Vector(like.Key); c != nil && c.Dims == dims {
			return c
		}
		return nil
	}
	nulls, rest := a.holes, out.Values
	for i := range a.sides {
		side := &a.sides[i]
		part, c := rest[:side.N*dims], of(side.Batch)
		rest = rest[side.N*dims:]
		nulls = nulls || side.N > 0 && (c == nil || c.Valid != nil)
		switch {
		case c == nil: // nulls, all zero
		case side.Rows == nil:
			copy(part, c.Values)
		default:
			for k, row := range side.Rows {
				if row >= 0 {
					copy(part[k*dims:(k+1)*dims], c.at(int(row)))
				}
			}
		}
	}
	if nulls && a.n > 0 {
		out.Valid = a.bits(func(b *Batch) (Bitmap, bool) {
			if c := of(b); c != nil {
				return c.Valid, true
			}
			return nil, false
		})
	}
}

// bits gathers one bit per row. of returns the bits of a batch; false means that it lacks them, and those of its rows are then clear.
func (a *assembly) bits(of func(*Batch) (Bitmap, bool)) Bitmap {
	full := true
	for i := range a.sides {
		bits, ok := of(a.sides[i].Batch)
		full = full && ok && bits == nil
	}
	if full && a.there != nil {
		return a.there
	}
	out, at := NewBitmap(a.n), 0
	for i := range a.sides {
		side := &a.sides[i]
		if bits, ok := of(side.Batch); ok {
			gatherBits(out, at, bits, *side, a.holes)
		}
		at += side.N
	}
	if full {
		a.there = out
	}
	return out
}

func (a *assembly) strings(m *Memory, key registry.KeyID, out *StringColumn) {
	merge := newDictMerge(a, key)
	out.Key, out.Places = key, m.Rows(a.n)
	gatherCodes(a, out.Places, merge.base, merge.recode, func(b *Batch) ([]int32, *Dict) {
		if c := b.String(key); c != nil {
			return c.Places, c.Dict
		}
		return nil, nil
	})
	out.Dict = merge.result()
}

func (a *assembly) sets(m *Memory, key registry.KeyID, out *SetColumn) {
	merge := newSetMerge(a.sides, key)
	out.Key, out.Codes = key, m.Rows(a.n)
	gatherCodes(a, out.Codes, merge.base, merge.recode, func(b *Batch) ([]int32, *SetDict) {
		if c := b.Set(key); c != nil {
			return c.Codes, c.Dict
		}
		return nil, nil
	})
	out.Dict = merge.result()
}

// gatherCodes gathers the codes or places of a column, which of returns with their dictionary, nil if a side has none. Those of another dictionary
// than base are recoded.
func gatherCodes[D any](a *assembly, out []int32, base *D, recode func([]int32, *D), of func(*Batch) ([]int32, *D)) {
	for i := range a.sides {
		side := &a.sides[i]
		part := out[:side.N]
		out = out[side.N:]
		codes, dict := of(side.Batch)
		if dict == nil {
			fillCodes(part, NullCode)
			continue
		}
		gather(part, codes, side.Rows, NullCode)
		if dict != base {
			recode(part, dict)
		}
	}
}

func fillCodes(codes []int32, code int32) {
	for i := range codes {
		codes[i] = code
	}
}
