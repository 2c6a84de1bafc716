package expr

import (
	"sync"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// Expr is a compiled expression: per row a double or null. Immutable once
// built; any goroutine.
type Expr struct {
	code     code
	root     int32
	keys     []registry.KeyID
	params   []registry.ParamID
	machines sync.Pool // of *exprMachine; only scratch memory
}

// An exprMachine has one more register, whose values are part of the result.
type exprMachine struct {
	*machine
	out register
}

// Keys returns the keys that e reads, ascending, registry.IDKey among them if
// it reads the id. Not to be changed.
func (e *Expr) Keys() []registry.KeyID { return e.keys }

// Params returns the parameters that e reads, ascending. Not to be changed.
func (e *Expr) Params() []registry.ParamID { return e.params }

// Faults says what some active row of an evaluation came out as.
type Faults struct {
	Null      bool // null
	NonFinite bool // an infinity or NaN, not null
}

// Eval evaluates e for the active rows of in. values has in.Batch.Len()
// elements, those of inactive and null rows are 0 and invalid; valid is nil if
// every row of the batch is active and non-null. Indexing is by batch row.
func (e *Expr) Eval(in rowset.RowSet, params *Params) (values []float64, valid rowset.Bitmap) {
	values, valid, _ = e.EvalChecked(in, params)
	return values, valid
}

// EvalChecked is Eval, and says whether some active row is null or not finite.
// Looking costs a fraction of the evaluation.
func (e *Expr) EvalChecked(in rowset.RowSet, params *Params) (values []float64, valid rowset.Bitmap, faults Faults) {
	if in.Batch == nil {
		return nil, nil, Faults{}
	}
	m, _ := e.machines.Get().(*exprMachine)
	if m == nil {
		m = &exprMachine{machine: newMachine(e.code)}
	}
	defer e.machines.Put(m)
	m.begin(in.Batch, params)
	defer m.end()

	values = make([]float64, in.Batch.Len())
	if in.Rows == nil || in.N == in.Batch.Len() {
		// Results go by batch row, so the order of a full permutation is nothing
		// to us: all rows are all rows.
		valid, faults = m.evalPrefix(e.root, values, in.N)
	} else {
		valid, faults = m.evalSelected(e.root, values, in)
	}
	return values, valid, faults
}

// evalPrefix evaluates the first n rows of the batch, in place.
func (m *exprMachine) evalPrefix(root int32, values []float64, n int) (valid rowset.Bitmap, faults Faults) {
	defer func() { m.out.vals = nil }() // it is the result's memory
	var c chunk
	for todo := (chunks{in: rowset.RowSet{N: n}}); todo.advance(&c); {
		lo, hi := c.lo, c.lo+c.n
		m.out.vals = values[lo:hi]
		v := m.eval(root, &c, &m.out, 0)
		copy(values[lo:hi], v.vals) // v may be a view of a column
		if v.valid != nil && countValid(v.valid, c.n) < c.n {
			faults.Null = true
			if valid == nil {
				valid = rowset.NewBitmapOf(len(values), lo)
			}
			zeroInvalid(values[lo:hi], v.valid)
			full := fullMask(c.n)
			for k, w := range v.valid {
				valid[lo/64+k] = w & full[k]
			}
		} else if valid != nil {
			valid.SetRange(lo, hi)
		}
		faults.NonFinite = faults.NonFinite || !allFinite(values[lo:hi])
	}
	if valid == nil && n < len(values) {
		valid = rowset.NewBitmapOf(len(values), n)
	}
	return valid, faults
}

// evalSelected evaluates the active rows, and puts the results in their places.
func (m *exprMachine) evalSelected(root int32, values []float64, in rowset.RowSet) (rowset.Bitmap, Faults) {
	valid := rowset.NewBitmap(len(values))
	var faults Faults
	var c chunk
	out := m.reg(0)
	for todo := (chunks{in: in}); todo.advance(&c); {
		v := m.eval(root, &c, out, 1) // never a view: rows are gathered
		if v.valid == nil {
			scatter(values, v.vals, c.rows)
			scatterOnes(valid, c.rows)
		} else {
			zeroInvalid(v.vals, v.valid)
			scatter(values, v.vals, c.rows)
			for i, row := range c.rows {
				if v.valid[i/64]>>(uint(i)%64)&1 != 0 {
					valid.Set(int(row))
				} else {
					faults.Null = true
				}
			}
		}
		faults.NonFinite = faults.NonFinite || !allFinite(v.vals)
	}
	return valid, faults
}

func scatter(values, vals []float64, rows []int32) {
	vals = vals[:len(rows)]
	for i, row := range rows {
		values[row] = vals[i]
	}
}

// scatterOnes sets the bits of the rows. Neighbours in a list often share a
// word; it is written when the next row is in another one.
func scatterOnes(valid rowset.Bitmap, rows []int32) {
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
