package rowset

import (
	"slices"

	"github.com/rankd/rankd/registry"
)

// Project returns a batch of b's ids and of the columns of these keys alone, which it shares. A column that b
// lacks, or has in another type than its key, is null in all rows. Feature bundles and the id have no column.
func Project(b *Batch, keys []*registry.Key) *Batch {
	n := b.Len()
	var c Columns
	for _, key := range keys {
		switch key.Type {
		case registry.Int:
			if column := b.Int(key.ID); column != nil {
				c.Ints = append(c.Ints, *column)
			} else {
				c.Ints = append(c.Ints, IntColumn{Key: key.ID, Values: make([]int64, n), Valid: NewBitmap(n)})
			}
		case registry.Float:
			if column := b.Float(key.ID); column != nil {
				c.Floats = append(c.Floats, *column)
			} else {
				c.Floats = append(c.Floats, FloatColumn{Key: key.ID, Values: make([]float64, n), Valid: NewBitmap(n)})
			}
		case registry.Bool:
			if column := b.Bool(key.ID); column != nil {
				c.Bools = append(c.Bools, *column)
			} else {
				c.Bools = append(c.Bools, BoolColumn{Key: key.ID, Values: NewBitmap(n), Valid: NewBitmap(n)})
			}
		case registry.String:
			if column := b.String(key.ID); column != nil {
				c.Strings = append(c.Strings, *column)
			} else {
				c.Strings = append(c.Strings, StringColumn{Key: key.ID, Codes: nullCodes(n), Dict: new(Dict)})
			}
		case registry.StringSet:
			if column := b.Set(key.ID); column != nil {
				c.Sets = append(c.Sets, *column)
			} else {
				c.Sets = append(c.Sets, SetColumn{Key: key.ID, Codes: nullCodes(n), Dict: &SetDict{Offsets: []int32{0}, Strings: new(Dict)}})
			}
		}
	}
	return NewBatch(b.IDs, c)
}

func nullCodes(n int) []int32 { return slices.Repeat([]int32{NullCode}, n) }
