package rowset

import (
	"math/bits"
	"slices"
)

// maskMembers is how many members a word can stand for. Its last bit says that the set is not null.
const maskMembers = 63

// unionSets returns a set column with the union of the sets of each group in the row that stays. The
// other rows keep their sets.
func unionSets(m *Memory, rs RowSet, c *SetColumn, g groups) *SetColumn {
	u := setUnion{column: c, rows: rs, groups: g, dict: *c.Dict, codes: m.Rows(len(c.Codes))}
	u.dict.Offsets = slices.Clip(u.dict.Offsets)
	u.dict.Members = slices.Clip(u.dict.Members)
	copy(u.codes, c.Codes)
	if len(c.Dict.Strings.Values) <= maskMembers {
		u.byMask(m)
	} else {
		u.byGroup(m)
	}
	return &SetColumn{Key: c.Key, Codes: u.codes, Dict: &u.dict}
}

// setUnion is one run of unionSets. One goroutine at a time.
type setUnion struct {
	column *SetColumn
	rows   RowSet
	groups groups
	dict   SetDict // grows; the column's dictionary stays as it is
	codes  []int32 // of the result, by batch row
}

// byMask merges sets of few different members, each a bit of a word. Sources are such members.
func (s *setUnion) byMask(m *Memory) {
	masks := m.IDs(len(s.groups.kept))
	clear(masks)
	for _, pos := range s.groups.doubles {
		group := s.groups.of[pos]
		masks[group] |= s.mask(s.rows.Row(int(pos))) | s.mask(s.rows.Row(int(s.groups.first[group])))
	}
	firsts := newKeyTable(m, masks, len(masks)) // the first group of each mask that is a new set
	for group, pos := range s.groups.kept {
		row, mask := s.rows.Row(int(pos)), masks[group]
		if mask == 0 || mask == s.mask(row) { // a group of one row, or of nulls, or one whose row has all members
			continue
		}
		first, slot := firsts.find(mask)
		if first >= 0 {
			s.codes[row] = s.codes[s.rows.Row(int(s.groups.kept[first]))]
			continue
		}
		firsts.put(slot, int32(group))
		s.addMask(mask)
		s.codes[row] = s.endSet()
	}
}

// addMask appends the members that a word stands for.
func (s *setUnion) addMask(mask int64) {
	for rest := uint64(mask) &^ (1 << maskMembers); rest != 0; rest &= rest - 1 {
		s.dict.Members = append(s.dict.Members, int32(bits.TrailingZeros64(rest)))
	}
}

// mask returns the members of a row's set as bits, or 0 for a null.
func (s *setUnion) mask(row int32) int64 {
	code := s.column.Codes[row]
	if code == NullCode {
		return 0
	}
	mask := uint64(1) << maskMembers
	for _, member := range s.column.Dict.Set(int(code)) {
		mask |= 1 << member
	}
	return int64(mask)
}

// byGroup merges sets of any members, group by group.
func (s *setUnion) byGroup(m *Memory) {
	order, ends := s.groups.positions(m)
	marked := m.Rows(len(s.dict.Strings.Values)) // by member: 1 plus the last group that has it
	clear(marked)
	start := int32(0)
	for group, end := range ends {
		positions := order[start:end]
		start = end
		if s.allEqual(positions) {
			continue
		}
		from := len(s.dict.Members)
		for _, pos := range positions {
			code := s.column.Codes[s.rows.Row(int(pos))]
			if code == NullCode {
				continue
			}
			for _, member := range s.column.Dict.Set(int(code)) {
				if marked[member] != int32(group)+1 {
					marked[member] = int32(group) + 1
					s.dict.Members = append(s.dict.Members, member)
				}
			}
		}
		slices.Sort(s.dict.Members[from:])
		s.codes[s.rows.Row(int(s.groups.kept[group]))] = s.endSet()
	}
}

// allEqual reports whether the rows at these positions share one code.
func (s *setUnion) allEqual(positions []int32) bool {
	for _, pos := range positions[1:] {
		if s.column.Codes[s.rows.Row(int(pos))] != s.column.Codes[s.rows.Row(int(positions[0]))] {
			return false
		}
	}
	return true
}

// endSet ends the set of the members that were appended last, and returns its code.
func (s *setUnion) endSet() int32 {
	s.dict.Offsets = append(s.dict.Offsets, int32(len(s.dict.Members)))
	return int32(s.dict.Len()) - 1
}

// positions lists the positions of all groups, group by group, and where each group ends in the list.
func (g *groups) positions(m *Memory) (order, ends []int32) {
	ends = m.Rows(len(g.kept))
	clear(ends)
	for _, group := range g.of {
		ends[group]++
	}
	sum := int32(0)
	for group, n := range ends {
		ends[group] = sum
		sum += n
	}
	order = m.Rows(len(g.of))
	for pos, group := range g.of {
		order[ends[group]] = int32(pos)
		ends[group]++
	}
	return order, ends
}
