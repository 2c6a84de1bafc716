package rowset

import (
	"math"
	"math/bits"

	"github.com/rankd/rankd/registry"
)

// topShare is the part of the rows from which on TopUntil sorts all of them: selecting a larger
// part saves less than its buffer costs.
const topShare = 4

// topSlack is the room of a selection's buffer beyond 2k. A cut of a smaller buffer pays more for its
// fixed part than it saves. See BenchmarkTop, descending: there each row comes into the buffer.
const topSlack = 128

// TopUntil returns the first k rows of Sort, row for row, without sorting the others. k may
// be any number. The error is ErrStopped if stop says so before the selection is done.
func TopUntil(stop Stop, rs RowSet, key registry.KeyID, desc bool, k int) (RowSet, error) {
	s := &sortScratch{stop: stop}
	if k <= 0 || k >= rs.N/topShare || !s.ranked(rs, key) {
		sorted, err := Sort(stop, rs, key, desc)
		return Take(sorted, k), err
	}
	t := topSelection{k: k, ordered: true, sign: 1, bound: math.NaN()}
	t.kept = make([]sortEntry, 0, min(rs.N, 2*k+topSlack))
	if desc {
		t.flip, t.sign = ^uint64(0), -1
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
	t.sort(s)
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
// comparison. When the buffer is full it is cut to k, which sets the limit. Of rows that stand in
// order already, the first k set it without a cut.
type topSelection struct {
	k       int
	flip    uint64      // turns keys round for a descending order
	limit   uint64      // of full: keys from here on are of no interest
	full    bool        // limit is set
	ordered bool        // kept is sorted
	kept    []sortEntry // in the order of their rows
	keys    []uint64    // scratch memory of cut
	nulls   []int32     // the first k places of nulls

	// Most rows of a float column fail a comparison of doubles, which saves them the key. A value
	// times sign that is not below bound is of no interest. NaN, as a value or as the bound, says
	// nothing: the key decides.
	sign, bound float64
}

// wants reports whether a row with that key, already turned round, can be among the first k.
func (t *topSelection) wants(key uint64) bool { return key < t.limit || !t.full }

// add adds a row with that key, already turned round, if it can be among the first k.
func (t *topSelection) add(key uint64, pos int) {
	if len(t.kept) == cap(t.kept) && t.wants(key) {
		t.cut()
	}
	if !t.wants(key) {
		return
	}
	if last := len(t.kept) - 1; last >= 0 && key < t.kept[last].key {
		t.ordered = false
	}
	t.kept = append(t.kept, sortEntry{key, int32(pos)})
	if t.ordered && len(t.kept) == t.k {
		t.setLimit(key)
	}
}

func (t *topSelection) setLimit(key uint64) {
	t.limit, t.full = key, true
	t.bound = keyFloat(key^t.flip) * t.sign
}

// cut drops all but the k least entries and sets the limit. There are more than k. Of the entries
// with the greatest key that stays, the earlier rows stay.
func (t *topSelection) cut() {
	if t.keys == nil {
		t.keys = make([]uint64, cap(t.kept))
	}
	keys := t.keys[:len(t.kept)]
	for i := range keys {
		keys[i] = t.kept[i].key
	}
	limit, equal := nthKey(keys, t.k-1)
	equal++
	kept := t.kept[:0]
	for _, e := range t.kept {
		if e.key < limit {
			kept = append(kept, e)
		} else if e.key == limit && equal > 0 {
			kept = append(kept, e)
			equal--
		}
	}
	t.kept = kept
	t.setLimit(limit)
}

// nthKey returns the key at place n of the sorted keys, and how many keys before it equal it. It
// overwrites keys. As radixSort does, it goes by the highest bits in which the keys differ, so
// that no order of keys costs more than some passes.
func nthKey(keys []uint64, n int) (key uint64, equal int) {
	const widthMax = 8
	var counts [1 << widthMax]int32
	for {
		or, and := uint64(0), ^uint64(0)
		for _, key := range keys {
			or |= key
			and &= key
		}
		top := bits.Len64(or &^ and)
		if top == 0 {
			return keys[0], n
		}
		width := min(top, widthMax)
		shift, digits := uint(top-width), uint64(1)<<width-1
		clear(counts[:digits+1])
		for _, key := range keys {
			counts[key>>shift&digits]++
		}
		digit := uint64(0)
		for ; n >= int(counts[digit]); digit++ {
			n -= int(counts[digit])
		}
		same := keys[:0]
		for _, key := range keys {
			if key>>shift&digits == digit {
				same = append(same, key)
			}
		}
		keys = same
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
			if key := idKey(rs.ID(pos)) ^ t.flip; t.wants(key) {
				t.add(key, pos)
			}
		}
	}
}

func (t *topSelection) addFloats(s *sortScratch, rs RowSet, c *FloatColumn) {
	for lo, hi := range s.blocks(rs.N) {
		switch {
		case c.Valid != nil:
			for pos := lo; pos < hi; pos++ {
				if row := int(rs.Row(pos)); c.Valid.Get(row) {
					t.addFloat(c.Values[row], pos)
				} else {
					t.addNull(pos)
				}
			}
		case rs.Rows == nil:
			for i, v := range c.Values[lo:hi] {
				if !(v*t.sign >= t.bound) {
					t.addFloat(v, lo+i)
				}
			}
		default:
			for i, row := range rs.Rows[lo:hi] {
				if v := c.Values[row]; !(v*t.sign >= t.bound) {
					t.addFloat(v, lo+i)
				}
			}
		}
	}
}

func (t *topSelection) addFloat(v float64, pos int) {
	if !(v*t.sign >= t.bound) {
		t.add(floatKey(v)^t.flip, pos)
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
				t.add(key, pos)
			}
		}
	}
}

// sort sorts the first k entries of what is kept. The sort is stable, and the entries stand in the
// order of their rows.
func (t *topSelection) sort(s *sortScratch) {
	if len(t.kept) > t.k {
		t.cut()
	}
	if t.ordered {
		return
	}
	s.other = make([]sortEntry, len(t.kept))
	s.radixSort(t.kept, s.other, 0, false)
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
