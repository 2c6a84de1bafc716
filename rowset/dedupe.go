package rowset

import (
	"cmp"

	"github.com/rankd/rankd/registry"
)

// Keep says which of several rows with one key stays. Immutable; any goroutine.
type Keep uint8

// The choices. Of equal values the first row stays. A null loses against any value.
const (
	KeepFirst Keep = iota
	KeepMax        // the row with the greatest value of a column
	KeepMin        // the row with the least value of a column
)

// A Distinction says what Dedupe compares and keeps. Immutable; any goroutine.
type Distinction struct {
	By     registry.KeyID // the column, or the id, that makes rows duplicates
	Keep   Keep
	Column registry.KeyID // an int or float column, for KeepMax and KeepMin
	Sets   registry.KeyID // a set column to merge into the rows that stay; 0 means none
}

// Dedupe returns the active rows of which each key occurs once, in their order, over the same batch.
// A row with a null key is never a duplicate. A column that the batch lacks is null in all rows.
//
// If d names a set column, a row that stays gets the union of the sets of all rows with its key; a
// null adds nothing. The result then has a new batch, which shares all other columns.
//
// The error is ErrStopped once stop says so, or a *KeyTypeError. The slices of the result are m's.
func Dedupe(stop Stop, m *Memory, rs RowSet, d Distinction) (RowSet, error) {
	if rs.N < 2 {
		return rs, nil
	}
	keys, err := keysOf(m, rs, d.By)
	if err != nil {
		return RowSet{}, err
	}
	g, err := groupRows(stop, m, keys)
	if err != nil {
		return RowSet{}, err
	}
	if len(g.kept) == rs.N {
		return rs, nil
	}
	if d.Keep != KeepFirst {
		g.choose(rs, d)
	}
	out := RowSet{Batch: rs.Batch, Rows: m.Rows(len(g.kept)), N: len(g.kept)}
	i := 0
	for pos, group := range g.of {
		if g.kept[group] == int32(pos) {
			out.Rows[i] = rs.Row(pos)
			i++
		}
	}
	if c := rs.Batch.Set(d.Sets); d.Sets != 0 && c != nil {
		out.Batch = With(rs.Batch, Columns{Sets: []SetColumn{unionSets(m, rs, c, g)}})
	}
	return out, nil
}

// groups are the active rows by their keys. One goroutine at a time.
type groups struct {
	of   []int32 // by position: the number of the row's group; groups count from the first position on
	kept []int32 // by group: the position of the row that stays
}

// groupRows puts rows of one key into one group, whose first row stays. A row without a key is a group of its own.
func groupRows(stop Stop, m *Memory, keys rowKeys) (groups, error) {
	n := len(keys.values)
	g := groups{of: m.Rows(n), kept: m.Rows(n)[:0]}
	table := newKeyTable(m, keys.values, n)
	for lo := 0; lo < n; lo += stopRows {
		if stop != nil && stop.Cancelled() {
			return groups{}, ErrStopped
		}
		for pos := lo; pos < min(n, lo+stopRows); pos++ {
			if keys.valid.Get(pos) {
				first, slot := table.find(keys.values[pos])
				if first >= 0 {
					g.of[pos] = g.of[first]
					continue
				}
				table.put(slot, int32(pos))
			}
			g.of[pos] = int32(len(g.kept))
			g.kept = append(g.kept, int32(pos))
		}
	}
	return g, nil
}

// choose makes the row with the greatest or least value of each group stay.
func (g *groups) choose(rs RowSet, d Distinction) {
	if c := rs.Batch.Int(d.Column); c != nil {
		chooseBy(g, rs, c.Values, c.Valid, d.Keep)
	} else if c := rs.Batch.Float(d.Column); c != nil {
		chooseBy(g, rs, c.Values, c.Valid, d.Keep)
	}
}

func chooseBy[T cmp.Ordered](g *groups, rs RowSet, values []T, valid Bitmap, keep Keep) {
	for pos, group := range g.of {
		row, best := rs.Row(pos), rs.Row(int(g.kept[group]))
		if row == best || !valid.Get(int(row)) {
			continue
		}
		if !valid.Get(int(best)) || keep == KeepMax && values[row] > values[best] || keep == KeepMin && values[row] < values[best] {
			g.kept[group] = int32(pos)
		}
	}
}
