package builtin

import (
	"github.com/rankd/rankd/rowset"
)

// A spreader orders rows so that each window of the result has at most so many rows of a group, as far as that is
// possible. One goroutine at a time.
//
// Each place of the result takes the first row that is left and fits. A row of a group that is full waits in the queue of its group
// until the window has left one of the group behind. So a row is looked at once when the scan reaches it, and once
// when its queue lets it go.
type spreader struct {
	groups []int32 // of each position of the input
	most   int32
	window int // 0: the whole result

	result []int32 // positions
	inside []int32 // by group: how many of it the window has
	first  []int32 // by group: the position that waits first; noRow: none does
	last   []int32 // by group: the position that waits last
	next   []int32 // by position: who waits behind it in its group
	ready  []int32 // heap of the first positions of groups that fit again
	scan   int     // the first position that was not looked at yet
	oldest int     // no position before it waits
}

// The values of spreader.next and first besides positions.
const (
	noRow  int32 = -1
	placed int32 = -2 // of next: the row is in the result
)

// spread returns the positions of the active rows in their new order, or the first limit of them if limit is positive. False means that
// stop ended it. All slices are m's.
func spread(stop rowset.Stop, m *rowset.Memory, groups []int32, groupCount int, most, window, limit int) ([]int32, bool) {
	n := len(groups)
	if limit <= 0 || limit > n {
		limit = n
	}
	s := spreader{
		groups: groups, most: int32(min(most, n)), window: window, result: m.Rows(limit)[:0],
		inside: m.Rows(groupCount), first: m.Rows(groupCount), last: m.Rows(groupCount), next: m.Rows(n), ready: m.Rows(groupCount)[:0],
	}
	if window > n {
		s.window = 0
	}
	clear(s.inside)
	for g := range s.first {
		s.first[g] = noRow
	}
	for at := range limit {
		if at%(1<<14) == 0 && stop != nil && stop.Cancelled() {
			return nil, false
		}
		if s.window > 0 && at >= s.window {
			s.leave(groups[s.result[at-s.window]])
		}
		s.place(s.choose())
	}
	return s.result, true
}

// choose takes the row for the next place from where it waits.
func (s *spreader) choose() int32 {
	if len(s.ready) > 0 {
		return s.unqueue(s.popReady())
	}
	for ; s.scan < len(s.groups); s.scan++ {
		g := s.groups[s.scan]
		if s.inside[g] < s.most {
			s.scan++
			return int32(s.scan - 1)
		}
		s.queue(g, int32(s.scan))
	}
	for s.next[s.oldest] == placed {
		s.oldest++
	}
	return s.unqueue(int32(s.oldest)) // no row fits: the first that waits goes all the same
}

// place appends a row to the result.
func (s *spreader) place(pos int32) {
	s.result = append(s.result, pos)
	s.next[pos] = placed
	g := s.groups[pos]
	s.inside[g]++
	if s.first[g] != noRow && s.inside[g] < s.most {
		s.pushReady(s.first[g])
	}
}

// leave notes that the window has left a row of that group behind.
func (s *spreader) leave(g int32) {
	s.inside[g]--
	if s.first[g] != noRow && s.inside[g] == s.most-1 {
		s.pushReady(s.first[g])
	}
}

func (s *spreader) queue(g, pos int32) {
	s.next[pos] = noRow
	if s.first[g] == noRow {
		s.first[g] = pos
	} else {
		s.next[s.last[g]] = pos
	}
	s.last[g] = pos
}

// unqueue takes the first row of a queue out of it.
func (s *spreader) unqueue(pos int32) int32 {
	s.first[s.groups[pos]] = s.next[pos]
	return pos
}

func (s *spreader) pushReady(pos int32) {
	s.ready = append(s.ready, pos)
	i := len(s.ready) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if s.ready[parent] <= pos {
			break
		}
		s.ready[i] = s.ready[parent]
		i = parent
	}
	s.ready[i] = pos
}

func (s *spreader) popReady() int32 {
	top, last := s.ready[0], len(s.ready)-1
	pos := s.ready[last]
	s.ready = s.ready[:last]
	if last == 0 {
		return top
	}
	i := 0
	for child := 1; child < last; child = 2*i + 1 {
		if child+1 < last && s.ready[child+1] < s.ready[child] {
			child++
		}
		if s.ready[child] >= pos {
			break
		}
		s.ready[i] = s.ready[child]
		i = child
	}
	s.ready[i] = pos
	return top
}
