package rowset

import (
	"cmp"
	"errors"
	"iter"
	"math"
	"math/bits"
	"slices"

	"github.com/rankd/rankd/registry"
)

// sortScratch is the scratch memory of one sort. One goroutine at a time.
type sortScratch struct {
	entries, other []sortEntry
	keys           []uint64             // of a selection's entries, or of its sample
	counts         [256]int32           // of nthKey: how many keys have each digit
	ranks, order   []int32              // by code, and by rank
	buckets        [radixLevels][]int32 // place of the next entry of each digit, by level
	memory         *Memory              // for the result

	stop    Stop // nil: never
	stopped bool // stop has said so, and the rest of the sort is skipped
}

// bytes returns how much memory s holds.
func (s *sortScratch) bytes() int {
	n := 16*(cap(s.entries)+cap(s.other)) + 8*cap(s.keys) + 4*(cap(s.ranks)+cap(s.order))
	for _, b := range s.buckets {
		n += 4 * cap(b)
	}
	return n
}

// A sortEntry is one row to sort: its position in the active list, and a key whose
// unsigned order is the order of the rows.
type sortEntry struct {
	key uint64
	pos int32
}

// The numbers of the radix sort, found with BenchmarkSort and BenchmarkSortSmall.
const (
	insertionMax  = 24 // most entries for which insertion sort is fastest
	radixWidthMax = 11 // most bits of a digit: the ends of 2048 buckets fit the L2 cache
	radixLevels   = 16 // most digits: with more than insertionMax entries a digit has at least 4 bits
)

// Sort orders the active rows by a column or the id, and returns them over the same batch. It is
// stable in both directions: equal rows keep their current order. Nulls come last in both
// directions, in their current order.
//
// Ids and ints compare as int64, strings by their bytes, floats as doubles with 0.0 equal to -0.0; false
// comes before true. A NaN counts as greater than all others, but no op produces one. Without a column
// of that key (see Batch.Has) all rows are equal.
//
// Sort returns ErrNoOrder if it would have to compare sets or vectors, and ErrStopped once stop says so. A nil stop never does.
// The list of the result is m's.
func Sort(stop Stop, m *Memory, rs RowSet, key registry.KeyID, desc bool) (RowSet, error) {
	if rs.N < 2 {
		return rs, nil
	}
	s := m.scratch(stop)
	defer m.freeScratch(s)
	return s.sort(rs, key, desc)
}

// ErrNoOrder says that rows cannot be sorted by a column of sets or vectors.
var ErrNoOrder = errors.New("sets and vectors have no order")

// stopRows is how many rows a sort handles between two checks whether to stop. They take some 50 µs, so the cost of a
// check is negligible.
const stopRows = 1 << 14

// blocks cuts n rows into ranges [lo, hi) and ends early when the sort is to stop. The
// work is then unfinished, so its caller must ask cancelled again.
func (s *sortScratch) blocks(n int) iter.Seq2[int, int] {
	return func(yield func(lo, hi int) bool) {
		for lo := 0; lo < n && !s.cancelled(); lo += stopRows {
			if !yield(lo, min(n, lo+stopRows)) {
				return
			}
		}
	}
}

func (s *sortScratch) cancelled() bool {
	if s.stop != nil && !s.stopped {
		s.stopped = s.stop.Cancelled()
	}
	return s.stopped
}

// untilStopped wraps the comparison for a sort of n elements. Once the sort is to stop, all elements compare equal.
// So the sort ends soon, with a result that nobody uses. A short sort gets the bare comparison, because the wrapper
// would slow it down.
func untilStopped[E any](s *sortScratch, n int, compare func(a, b E) int) func(a, b E) int {
	if s.stop == nil || n < stopRows {
		return compare
	}
	asked := 0
	return func(a, b E) int {
		if asked++; asked%1024 == 0 && s.cancelled() || s.stopped {
			return 0
		}
		return compare(a, b)
	}
}

func (s *sortScratch) sort(rs RowSet, key registry.KeyID, desc bool) (RowSet, error) {
	s.entries = slices.Grow(s.entries[:0], rs.N)
	if key == registry.IDKey {
		s.addInts(rs, rs.Batch.IDs, nil)
	} else if c := rs.Batch.Float(key); c != nil {
		s.addFloats(rs, c)
	} else if c := rs.Batch.String(key); c != nil {
		if rs.N <= max(insertionMax, len(c.Dict.Values)/4) {
			return s.sortFewStrings(rs, c, desc)
		}
		s.addStrings(rs, c)
	} else if c := rs.Batch.Int(key); c != nil {
		s.addInts(rs, c.Values, c.Valid)
	} else if c := rs.Batch.Bool(key); c != nil {
		s.addBools(rs, c)
	} else if rs.Batch.Has(key) {
		return RowSet{}, ErrNoOrder
	} else {
		return rs, nil
	}

	// A descending order inverts the keys. Reversing the result would also reverse equal
	// rows.
	entries, flip := s.entries, uint64(0)
	if desc {
		flip = ^uint64(0)
	}
	last, sorted := uint64(0), true
	for lo, hi := range s.blocks(len(entries)) {
		block := entries[lo:hi]
		for i := range block {
			k := block[i].key ^ flip
			block[i].key = k
			sorted = sorted && last <= k
			last = k
		}
	}
	if s.cancelled() {
		return RowSet{}, ErrStopped
	}
	if sorted && s.nullsLast(rs.N) {
		return rs, nil
	}
	if !sorted {
		s.other = slices.Grow(s.other[:0], len(entries))
		s.radixSort(entries, s.other[:len(entries)], 0, false)
	}
	return s.result(rs, entries)
}

// addInts adds the rows by a value for each row of the batch: its id, or that of a column.
func (s *sortScratch) addInts(rs RowSet, values []int64, valid Bitmap) {
	for lo, hi := range s.blocks(rs.N) {
		switch {
		case valid != nil:
			for pos := lo; pos < hi; pos++ {
				if row := int(rs.Row(pos)); valid.Get(row) {
					s.entries = append(s.entries, sortEntry{intKey(values[row]), int32(pos)})
				}
			}
		case rs.Rows == nil:
			for i, v := range values[lo:hi] {
				s.entries = append(s.entries, sortEntry{intKey(v), int32(lo + i)})
			}
		default:
			for i, row := range rs.Rows[lo:hi] {
				s.entries = append(s.entries, sortEntry{intKey(values[row]), int32(lo + i)})
			}
		}
	}
}

func (s *sortScratch) addBools(rs RowSet, c *BoolColumn) {
	for lo, hi := range s.blocks(rs.N) {
		for pos := lo; pos < hi; pos++ {
			if row := int(rs.Row(pos)); c.Valid.Get(row) {
				s.entries = append(s.entries, sortEntry{boolKey(c.Values.Get(row)), int32(pos)})
			}
		}
	}
}

func (s *sortScratch) addFloats(rs RowSet, c *FloatColumn) {
	for lo, hi := range s.blocks(rs.N) {
		switch {
		case c.Valid != nil:
			for pos := lo; pos < hi; pos++ {
				if row := int(rs.Row(pos)); c.Valid.Get(row) {
					s.entries = append(s.entries, sortEntry{floatKey(c.Values[row]), int32(pos)})
				}
			}
		case rs.Rows == nil:
			for i, v := range c.Values[lo:hi] {
				s.entries = append(s.entries, sortEntry{floatKey(v), int32(lo + i)})
			}
		default:
			for i, row := range rs.Rows[lo:hi] {
				s.entries = append(s.entries, sortEntry{floatKey(c.Values[row]), int32(lo + i)})
			}
		}
	}
}

// addStrings ranks the dictionary once, so that rows compare by rank.
func (s *sortScratch) addStrings(rs RowSet, c *StringColumn) {
	codes := s.rankDict(rs, c)
	for lo, hi := range s.blocks(rs.N) {
		for pos := lo; pos < hi; pos++ {
			if code := CodeAt(codes, c.Places[rs.Row(pos)]); code >= 0 {
				s.entries = append(s.entries, sortEntry{uint64(s.ranks[code]), int32(pos)})
			}
		}
	}
}

// rankDict fills ranks: the rank of each value of a dictionary, by its code. It returns the codes.
func (s *sortScratch) rankDict(rs RowSet, c *StringColumn) (codes []int32) {
	codes = c.Codes(s.memory, rs)
	values := c.Dict.Values
	s.order = slices.Grow(s.order[:0], len(values))
	s.ranks = slices.Grow(s.ranks[:0], len(values))[:len(values)]
	for place := range int32(len(values)) {
		if CodeAt(codes, place) == place {
			s.order = append(s.order, place)
		}
	}
	slices.SortFunc(s.order, untilStopped(s, len(s.order), func(a, b int32) int {
		return cmp.Compare(values[a], values[b])
	}))
	for rank, code := range s.order {
		s.ranks[code] = int32(rank)
	}
	return codes
}

// sortFewStrings compares the strings of the active rows. Ranking the whole dictionary
// would cost more for few rows, or for few of many.
func (s *sortScratch) sortFewStrings(rs RowSet, c *StringColumn, desc bool) (RowSet, error) {
	for pos := range rs.N {
		if place := c.Places[rs.Row(pos)]; place >= 0 {
			s.entries = append(s.entries, sortEntry{uint64(place), int32(pos)})
		}
	}
	values := c.Dict.Values
	slices.SortStableFunc(s.entries, untilStopped(s, len(s.entries), func(a, b sortEntry) int {
		if desc {
			a, b = b, a
		}
		return cmp.Compare(values[a.key], values[b.key])
	}))
	return s.result(rs, s.entries)
}

// nullsLast reports whether the rows without an entry are the last of the n rows.
func (s *sortScratch) nullsLast(n int) bool {
	k := len(s.entries)
	return k == n || k == 0 || int(s.entries[k-1].pos) == k-1
}

// result lists the rows of the sorted entries, then those without an entry.
func (s *sortScratch) result(rs RowSet, sorted []sortEntry) (RowSet, error) {
	if s.cancelled() {
		return RowSet{}, ErrStopped
	}
	rows := s.memory.Rows(rs.N)
	if rs.Rows == nil {
		for i := range sorted {
			rows[i] = sorted[i].pos
		}
	} else {
		for i := range sorted {
			rows[i] = rs.Rows[sorted[i].pos]
		}
	}
	if nulls := rows[len(sorted):]; len(nulls) > 0 {
		withEntry := NewBitmap(rs.N)
		for i := range sorted {
			withEntry.Set(int(sorted[i].pos))
		}
		i := 0
		for pos := range rs.N {
			if !withEntry.Get(pos) {
				nulls[i] = rs.Row(pos)
				i++
			}
		}
	}
	return RowSet{Batch: rs.Batch, Rows: rows, N: rs.N}, nil
}

// intKey maps int64 to uint64, keeping the order.
func intKey(v int64) uint64 { return uint64(v) ^ 1<<63 }

// boolKey puts false before true.
func boolKey(v bool) uint64 {
	if v {
		return 1
	}
	return 0
}

// floatKey maps doubles to uint64, keeping the order. It sets the top bit of positive
// numbers and inverts negative ones, because their magnitude counts backwards.
func floatKey(v float64) uint64 {
	if v != v {
		return math.MaxUint64
	}
	b := math.Float64bits(v + 0) // -0.0 + 0 is 0.0
	return b ^ (uint64(int64(b)>>63) | 1<<63)
}

// negativeZeroKey is the key that −0.0 would have. No value has it, since −0.0 has the key of 0.0.
const negativeZeroKey = 1<<63 - 1

// keyFloat returns the double of a key, or a NaN if a NaN had it.
func keyFloat(key uint64) float64 {
	return math.Float64frombits(key ^ (uint64(int64(^key)>>63) | 1<<63))
}

func insertionSort(entries []sortEntry) {
	for i := 1; i < len(entries); i++ {
		e, j := entries[i], i
		for ; j > 0 && entries[j-1].key > e.key; j-- {
			entries[j] = entries[j-1]
		}
		entries[j] = e
	}
}

// radixSort sorts src, stably, and leaves the result there, or in other if toOther is
// set. Both have the same length, and radixSort overwrites both.
//
// It goes from the most significant digit to the least. A digit starts at the highest bit in which the entries
// differ, and has about as many values as there are entries. So two or three digits separate most keys, wherever they
// lie, and insertion sort does the rest. A sort that is to stop ends before the next bucket and leaves garbage. (A
// sort from the least significant digit would take seven passes over random doubles.)
func (s *sortScratch) radixSort(src, other []sortEntry, level int, toOther bool) {
	if len(src) <= insertionMax {
		insertionSort(src)
		if toOther {
			copy(other, src)
		}
		return
	}
	if s.cancelled() {
		return
	}
	or, and := uint64(0), ^uint64(0)
	for i := range src {
		or |= src[i].key
		and &= src[i].key
	}
	top := bits.Len64(or &^ and)
	if top == 0 { // all keys are equal
		if toOther {
			copy(other, src)
		}
		return
	}
	width := min(bits.Len(uint(len(src)))-1, radixWidthMax, top)
	shift, digits := uint(top-width), uint64(1)<<width-1

	next := s.buckets[level]
	if len(next) <= int(digits) {
		next = make([]int32, digits+1)
		s.buckets[level] = next
	}
	next = next[:digits+1]
	clear(next)
	for i := range src {
		next[src[i].key>>shift&digits]++
	}
	sum := int32(0)
	for digit, n := range next {
		next[digit] = sum
		sum += n
	}
	for i := range src {
		digit := src[i].key >> shift & digits
		other[next[digit]] = src[i]
		next[digit]++
	}
	start := int32(0)
	for _, end := range next {
		switch n := end - start; {
		case n > 1:
			s.radixSort(other[start:end], src[start:end], level+1, !toOther)
		case n == 1 && !toOther:
			src[start] = other[start]
		}
		start = end
	}
}
