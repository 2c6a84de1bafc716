package rowset

import (
	"math"
	"math/bits"
	"slices"

	"github.com/rankd/rankd/registry"
)

// topShare is the fraction of the rows from which on TopUntil sorts all of them: selecting a larger fraction saves
// less than its buffer costs.
const topShare = 8

// topSlack is the room of a selection's buffer beyond 2k. With a smaller buffer, the fixed cost of a cut is more than
// the cut saves. See BenchmarkTop, ascending: there each row would enter the buffer.
const topSlack = 128

// TopUntil returns the first k rows of Sort, row for row, without sorting the others. k may
// be any number. The errors are those of Sort, ErrStopped if stop says so before the selection is done. The
// list of the result is m's.
func TopUntil(stop Stop, m *Memory, rs RowSet, key registry.KeyID, desc bool, k int) (RowSet, error) {
	if k <= 0 || k >= rs.N/topShare || !ranksCheaply(rs, key) {
		sorted, err := Sort(stop, m, rs, key, desc)
		return Take(sorted, k), err
	}
	s := m.scratch(stop)
	defer m.freeScratch(s)
	return s.top(rs, key, desc, k)
}

func (s *sortScratch) top(rs RowSet, key registry.KeyID, desc bool, k int) (RowSet, error) {
	t := topSelection{k: k, rows: rs.N, ordered: true, sign: 1, bound: math.NaN()}
	room := min(rs.N, 2*k+topSlack)
	s.entries = slices.Grow(s.entries[:0], room)
	t.kept = s.entries[:0:room]
	if desc {
		t.flip, t.sign = ^uint64(0), -1
	}
	if key == registry.IDKey {
		t.addInts(s, rs, rs.Batch.IDs, nil)
	} else if c := rs.Batch.Float(key); c != nil {
		t.addFloats(s, rs, c)
	} else if c := rs.Batch.String(key); c != nil {
		t.addStrings(s, rs, c)
	} else if c := rs.Batch.Int(key); c != nil {
		t.addInts(s, rs, c.Values, c.Valid)
	} else if c := rs.Batch.Bool(key); c != nil {
		t.addBools(s, rs, c)
	} else if rs.Batch.Has(key) {
		return RowSet{}, ErrNoOrder
	} else {
		return Take(rs, k), nil // all rows are equal
	}
	t.sort(s)
	if s.cancelled() {
		return RowSet{}, ErrStopped
	}
	return t.result(s.memory, rs), nil
}

// ranksCheaply reports whether the keys of all rows come cheap: ranking the dictionary of a string
// column must not cost more than looking at the rows.
func ranksCheaply(rs RowSet, key registry.KeyID) bool {
	c := rs.Batch.String(key)
	return c == nil || key == registry.IDKey || len(c.Dict.Values) <= rs.N/4
}

// topSelection keeps the k least entries of those added so far, and some more.
//
// An entry can be among the first k only if its key is less than the k-th least so far, the limit: of equal keys the
// earlier row wins. So most rows of a long input cost one comparison. When the buffer is full it is cut to k, which
// sets the limit. If the rows are in order already, the first k set the limit without a cut. After the first row out
// of order, a sample sets the limit. So no order of the rows, such as the reverse one, brings all of them into the
// buffer.
type topSelection struct {
	k       int
	rows    int                                 // in all
	keyAt   func(pos int) (key uint64, ok bool) // of a row, not turned round; false for a null
	flip    uint64                              // turns keys round for a descending order
	limit   uint64                              // of full: keys from here on are out
	full    bool                                // limit is set
	ordered bool                                // kept is sorted
	kept    []sortEntry                         // in the order of their rows
	nulls   []int32                             // the first k places of nulls

	// For most rows of a float column, one comparison of doubles is enough, and no key is computed. A row is out if
	// its value times sign is not below bound. If the value or the bound is NaN, the key decides.
	sign, bound float64
}

// wants reports whether a row with that key, already turned round, can be among the first k.
func (t *topSelection) wants(key uint64) bool { return key < t.limit || !t.full }

// sample sets the limit to the k-th least key of a sample, and drops what is not below it. A sample of n rows lets
// some k×N/n of all N rows through, so n is the root of k×N.
func (t *topSelection) sample(s *sortScratch) {
	n := int(math.Sqrt(float64(t.k) * float64(t.rows)))
	s.keys = slices.Grow(s.keys[:0], n)
	step := t.rows / n
	for i := range n {
		if key, ok := t.keyAt(i*step + step/2); ok {
			s.keys = append(s.keys, key^t.flip)
		}
	}
	if len(s.keys) < t.k {
		return
	}
	limit, _ := s.nthKey(s.keys, t.k-1)
	if limit >= math.MaxUint64-1 || t.full && limit >= t.limit {
		return
	}
	limit++ // A row before that of the sample may have the same key.
	if limit^t.flip == negativeZeroKey {
		limit++
	}
	t.setLimit(limit)
	t.kept = slices.DeleteFunc(t.kept, func(e sortEntry) bool { return e.key >= limit })
}

// add adds a row with that key, already turned round, if it can be among the first k.
func (t *topSelection) add(s *sortScratch, key uint64, pos int) {
	if last := len(t.kept) - 1; t.ordered && last >= 0 && key < t.kept[last].key {
		t.ordered = false
		t.sample(s)
	}
	if len(t.kept) == cap(t.kept) {
		t.cut(s)
	}
	if !t.wants(key) {
		return
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
func (t *topSelection) cut(s *sortScratch) {
	s.keys = slices.Grow(s.keys[:0], len(t.kept))
	for _, e := range t.kept {
		s.keys = append(s.keys, e.key)
	}
	limit, equal := s.nthKey(s.keys, t.k-1)
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

// nthKey returns the key at place n of the sorted keys, and how many keys before it equal it. It overwrites keys.
// Like radixSort, it starts with the highest bits in which the keys differ, so that no order of keys costs more than
// a few passes.
func (s *sortScratch) nthKey(keys []uint64, n int) (key uint64, equal int) {
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
		width := min(top, bits.Len(uint(len(s.counts)))-1)
		shift, digits := uint(top-width), uint64(1)<<width-1
		counts := s.counts[:digits+1]
		clear(counts)
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

// addInts adds the rows by a value for each row of the batch: its id, or that of a column.
func (t *topSelection) addInts(s *sortScratch, rs RowSet, values []int64, valid Bitmap) {
	t.keyAt = func(pos int) (uint64, bool) {
		row := int(rs.Row(pos))
		return intKey(values[row]), valid.Get(row)
	}
	for lo, hi := range s.blocks(rs.N) {
		for pos := lo; pos < hi; pos++ {
			row := int(rs.Row(pos))
			if valid != nil && !valid.Get(row) {
				t.addNull(pos)
			} else if key := intKey(values[row]) ^ t.flip; t.wants(key) {
				t.add(s, key, pos)
			}
		}
	}
}

func (t *topSelection) addBools(s *sortScratch, rs RowSet, c *BoolColumn) {
	t.keyAt = func(pos int) (uint64, bool) {
		row := int(rs.Row(pos))
		return boolKey(c.Values.Get(row)), c.Valid.Get(row)
	}
	for lo, hi := range s.blocks(rs.N) {
		for pos := lo; pos < hi; pos++ {
			row := int(rs.Row(pos))
			if !c.Valid.Get(row) {
				t.addNull(pos)
			} else if key := boolKey(c.Values.Get(row)) ^ t.flip; t.wants(key) {
				t.add(s, key, pos)
			}
		}
	}
}

func (t *topSelection) addFloats(s *sortScratch, rs RowSet, c *FloatColumn) {
	t.keyAt = func(pos int) (uint64, bool) {
		row := int(rs.Row(pos))
		return floatKey(c.Values[row]), c.Valid.Get(row)
	}
	values, sign, bound := c.Values, t.sign, t.bound // in registers; bound changes as rows are added
	for lo, hi := range s.blocks(rs.N) {
		switch {
		case c.Valid != nil:
			for pos := lo; pos < hi; pos++ {
				if row := int(rs.Row(pos)); !c.Valid.Get(row) {
					t.addNull(pos)
				} else if v := values[row]; !(v*sign >= bound) {
					bound = t.addFloat(s, v, pos)
				}
			}
		case rs.Rows == nil:
			for i, v := range values[lo:hi] {
				if !(v*sign >= bound) {
					bound = t.addFloat(s, v, lo+i)
				}
			}
		default:
			for i, row := range rs.Rows[lo:hi] {
				if v := values[row]; !(v*sign >= bound) {
					bound = t.addFloat(s, v, lo+i)
				}
			}
		}
	}
}

// addFloat adds a row that bound does not exclude, and returns the bound from now on.
func (t *topSelection) addFloat(s *sortScratch, v float64, pos int) (bound float64) {
	t.add(s, floatKey(v)^t.flip, pos)
	return t.bound
}

func (t *topSelection) addStrings(s *sortScratch, rs RowSet, c *StringColumn) {
	codes := s.rankDict(rs, c)
	t.keyAt = func(pos int) (uint64, bool) {
		if code := CodeAt(codes, c.Places[rs.Row(pos)]); code >= 0 {
			return uint64(s.ranks[code]), true
		}
		return 0, false
	}
	for lo, hi := range s.blocks(rs.N) {
		for pos := lo; pos < hi; pos++ {
			code := CodeAt(codes, c.Places[rs.Row(pos)])
			if code < 0 {
				t.addNull(pos)
			} else if key := uint64(s.ranks[code]) ^ t.flip; t.wants(key) {
				t.add(s, key, pos)
			}
		}
	}
}

// sort sorts the first k of the kept entries. The sort is stable, and the entries are in the order of their rows.
func (t *topSelection) sort(s *sortScratch) {
	if len(t.kept) > t.k {
		t.cut(s)
	}
	if t.ordered {
		return
	}
	s.other = slices.Grow(s.other[:0], len(t.kept))
	s.radixSort(t.kept, s.other[:len(t.kept)], 0, false)
}

// result lists the rows of what is kept, then nulls up to k.
func (t *topSelection) result(m *Memory, rs RowSet) RowSet {
	rows := m.Rows(t.k)[:0]
	for _, e := range t.kept {
		rows = append(rows, rs.Row(int(e.pos)))
	}
	for _, pos := range t.nulls[:min(len(t.nulls), t.k-len(rows))] {
		rows = append(rows, rs.Row(int(pos)))
	}
	return RowSet{Batch: rs.Batch, Rows: rows, N: len(rows)}
}
