package rowset

import (
	"slices"

	"github.com/rankd/rankd/registry"
)

// A dictMerge gives the rows of all sides places in one dictionary. It starts with a base, a dictionary whose places stay
// valid. One goroutine at a time.
type dictMerge struct {
	base *Dict // nil: none
	grow *Dict // nil until the first string that is not of the base
	room int   // for how many strings

	latest *Dict // whose list was appended last
	at     int32 // where
}

// fits reports whether a dictionary of that many values may serve so many rows. The result of a much larger one would
// keep all its strings alive for a few rows.
func fits(values, rows int) bool { return values <= 4*rows+dictScanMax }

// newDictMerge chooses the base: the first dictionary that fits all rows. The result starts empty without one.
func newDictMerge(a *assembly, key registry.KeyID) (m dictMerge) {
	for i := range a.sides {
		c := a.sides[i].Batch.String(key)
		switch {
		case c == nil:
		case m.base == nil && fits(len(c.Dict.Values), a.n):
			m.base = c.Dict
			m.room += len(c.Dict.Values)
		case c.Dict != m.base:
			m.room += min(len(c.Dict.Values), 4*a.sides[i].N)
		}
	}
	return m
}

// recode replaces places in from, which is not the base, by those in the result. Few values stay distinct. Otherwise nobody looks at
// a string: the list of from is appended, or what these rows have of it, if that is much less.
func (m *dictMerge) recode(places []int32, from *Dict) {
	d := m.base // what has the values so far
	if m.grow != nil || d == nil {
		d = m.own()
	}
	if d.distinct && from.distinct && len(d.Values) <= dictScanMax && len(from.Values) <= dictScanMax {
		var few [dictScanMax]int32 // the new place plus 1, by old one
		for i, place := range places {
			if place < 0 {
				continue
			}
			if few[place] == 0 {
				at := slices.Index(d.Values, from.Values[place])
				if at < 0 {
					d, at = m.own(), len(d.Values)
					d.Values = append(d.Values, from.Values[place])
				}
				few[place] = int32(at) + 1
			}
			places[i] = few[place] - 1
		}
		return
	}
	d = m.own()
	d.distinct = false
	if d.Values = m.roomy(d.Values); fits(len(from.Values), len(places)) {
		if m.latest != from {
			m.latest, m.at = from, int32(len(d.Values))
			d.Values = append(d.Values, from.Values...)
		}
		for i, place := range places {
			if place >= 0 {
				places[i] = place + m.at
			}
		}
		return
	}
	for i, place := range places {
		if place >= 0 {
			places[i] = int32(len(d.Values))
			d.Values = append(d.Values, from.Values[place])
		}
	}
}

// own returns the dictionary that grows. It begins with the values of the base: a few are copied to where it has room for the next one.
func (m *dictMerge) own() *Dict {
	if m.grow != nil {
		return m.grow
	}
	m.grow = newDict()
	if b := m.base; b != nil {
		if m.grow.distinct = b.distinct; len(b.Values) < cap(m.grow.Values) {
			m.grow.Values = append(m.grow.Values, b.Values...)
		} else {
			m.grow.Values = slices.Clip(b.Values)
		}
	}
	return m.grow
}

// roomy returns values with room for all.
func (m *dictMerge) roomy(values []string) []string {
	if cap(values) < m.room {
		return append(make([]string, 0, m.room), values...)
	}
	return values
}

func (m *dictMerge) result() *Dict {
	switch {
	case m.grow == nil && m.base == nil:
		return new(Dict)
	case m.grow == nil || m.base != nil && len(m.grow.Values) == len(m.base.Values):
		return m.base // no new value: share it
	}
	return m.grow
}

// A setMerge is a dictMerge for sets. One goroutine at a time.
type setMerge struct {
	base    *SetDict // nil: none
	grow    *SetDict // nil until the first set that is not of the base
	strings dictBuilder
}

// newSetMerge chooses the base as newDictMerge does.
func newSetMerge(sides []RowSet, key registry.KeyID) setMerge {
	for i := range sides {
		if c := sides[i].Batch.Set(key); c != nil && fits(c.Dict.Len(), sides[i].N) {
			return setMerge{base: c.Dict}
		}
	}
	return setMerge{}
}

// recode replaces sets of from, which is not the base, by sets of the result.
func (m *setMerge) recode(codes []int32, from *SetDict) {
	if m.grow == nil {
		m.start()
	}
	setOf := make([]int32, from.Len())                // new set plus 1, by old set; 0 means unknown
	codeOf := make([]int32, len(from.Strings.Values)) // likewise for strings
	for i, set := range codes {
		if set < 0 {
			continue
		}
		if setOf[set] == 0 {
			setOf[set] = m.add(from, int(set), codeOf) + 1
		}
		codes[i] = setOf[set] - 1
	}
}

// start begins the result with the sets of the base. It shares them until the first new one.
func (m *setMerge) start() {
	if m.base == nil {
		m.strings = dictBuilder{dict: newDict()}
		m.grow = &SetDict{Offsets: []int32{0}}
		return
	}
	m.strings = newDictBuilder(m.base.Strings.Values)
	m.grow = &SetDict{Offsets: slices.Clip(m.base.Offsets), Members: slices.Clip(m.base.Members)}
}

// add adds set i of from and returns its new number. codeOf has the new code of each string plus 1, or 0 if it has
// none yet.
func (m *setMerge) add(from *SetDict, i int, codeOf []int32) int32 {
	start := len(m.grow.Members)
	for _, code := range from.Set(i) {
		if codeOf[code] == 0 {
			codeOf[code] = m.strings.intern(from.Strings.Values[code]) + 1
		}
		m.grow.Members = append(m.grow.Members, codeOf[code]-1)
	}
	slices.Sort(m.grow.Members[start:])
	m.grow.Offsets = append(m.grow.Offsets, int32(len(m.grow.Members)))
	return int32(m.grow.Len() - 1)
}

func (m *setMerge) result() *SetDict {
	switch {
	case m.grow != nil:
		m.grow.Strings = m.strings.dict
		return m.grow
	case m.base != nil:
		return m.base
	}
	return &SetDict{Offsets: []int32{0}, Strings: new(Dict)}
}
