package expr

import (
	"sync"

	"github.com/rankd/rankd/rowset"
)

// Expr is a compiled expression: per row a double or null, or a value of its type. Immutable once built; any
// goroutine.
type Expr struct {
	*source
	code       code
	typ        Type
	typed      bool
	root       int32     // of a String a leaf, of a Predicate a test
	exact      int32     // of an Int: its leaf
	evaluators sync.Pool // of *exprEvaluator; only scratch memory
}

// An exprEvaluator has one more register. Its values are part of the result.
type exprEvaluator struct {
	evaluator
	out register
}

// Value returns the value of an expression without keys, which is the same for all rows, and false if it is null.
func (e *Expr) Value(params *Params) (value float64, ok bool) {
	values, _ := e.Values(nil, nil, rowset.Dense(rowset.NewBatch([]int64{0})), params) // nothing stops it
	return values.Values[0], values.Valid == nil || values.Valid.Get(0)
}

// IsConstant reports whether the value is known without a request. Some expressions of constants are computed for each request.
func (e *Expr) IsConstant() bool {
	if !e.typ.isNumber() {
		return false
	}
	op := e.code.program[e.root].op
	return op == opConst || op == opNull
}

// Type returns the type of the value: Number, Int (a plain key, parameter or constant), String or Predicate. Column,
// Values and Value are for the first two.
func (e *Expr) Type() Type { return e.typ }

// Typed reports whether keys and parameters have the types of the registry in e.
func (e *Expr) Typed() bool { return e.typed }

// evaluator returns scratch memory. The caller puts it back.
func (e *Expr) evaluator() *exprEvaluator {
	if ev, ok := e.evaluators.Get().(*exprEvaluator); ok {
		return ev
	}
	return &exprEvaluator{evaluator: newEvaluator(e.code)}
}

// A Column is the value of an expression for the active rows of a RowSet.
// Immutable once built; any goroutine.
type Column struct {
	Values    []float64     // one per row of the batch; 0 for inactive and null rows
	Valid     rowset.Bitmap // by batch row; nil if every row of the batch is active and non-null
	Null      bool          // some active row is null
	NonFinite bool          // some active row is an infinity or NaN
}

// Column evaluates e for the active rows of in. It returns rowset.ErrStopped once stop says so. A
// nil stop never does, and the error is then nil. The values are m's.
func (e *Expr) Column(stop rowset.Stop, m *rowset.Memory, in rowset.RowSet, params *Params) (Column, error) {
	if in.Batch == nil {
		return Column{}, nil
	}
	ev := e.evaluator()
	defer e.evaluators.Put(ev)
	ev.begin(stop, in, params)
	defer ev.end()

	col := Column{Values: m.Floats(in.Batch.Len())}
	todo := chunks{in: in, stop: stop}
	if in.Rows == nil || in.N == in.Batch.Len() {
		// Results go by batch row, so the order of a full permutation does not matter.
		todo.in.Rows = nil
		ev.evalPrefix(e.root, &todo, &col)
	} else {
		ev.evalSelected(e.root, &todo, &col)
	}
	if todo.stopped || ev.failed != nil {
		return Column{}, rowset.ErrStopped
	}
	return col, nil
}

// Values is the value of an expression for the active rows of a RowSet, by position: element i belongs to
// the row in.Row(i). Immutable once built; any goroutine.
type Values struct {
	Values    []float64     // one per active row; 0 for null rows
	Valid     rowset.Bitmap // by position; nil if no row is null
	NonFinite bool          // some row is an infinity or NaN
}

// Values evaluates e for the active rows of in, by position. It returns rowset.ErrStopped once stop says so.
// A nil stop never does, and the error is then nil. The values are m's.
func (e *Expr) Values(stop rowset.Stop, m *rowset.Memory, in rowset.RowSet, params *Params) (Values, error) {
	if in.N == 0 {
		return Values{}, nil
	}
	ev := e.evaluator()
	defer e.evaluators.Put(ev)
	ev.begin(stop, in, params)
	defer ev.end()

	out := Values{Values: m.Floats(in.N)}
	todo := chunks{in: in, stop: stop}
	var c chunk
	for todo.advance(&c) {
		lo := todo.next - c.n
		vals := out.Values[lo : lo+c.n]
		ev.out.vals = vals
		v := ev.eval(e.root, &c, &ev.out, 0)
		if &v.vals[0] != &vals[0] { // a view of a column
			copy(vals, v.vals)
		}
		if v.valid != nil && countValid(v.valid, c.n) < c.n {
			if out.Valid == nil {
				out.Valid = rowset.NewBitmapOf(in.N, lo)
			}
			zeroInvalid(vals, v.valid)
			full := fullMask(c.n)
			for k, w := range v.valid {
				out.Valid[lo/64+k] = w & full[k]
			}
		} else if out.Valid != nil {
			out.Valid.SetRange(lo, lo+c.n)
		}
		out.NonFinite = out.NonFinite || !allFinite(vals)
	}
	ev.out.vals = nil // the memory belongs to the result
	if todo.stopped || ev.failed != nil {
		return Values{}, rowset.ErrStopped
	}
	return out, nil
}

// evalPrefix evaluates the first rows of the batch, in place.
func (ev *exprEvaluator) evalPrefix(root int32, todo *chunks, col *Column) {
	var c chunk
	for todo.advance(&c) {
		vals := col.Values[c.lo : c.lo+c.n]
		ev.out.vals = vals
		v := ev.eval(root, &c, &ev.out, 0)
		if &v.vals[0] != &vals[0] { // a view of a column
			copy(vals, v.vals)
		}
		if v.valid != nil && countValid(v.valid, c.n) < c.n {
			col.Null = true
			if col.Valid == nil {
				col.Valid = rowset.NewBitmapOf(len(col.Values), c.lo)
			}
			zeroInvalid(vals, v.valid)
			full := fullMask(c.n)
			for k, w := range v.valid {
				col.Valid[c.lo/64+k] = w & full[k]
			}
		} else if col.Valid != nil {
			col.Valid.SetRange(c.lo, c.lo+c.n)
		}
		col.NonFinite = col.NonFinite || !allFinite(vals)
	}
	ev.out.vals = nil // the memory belongs to the column
	clear(col.Values[todo.in.N:])
	if n := todo.in.N; col.Valid == nil && n < len(col.Values) {
		col.Valid = rowset.NewBitmapOf(len(col.Values), n)
	}
}

// evalSelected evaluates the active rows and writes each result to its row.
func (ev *exprEvaluator) evalSelected(root int32, todo *chunks, col *Column) {
	clear(col.Values)
	col.Valid = rowset.NewBitmap(len(col.Values))
	out := ev.reg(0)
	var c chunk
	for todo.advance(&c) {
		v := ev.eval(root, &c, out, 1) // never a view of a column: rows are gathered
		if v.valid == nil {
			setRows(col.Valid, c.rows)
		} else {
			col.Null = col.Null || countValid(v.valid, c.n) < c.n
			zeroInvalid(v.vals, v.valid)
			setValidRows(col.Valid, c.rows, v.valid)
		}
		scatter(col.Values, v.vals, c.rows)
		col.NonFinite = col.NonFinite || !allFinite(v.vals)
	}
}

func scatter(values, vals []float64, rows []int32) {
	vals = vals[:len(rows)]
	for i, row := range rows {
		values[row] = vals[i]
	}
}

// setRows sets the bits of the rows. Neighbours in a list often share a word, so
// setRows writes a word when the next row is in another one.
func setRows(valid rowset.Bitmap, rows []int32) {
	at, w := uint32(0), uint64(0)
	for _, row := range rows {
		if k := uint32(row) / 64; k != at {
			valid[at] |= w
			at, w = k, 0
		}
		w |= 1 << (uint32(row) % 64)
	}
	valid[at] |= w
}

// setValidRows sets the bits of those rows that are valid by position.
func setValidRows(valid rowset.Bitmap, rows []int32, positions []uint64) {
	at, w := uint32(0), uint64(0)
	for i, row := range rows {
		if k := uint32(row) / 64; k != at {
			valid[at] |= w
			at, w = k, 0
		}
		w |= positions[i/64] >> (uint(i) % 64) & 1 << (uint32(row) % 64)
	}
	valid[at] |= w
}
