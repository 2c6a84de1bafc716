package rowset

import (
	"slices"

	"github.com/rankd/rankd/registry"
)

// topShare is the part of the rows from which on TopUntil sorts all of them: selecting a larger
// part saves less than its buffer costs.
const topShare = 4

// topSlack is the room of a selection's buffer beyond k: 16 KB of entries stay in the L1 cache,
// and a pass over the buffer is paid for by that many rows.
const topSlack = 1024

// TopUntil returns the first k rows of Sort, row for row, without sorting the others. k may
// be any number. The error is ErrStopped if stop says so before the selection is done.
func TopUntil(stop Stop, rs RowSet, key registry.KeyID, desc bool, k int) (RowSet, error) {
	s := &sortScratch{stop: stop}
	if k <= 0 || k >= rs.N/topShare || !s.ranked(rs, key) {
		sorted, err := Sort(stop, rs, key, desc)
		return Take(sorted, k), err
	}
	t := topSelection{k: k, limit: ^uint64(0)}
	t.kept = make([]sortEntry, 0, min(rs.N, 2*k+topSlack))
	if desc {
		t.flip = ^uint64(0)
	}
	switch {
	case key == registry.IDKey:
		t.addIDs(s, rs)
	case rs.Batch.Float(key) != nil:
		t.addFloats(s, rs, rs.Batch.Float(key))
	case rs.Batch.String(key) != nil:
		t.addStrings(s, rs, rs.Batch.String(key))
	default:
		return Take(rs, k), nil // all rows are equal
	}
	t.compact(s)
	if s.cancelled() {
		return RowSet{}, ErrStopped
	}
	return t.result(rs), nil
}

// ranked reports whether the keys of all rows come cheap: ranking the dictionary of a string
// column must not cost more than looking at the rows.
func (s *sortScratch) ranked(rs RowSet, key registry.KeyID) bool {
	if key == registry.IDKey || rs.Batch.Float(key) != nil {
		return true
	}
	c := rs.Batch.String(key)
	return c == nil || len(c.Dict.Values) <= rs.N/topShare
}

// topSelection keeps the k least entries of those added so far, and some more.
//
// An entry can be among the first k only if its key is less than the k-th least so far, the
// limit: of equal keys the earlier row wins. So most rows of a long input cost one
// comparison. When the buffer is full it is sorted and cut to k, which sets the limit.
type topSelection struct {
	k     int
	flip  uint64      // turns keys round for a descending order
	limit uint64      // of full: keys from here on are of no interest
	full  bool        // limit is set
	kept  []sortEntry // in the order of their rows, but for those that compact has sorted
	nulls []int32     // the first k places of nulls
}

// wants reports whether a row with that key, already turned round, can be among the first k.
func (t *topSelection) wants(key uint64) bool { return key < t.limit || !t.full }

func (t *topSelection) add(s *sortScratch, key uint64, pos int) {
	if len(t.kept) == cap(t.kept) {
		t.compact(s)
		if !t.wants(key) {
			return
		}
	}
	t.kept = append(t.kept, sortEntry{key, int32(pos)})
}

// compact sorts what is kept and cuts it to k. Sorting is stable, and rows that came
// earlier stand before later ones of the same key, so the order of rows is kept.
func (t *topSelection) compact(s *sortScratch) {
	s.other = slices.Grow(s.other[:0], len(t.kept))
	s.radixSort(t.kept, s.other[:len(t.kept)], 0, false)
	if len(t.kept) >= t.k {
		t.kept = t.kept[:t.k]
		t.limit, t.full = t.kept[t.k-1].key, true
	}
}

func (t *topSelection) addNull(pos int) {
	if len(t.nulls) < t.k {
		t.nulls = append(t.nulls, int32(pos))
	}
}

func (t *topSelection) addIDs(s *sortScratch, rs RowSet) {
	for lo, hi := range s.blocks(rs.N) {
		for pos := lo; pos < hi; pos++ {
			if key := idKey(rs.Batch.IDs[rs.Row(pos)]) ^ t.flip; t.wants(key) {
				t.add(s, key, pos)
			}
		}
	}
}

func (t *topSelection) addFloats(s *sortScratch, rs RowSet, c *FloatColumn) {
	for lo, hi := range s.blocks(rs.N) {
		if rs.Rows == nil && c.Valid == nil {
			for i, v := range c.Values[lo:hi] {
				if key := floatKey(v) ^ t.flip; t.wants(key) {
					t.add(s, key, lo+i)
				}
			}
			continue
		}
		for pos := lo; pos < hi; pos++ {
			row := int(rs.Row(pos))
			if !c.Valid.Get(row) {
				t.addNull(pos)
			} else if key := floatKey(c.Values[row]) ^ t.flip; t.wants(key) {
				t.add(s, key, pos)
			}
		}
	}
}

func (t *topSelection) addStrings(s *sortScratch, rs RowSet, c *StringColumn) {
	s.rankDict(c.Dict.Values)
	for lo, hi := range s.blocks(rs.N) {
		for pos := lo; pos < hi; pos++ {
			code := c.Codes[rs.Row(pos)]
			if code < 0 {
				t.addNull(pos)
			} else if key := uint64(s.ranks[code]) ^ t.flip; t.wants(key) {
				t.add(s, key, pos)
			}
		}
	}
}

// result lists the rows of what is kept, then nulls up to k.
func (t *topSelection) result(rs RowSet) RowSet {
	rows := make([]int32, 0, t.k)
	for _, e := range t.kept {
		rows = append(rows, rs.Row(int(e.pos)))
	}
	for _, pos := range t.nulls[:min(len(t.nulls), t.k-len(rows))] {
		rows = append(rows, rs.Row(int(pos)))
	}
	return RowSet{Batch: rs.Batch, Rows: rows, N: len(rows)}
}
