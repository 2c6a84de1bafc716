package rowset

import (
	"slices"

	"github.com/rankd/rankd/registry"
)

// An assembly makes a dense batch of the listed rows of several batches, with the columns of all of them.
// One goroutine at a time.
type assembly struct {
	memory *Memory
	sides  []RowSet // each has a batch; rows may repeat
	n      int      // rows of all sides
	holes  bool     // rows may be -1: id 0, and null in each column
}

func (a *assembly) batch() *Batch {
	ids := a.memory.IDs(a.n)
	collect(a, ids, 0, func(b *Batch) []int64 { return b.IDs })
	return &Batch{IDs: ids, Columns: a.columns()}
}

func (a *assembly) columns() Columns {
	out := a.room()
	var few [16]registry.KeyID
	keys := few[:0]
	for i := range a.sides {
		keys = a.sides[i].Batch.AppendKeys(keys)
	}
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		switch a.typeOf(key) {
		case registry.Float:
			out.Floats = append(out.Floats, a.floats(key))
		case registry.String:
			out.Strings = append(out.Strings, a.strings(key))
		case registry.Int:
			out.Ints = append(out.Ints, a.ints(key))
		case registry.Bool:
			out.Bools = append(out.Bools, a.bools(key))
		case registry.StringSet:
			out.Sets = append(out.Sets, a.sets(key))
		}
	}
	return out
}

// room returns lists with room for as many columns as the side with the most has of each type.
func (a *assembly) room() Columns {
	return Columns{
		Floats:  room(a, func(b *Batch) []FloatColumn { return b.Floats }),
		Strings: room(a, func(b *Batch) []StringColumn { return b.Strings }),
		Ints:    room(a, func(b *Batch) []IntColumn { return b.Ints }),
		Bools:   room(a, func(b *Batch) []BoolColumn { return b.Bools }),
		Sets:    room(a, func(b *Batch) []SetColumn { return b.Sets }),
	}
}

func room[C any](a *assembly, of func(*Batch) []C) []C {
	n := 0
	for i := range a.sides {
		n = max(n, len(of(a.sides[i].Batch)))
	}
	if n == 0 {
		return nil
	}
	return make([]C, 0, n)
}

// typeOf returns the type of a key in the first side that has it.
func (a *assembly) typeOf(key registry.KeyID) registry.Type {
	for i := range a.sides {
		if t := a.sides[i].Batch.TypeOf(key); t != 0 {
			return t
		}
	}
	return 0
}

func (a *assembly) floats(key registry.KeyID) FloatColumn {
	out := FloatColumn{Key: key, Values: a.memory.Floats(a.n)}
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

func (a *assembly) ints(key registry.KeyID) IntColumn {
	out := IntColumn{Key: key, Values: a.memory.IDs(a.n)}
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

func (a *assembly) strings(key registry.KeyID) StringColumn {
	out := StringColumn{Key: key, Codes: a.memory.Rows(a.n)}
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

func (a *assembly) sets(key registry.KeyID) SetColumn {
	out := SetColumn{Key: key, Codes: a.memory.Rows(a.n)}
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
