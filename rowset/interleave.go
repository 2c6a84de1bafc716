package rowset

import "slices"

// Interleave orders the rows of several concatenated row sets, as Concat leaves them. counts are their numbers of
// rows. turns names, for each row of the result, the row set that gives its next row. It is read from turns[first]
// on, and begins again at its end. A row set without further rows loses its turns. Each row set has a turn.
//
// groups has the group of each row. Only the first row of a group in the new order stays. Nil: all rows stay. The
// slice is m's.
func Interleave(m *Memory, counts []int, groups, turns []int32, first int) []int32 {
	s := newSides(m, counts, groups)
	turns = slices.Clone(turns)
	order := m.Rows(s.total)[:0]
	for at := first; len(turns) > 0; {
		side := turns[at]
		if s.empty(side) {
			turns, at = dropTurns(turns, at, side)
			continue
		}
		order = append(order, s.take(side))
		if at++; at == len(turns) {
			at = 0
		}
	}
	return order
}

// A Slot is a fixed position in a list of rows: a row of one row set stands there. Immutable; any goroutine.
type Slot struct {
	Position int64 // from 1
	Side     int32 // the number of the row set
}

// FillSlots orders the rows of several concatenated row sets, as Concat leaves them. counts are their numbers of
// rows. A row set that some slot names gives its rows only to slots. The slots ascend by position. The other row sets
// fill all other positions, one after the other. A slot whose row set has no further row is filled like other
// positions. Once the other row sets are used up, the rows of the remaining slots follow, so that no position stays
// empty. groups are as Interleave has them. The slice is m's.
func FillSlots(m *Memory, counts []int, groups []int32, slots []Slot) []int32 {
	s := newSides(m, counts, groups)
	slotted := make([]bool, len(counts))
	for _, slot := range slots {
		slotted[slot.Side] = true
	}
	order := m.Rows(s.total)[:0]
	filler := int32(0)
	for {
		for int(filler) < len(counts) && (slotted[filler] || s.empty(filler)) {
			filler++
		}
		filled := int(filler) == len(counts)
		switch {
		case len(slots) > 0 && (filled || slots[0].Position == int64(len(order))+1):
			if side := slots[0].Side; !s.empty(side) {
				order = append(order, s.take(side))
			}
			slots = slots[1:]
		case filled:
			return order
		default:
			order = append(order, s.take(filler))
		}
	}
}

// sides are concatenated row sets. One goroutine at a time.
type sides struct {
	next, end []int32 // by row set: its next row, and the one behind its last
	total     int
	groups    []int32 // by row; nil: each row is a group of its own
	taken     Bitmap  // of the groups
}

func newSides(m *Memory, counts []int, groups []int32) sides {
	s := sides{next: make([]int32, len(counts)), end: make([]int32, len(counts)), groups: groups}
	for i, n := range counts {
		s.next[i] = int32(s.total)
		s.total += n
		s.end[i] = int32(s.total)
	}
	if groups != nil {
		s.taken = NewBitmap(s.total)
	}
	return s
}

// empty reports whether a row set has no further row. It passes over rows whose group was taken.
func (s *sides) empty(side int32) bool {
	for s.groups != nil && s.next[side] < s.end[side] && s.taken.Get(int(s.groups[s.next[side]])) {
		s.next[side]++
	}
	return s.next[side] == s.end[side]
}

// take takes the next row of a row set that is not empty.
func (s *sides) take(side int32) (row int32) {
	row = s.next[side]
	s.next[side]++
	if s.groups != nil {
		s.taken.Set(int(s.groups[row]))
	}
	return row
}

// dropTurns removes all turns of the row set whose turn it is. at becomes the next remaining turn.
func dropTurns(turns []int32, at int, side int32) ([]int32, int) {
	left, next := turns[:0], 0
	for i, turn := range turns {
		if i == at {
			next = len(left)
		}
		if turn != side {
			left = append(left, turn)
		}
	}
	if next == len(left) {
		next = 0
	}
	return left, next
}
