package rowset

// Concat returns a dense RowSet of a's active rows in their order, then b's. It has
// the columns of both sides, even if a side has no rows. A column is null for the rows
// of a side that lacks it. The sides may be the same RowSet, and either may be the zero
// RowSet. The slices of the result are m's.
func Concat(m *Memory, a, b RowSet) RowSet {
	sides := [2]RowSet{a, b}
	for i := range sides {
		if sides[i].Batch == nil {
			sides[i] = RowSet{Batch: new(Batch)}
		}
	}
	left, right := sides[0].Batch, sides[1].Batch

	ids := m.IDs(a.N + b.N)
	gather(ids[:a.N], left.IDs, sides[0])
	gather(ids[a.N:], right.IDs, sides[1])
	var floats []FloatColumn
	var strings []StringColumn
	if n := max(len(left.Floats), len(right.Floats)); n > 0 {
		floats = make([]FloatColumn, 0, n)
	}
	for i := range left.Floats {
		c := &left.Floats[i]
		floats = append(floats, concatFloats(m, sides, [2]*FloatColumn{c, right.Float(c.Key)}))
	}
	for i := range right.Floats {
		if c := &right.Floats[i]; left.Float(c.Key) == nil {
			floats = append(floats, concatFloats(m, sides, [2]*FloatColumn{nil, c}))
		}
	}

	if n := max(len(left.Strings), len(right.Strings)); n > 0 {
		strings = make([]StringColumn, 0, n)
	}
	for i := range left.Strings {
		c := &left.Strings[i]
		strings = append(strings, concatStrings(m, sides, [2]*StringColumn{c, right.String(c.Key)}))
	}
	for i := range right.Strings {
		if c := &right.Strings[i]; left.String(c.Key) == nil {
			strings = append(strings, concatStrings(m, sides, [2]*StringColumn{nil, c}))
		}
	}
	return Dense(NewBatch(ids, floats, strings))
}

// concatFloats joins one column. A side that lacks it has a nil column.
func concatFloats(m *Memory, sides [2]RowSet, columns [2]*FloatColumn) FloatColumn {
	n := sides[0].N + sides[1].N
	out := FloatColumn{Values: m.Floats(n)}
	at := 0
	for s, side := range sides {
		values := out.Values[at : at+side.N]
		at += side.N
		if c := columns[s]; c != nil {
			out.Key = c.Key
			gather(values, c.Values, side)
		} else {
			clear(values)
		}
	}
	if hasNulls(sides[0], columns[0]) || hasNulls(sides[1], columns[1]) {
		out.Valid = NewBitmap(n)
		at = 0
		for s, side := range sides {
			if c := columns[s]; c != nil {
				gatherValid(out.Valid, at, c.Valid, side)
			}
			at += side.N
		}
	}
	return out
}

func hasNulls(side RowSet, c *FloatColumn) bool {
	return side.N > 0 && (c == nil || c.Valid != nil)
}

// concatStrings joins one column. A side that lacks it has a nil column.
func concatStrings(m *Memory, sides [2]RowSet, columns [2]*StringColumn) StringColumn {
	out := StringColumn{Codes: m.Rows(sides[0].N + sides[1].N)}
	merge := newDictMerge(sides, columns)
	at := 0
	for s, side := range sides {
		codes := out.Codes[at : at+side.N]
		at += side.N
		c := columns[s]
		if c == nil {
			for i := range codes {
				codes[i] = NullCode
			}
			continue
		}
		out.Key = c.Key
		gather(codes, c.Codes, side)
		if c.Dict != merge.base {
			merge.recode(codes, c.Dict)
		}
	}
	out.Dict = merge.result()
	return out
}

// A dictMerge gives the rows of both sides codes of one dictionary. It starts from a
// base, the dictionary whose codes stay valid. One goroutine at a time.
type dictMerge struct {
	base *Dict // nil: none
	grow dictBuilder
}

// newDictMerge chooses the base: the first dictionary that is not much larger than its
// side has active rows. The result starts empty without one, so that a few rows taken
// from many do not keep all their strings alive.
func newDictMerge(sides [2]RowSet, columns [2]*StringColumn) *dictMerge {
	m := new(dictMerge)
	for s, c := range columns {
		if c != nil && len(c.Dict.Values) <= 4*sides[s].N+dictScanMax {
			m.base = c.Dict
			break
		}
	}
	return m
}

// recode replaces codes of from, which is not the base, by codes of the result.
func (m *dictMerge) recode(codes []int32, from *Dict) {
	if m.grow.dict == nil {
		if m.base == nil {
			m.grow = newDictBuilder(nil)
		} else {
			m.grow = newDictBuilder(m.base.Values)
		}
	}
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
			codeOf[code] = m.grow.intern(from.Values[code]) + 1
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

// gather copies the active rows of a column, in their order, to dst. dst has one
// element per active row.
func gather[T any](dst, column []T, rows RowSet) {
	if rows.Rows == nil {
		copy(dst, column[:rows.N])
		return
	}
	for i, row := range rows.Rows {
		dst[i] = column[row]
	}
}

// gatherValid copies the validity of the active rows, in their order, to the bits of
// dst from position at on. Those bits must be clear before.
func gatherValid(dst Bitmap, at int, valid Bitmap, rows RowSet) {
	if rows.Rows == nil || valid == nil {
		dst.copyRange(at, valid, rows.N)
		return
	}
	for i, row := range rows.Rows {
		if valid.Get(int(row)) {
			dst.Set(at + i)
		}
	}
}
