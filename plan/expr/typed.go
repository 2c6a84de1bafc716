package expr

import (
	"math"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// Fits reports whether a column of a key of this type may take the value: floats take numbers, ints take integers, and numbers whose value
// for each row is one, strings take strings, and bools take predicates.
func (e *Expr) Fits(typ registry.Type) bool {
	switch typ {
	case registry.Float, registry.Int:
		return e.typ.isNumber()
	case registry.String:
		return e.typ == String
	case registry.Bool:
		return e.typ == Predicate
	}
	return false
}

// A KeyColumn is the value of an expression as a column of a key. Immutable once built; any goroutine.
type KeyColumn struct {
	rowset.Column      // rows that are not active are null
	Null          bool // some active row is null
	NonFinite     bool // some active row is an infinity or NaN
	NotWhole      bool // of an int: some active row is a number that is not an integer of at most 53 bits
}

// ColumnOf evaluates e for the active rows of in as a column of key, whose type it fits. It returns rowset.ErrStopped once stop says so. A nil
// stop never does, and the error is then nil. Floats and ints are m's.
func (e *Expr) ColumnOf(stop rowset.Stop, m *rowset.Memory, in rowset.RowSet, params *Params, key *registry.Key) (KeyColumn, error) {
	if key.Type == registry.Float || key.Type == registry.Int && e.typ != Int {
		col, err := e.Column(stop, m, in, params)
		if err != nil || key.Type == registry.Float {
			return KeyColumn{Column: &rowset.FloatColumn{Key: key.ID, Values: col.Values, Valid: col.Valid}, Null: col.Null, NonFinite: col.NonFinite}, err
		}
		return wholes(key.ID, &col, in.Batch.Len()), nil
	}
	ev := e.evaluator()
	defer e.evaluators.Put(ev)
	ev.begin(stop, in, params)
	defer ev.end()
	var out KeyColumn
	switch rows := in.Batch.Len(); e.typ {
	case Int:
		out = ev.wholesOf(key.ID, &ev.boundLeaves[e.exact], in)
	case String:
		column := &rowset.StringColumn{Key: key.ID, Places: make([]int32, rows)}
		out = KeyColumn{Column: column, Null: ev.textsOf(&ev.boundLeaves[e.root], in, column)}
	default:
		column := &rowset.BoolColumn{Key: key.ID, Values: rowset.NewBitmap(rows)}
		if in.N < rows {
			column.Valid = rowset.NewBitmap(rows)
		}
		ev.truthsOf(e.root, in, column)
		out.Column = column
	}
	if ev.failed != nil {
		return KeyColumn{}, ev.failed
	}
	return out, nil
}

// wholeMax is the largest integer that a double has exactly, as all below it.
const wholeMax = 1 << 53

// wholes makes a column of doubles one of integers.
func wholes(key registry.KeyID, col *Column, rows int) KeyColumn {
	out := &rowset.IntColumn{Key: key, Values: make([]int64, rows), Valid: col.Valid}
	notWhole := false
	for i, x := range col.Values {
		if x != math.Trunc(x) || max(x, -x) > wholeMax {
			notWhole = notWhole || isFinite(x)
			continue
		}
		out.Values[i] = int64(x)
	}
	return KeyColumn{Column: out, Null: col.Null, NonFinite: col.NonFinite, NotWhole: notWhole}
}

// wholesOf returns the integers of a leaf.
func (ev *evaluator) wholesOf(key registry.KeyID, b *leafBinding, in rowset.RowSet) KeyColumn {
	rows := in.Batch.Len()
	out, null := &rowset.IntColumn{Key: key, Values: make([]int64, rows), Valid: rowset.NewBitmap(rows)}, false
	ev.eachRow(in, func(row int) {
		x, ok := int64(0), true
		switch b.kind {
		case bindScalar:
			x = b.whole()
		case bindIDs:
			x = in.Batch.IDs[row]
		case bindInts:
			x, ok = b.ints.Value(row)
		default:
			ok = false
		}
		if null = null || !ok; ok {
			out.Values[row] = x
			out.Valid.Set(row)
		}
	})
	if !null && in.N == rows {
		out.Valid = nil
	}
	return KeyColumn{Column: out, Null: null}
}

// textsOf fills in the strings of a leaf, and reports whether one of an active row is null.
func (ev *evaluator) textsOf(b *leafBinding, in rowset.RowSet, out *rowset.StringColumn) (null bool) {
	of := func(int) int32 { return rowset.NullCode }
	out.Dict = &rowset.Dict{}
	switch b.kind {
	case bindScalar:
		out.Dict.Values = []string{b.value.text}
		of = func(int) int32 { return 0 }
	case bindColumn:
		out.Dict = b.strings.Dict
		of = func(row int) int32 { return b.strings.Places[row] }
	}
	for i := range out.Places {
		out.Places[i] = rowset.NullCode
	}
	ev.eachRow(in, func(row int) {
		out.Places[row] = of(row)
		null = null || out.Places[row] < 0
	})
	return null
}

// truthsOf fills in for which rows a test is true.
func (ev *evaluator) truthsOf(test int32, in rowset.RowSet, out *rowset.BoolColumn) {
	ev.eachChunk(in, func(c *chunk) {
		all, answer := fullMask(c.n), mask{}
		if err := ev.test(test, c, &all, &answer, 0); err != nil {
			ev.failed = err
			return
		}
		for pos := range c.n {
			row := int(c.row(pos))
			if out.Valid != nil {
				out.Valid.Set(row)
			}
			if rowset.Bitmap(answer[:]).Get(pos) {
				out.Values.Set(row)
			}
		}
	})
}
