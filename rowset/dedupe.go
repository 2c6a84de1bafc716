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

// Dedupe returns one active row for each key, in their order, over the same batch. A row with a null key is never a
// duplicate. A column that the batch lacks is null in all rows.
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
		g.choose(m, rs, d)
	}
	out := RowSet{Batch: rs.Batch, Rows: g.keptRows(m, rs), N: len(g.kept)}
	if c := rs.Batch.Set(d.Sets); d.Sets != 0 && c != nil {
		out.Batch = With(rs.Batch, unionSets(m, rs, c, g))
	}
	return out, nil
}

// groups are the active rows by their keys. One goroutine at a time.
type groups struct {
	of      []int32 // by position: the number of the row's group; groups count from the first position on
	first   []int32 // by group: the position of its first row
	kept    []int32 // by group: the position of the row that stays; first itself if all first rows stay
	doubles []int32 // the positions of all rows that are not the first of their group, ascending
}

// groupRows puts rows of one key into one group, whose first row stays. A row without a key is a group of its own.
func groupRows(stop Stop, m *Memory, keys rowKeys) (groups, error) {
	n := len(keys.values)
	g := groups{of: m.Rows(n), first: m.Rows(n)[:0], doubles: m.Rows(n)[:0]}
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
					g.doubles = append(g.doubles, int32(pos))
					continue
				}
				table.put(slot, int32(pos))
			}
			g.of[pos] = int32(len(g.first))
			g.first = append(g.first, int32(pos))
		}
	}
	g.kept = g.first
	return g, nil
}

// choose makes the row with the greatest or least value of each group stay.
func (g *groups) choose(m *Memory, rs RowSet, d Distinction) {
	g.kept = m.Rows(len(g.first))
	copy(g.kept, g.first)
	if c := rs.Batch.Int(d.Column); c != nil {
		chooseBy(g, rs, c.Values, c.Valid, d.Keep)
	} else if c := rs.Batch.Float(d.Column); c != nil {
		chooseBy(g, rs, c.Values, c.Valid, d.Keep)
	}
}

func chooseBy[T cmp.Ordered](g *groups, rs RowSet, values []T, valid Bitmap, keep Keep) {
	for _, pos := range g.doubles {
		group := g.of[pos]
		row, best := rs.Row(int(pos)), rs.Row(int(g.kept[group]))
		switch {
		case !valid.Get(int(row)):
		case !valid.Get(int(best)), keep == KeepMax && values[row] > values[best], keep == KeepMin && values[row] < values[best]:
			g.kept[group] = pos
		}
	}
}

// keptRows returns the rows that stay, in the order of rs.
func (g *groups) keptRows(m *Memory, rs RowSet) []int32 {
	rows := m.Rows(len(g.kept) + 1) // each row is written, and stays if the next one is written behind it
	if len(g.kept) == 0 || &g.kept[0] == &g.first[0] {
		for group, pos := range g.first {
			rows[group] = rs.Row(int(pos))
		}
		return rows[:len(g.kept)]
	}
	n := 0
	for pos, group := range g.of {
		rows[n] = rs.Row(pos)
		if g.kept[group] == int32(pos) {
			n++
		}
	}
	return rows[:n]
}
