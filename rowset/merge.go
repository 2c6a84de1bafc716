package rowset

import (
	"slices"

	"github.com/rankd/rankd/registry"
)

// A dictMerge gives the rows of all sides codes of one dictionary. It starts with a base, a dictionary whose codes
// stay valid. One goroutine at a time.
type dictMerge struct {
	base *Dict // nil: none
	grow dictBuilder
}

// fits reports whether a dictionary of that many values may serve so many rows. The result of a much larger one would
// keep all its strings alive for a few rows.
func fits(values, rows int) bool { return values <= 4*rows+dictScanMax }

// newDictMerge chooses the base: the first dictionary that fits its side. The result starts empty without one.
func newDictMerge(sides []RowSet, key registry.KeyID) dictMerge {
	for i := range sides {
		if c := sides[i].Batch.String(key); c != nil && fits(len(c.Dict.Values), sides[i].N) {
			return dictMerge{base: c.Dict}
		}
	}
	return dictMerge{}
}

// intern returns the code of a value in the result. A small base costs nothing unless the value is new.
func (m *dictMerge) intern(value string) int32 {
	if m.grow.dict == nil {
		if m.base == nil {
			m.grow = dictBuilder{dict: newDict()}
		} else {
			if len(m.base.Values) <= dictScanMax {
				if code := slices.Index(m.base.Values, value); code >= 0 {
					return int32(code)
				}
			}
			m.grow = newDictBuilder(m.base.Values)
		}
	}
	return m.grow.intern(value)
}

// recode replaces codes of from, which is not the base, by codes of the result.
func (m *dictMerge) recode(codes []int32, from *Dict) {
	var few [16]int32
	codeOf := few[:] // new code plus 1, by old code; 0 means unknown
	if len(from.Values) > len(few) {
		codeOf = make([]int32, len(from.Values))
	}
	for i, code := range codes {
		if code < 0 {
			continue
		}
		if codeOf[code] == 0 {
			codeOf[code] = m.intern(from.Values[code]) + 1
		}
		codes[i] = codeOf[code] - 1
	}
}

func (m *dictMerge) result() *Dict {
	switch {
	case m.grow.dict == nil && m.base == nil:
		return new(Dict)
	case m.grow.dict == nil || m.base != nil && len(m.grow.dict.Values) == len(m.base.Values):
		return m.base // no new value: share it
	}
	return m.grow.dict
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
