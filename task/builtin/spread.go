package builtin

import (
	"github.com/rankd/rankd/rowset"
)

// A spreadRule limits the rows of a group in each window of the result. One goroutine at a time.
type spreadRule struct {
	groups []int32 // by position of the input
	n      int     // the number of groups
	most   int32
	window int // 0: the whole result

	inside []int32 // by group: how many of it the window has
	// The classes of group g are classes[starts[g]:starts[g+1]]. Nil if the rule is the only one: a group is a class then.
	starts, classes []int32
}

// A spreader orders rows so that its rules hold, as far as that is possible. If no row fits all rules, the last of them
// gives way first. One goroutine at a time.
//
// Rows with the same groups in all rules are a class: all of them fit, or none does. Each place of the result takes the first row that is
// left and fits. A row of a class that does not fit waits in the queue of its class until the windows of all rules have room again. So
// a row is looked at once when the scan reaches it, and once when its queue lets it go.
type spreader struct {
	rules []spreadRule
	class []int32 // by position

	result []int32 // positions
	full   []int32 // by class: how many rules have no room for it
	first  []int32 // by class: the first waiting position; noRow: none waits
	last   []int32 // by class: the position that waits last
	next   []int32 // by position: the one that waits behind it in its class
	ready  []int32 // heap of the first positions of classes that fit again; those that no longer do are passed over
	scan   int     // the first position that was not looked at yet
	oldest int     // no position before it waits
}

// The values of spreader.next and first besides positions.
const (
	noRow  int32 = -1
	placed int32 = -2 // of next: the row is in the result
)

// spread returns the positions of n active rows in their new order, or the first limit of them if limit is positive. False means that
// stop ended it. All slices are m's.
func spread(stop rowset.Stop, m *rowset.Memory, n int, rules []spreadRule, limit int) ([]int32, bool) {
	if limit <= 0 || limit > n {
		limit = n
	}
	s := spreader{rules: rules, result: m.Rows(limit)[:0], next: m.Rows(n)}
	classes := s.classify(m, n)
	s.full, s.first, s.last, s.ready = m.Rows(classes), m.Rows(classes), m.Rows(classes), m.Rows(classes)[:0]
	clear(s.full)
	for c := range s.first {
		s.first[c] = noRow
	}
	for at := range limit {
		if at%(1<<10) == 0 && stop != nil && stop.Cancelled() {
			return nil, false
		}
		for i := range rules {
			if r := &rules[i]; r.window > 0 && at >= r.window {
				s.leave(r, r.groups[s.result[at-r.window]])
			}
		}
		s.place(s.choose())
	}
	return s.result, true
}

// classify completes the rules, finds the class of each row and returns the number of classes.
func (s *spreader) classify(m *rowset.Memory, n int) (classes int) {
	for i := range s.rules {
		r := &s.rules[i]
		r.most, r.inside = min(r.most, int32(n)), m.Rows(r.n)
		clear(r.inside)
		if r.window > n {
			r.window = 0
		}
	}
	s.class, classes = s.rules[0].groups, s.rules[0].n
	for _, r := range s.rules[1:] {
		s.class, classes, _ = rowset.JointGroups(nil, m, s.class, r.groups) // without a stop it does not fail
	}
	if len(s.rules) > 1 {
		for i := range s.rules {
			s.rules[i].listClasses(m, s.class, classes)
		}
	}
	return classes
}

// listClasses fills starts and classes.
func (r *spreadRule) listClasses(m *rowset.Memory, class []int32, classes int) {
	groups := m.Rows(classes) // by class
	for pos, c := range class {
		groups[c] = r.groups[pos]
	}
	r.starts, r.classes = m.Rows(r.n+1), m.Rows(classes)
	clear(r.starts)
	for _, g := range groups {
		r.starts[g]++
	}
	sum := int32(0)
	for g, count := range r.starts {
		sum += count
		r.starts[g] = sum
	}
	for c, g := range groups {
		r.starts[g]--
		r.classes[r.starts[g]] = int32(c)
	}
}

// of returns the classes of a group, which are one[0] alone if a group is a class.
func (r *spreadRule) of(g int32, one *[1]int32) []int32 {
	if r.starts == nil {
		one[0] = g
		return one[:]
	}
	return r.classes[r.starts[g]:r.starts[g+1]]
}

// choose takes the row for the next place from where it waits.
func (s *spreader) choose() int32 {
	for len(s.ready) > 0 {
		if pos := s.popReady(); s.next[pos] != placed && s.full[s.class[pos]] == 0 {
			return s.unqueue(pos)
		}
	}
	for ; s.scan < len(s.class); s.scan++ {
		c := s.class[s.scan]
		if s.full[c] == 0 {
			s.scan++
			return int32(s.scan - 1)
		}
		s.queue(c, int32(s.scan))
	}
	return s.unqueue(s.relax())
}

// relax returns the first row that fits all rules except the last ones, as few of these as possible.
func (s *spreader) relax() int32 {
	for kept := len(s.rules) - 1; kept > 0; kept-- {
		best := noRow
		for _, pos := range s.first {
			if pos != noRow && (best == noRow || pos < best) && s.fits(pos, s.rules[:kept]) {
				best = pos
			}
		}
		if best != noRow {
			return best
		}
	}
	for s.next[s.oldest] == placed {
		s.oldest++
	}
	return int32(s.oldest)
}

// fits reports whether rules have room for a row.
func (s *spreader) fits(pos int32, rules []spreadRule) bool {
	for i := range rules {
		if r := &rules[i]; r.inside[r.groups[pos]] >= r.most {
			return false
		}
	}
	return true
}

// place appends a row to the result.
func (s *spreader) place(pos int32) {
	s.result = append(s.result, pos)
	s.next[pos] = placed
	var one [1]int32
	for i := range s.rules {
		r := &s.rules[i]
		g := r.groups[pos]
		if r.inside[g]++; r.inside[g] == r.most {
			for _, c := range r.of(g, &one) {
				s.full[c]++
			}
		}
	}
	s.mayGo(s.class[pos])
}

// leave notes that the window of a rule has moved past a row of that group.
func (s *spreader) leave(r *spreadRule, g int32) {
	if r.inside[g]--; r.inside[g] == r.most-1 {
		var one [1]int32
		for _, c := range r.of(g, &one) {
			s.full[c]--
			s.mayGo(c)
		}
	}
}

// mayGo makes the first row of a class ready if it fits.
func (s *spreader) mayGo(c int32) {
	if s.full[c] == 0 && s.first[c] != noRow {
		s.pushReady(s.first[c])
	}
}

func (s *spreader) queue(c, pos int32) {
	s.next[pos] = noRow
	if s.first[c] == noRow {
		s.first[c] = pos
	} else {
		s.next[s.last[c]] = pos
	}
	s.last[c] = pos
}

// unqueue takes the first row of a queue out of it.
func (s *spreader) unqueue(pos int32) int32 {
	s.first[s.class[pos]] = s.next[pos]
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
