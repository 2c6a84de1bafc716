package expr

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// What a leaf of a predicate may fail with once a row reaches it. Filter wraps
// them in an *EvalError.
var (
	// ErrListOperand: an in with a list of strings has another lhs than a key_ref.
	ErrListOperand = errors.New("a list of strings needs a key_ref as lhs")
	// ErrNullPattern: the parameter with the pattern is unset, null or no string.
	ErrNullPattern = errors.New("pattern parameter is null, unset or no string")
	// ErrBadPattern: the pattern is not a RE2 regular expression, or it is too large.
	ErrBadPattern = errors.New("bad pattern")
)

// EvalError says which leaf of a predicate failed, and why.
type EvalError struct {
	Path string // from the root of the tree: "a.x"; "" is the root itself
	Err  error  // wraps ErrListOperand, ErrNullPattern or ErrBadPattern
}

// Error implements error: one line.
func (e *EvalError) Error() string {
	if e.Path == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("%s: %v", e.Path, e.Err)
}

// Unwrap returns Err.
func (e *EvalError) Unwrap() error { return e.Err }

// Pred is a compiled predicate. Immutable once built, but for a cache of
// compiled patterns behind a lock; any goroutine.
type Pred struct {
	code     code   // of all expressions
	tests    []test // and, or after their operands
	root     int32
	keys     []registry.KeyID
	params   []registry.ParamID
	machines sync.Pool // of *predMachine; only scratch memory
}

// testOp is a node of a predicate.
type testOp uint8

const (
	testConst     testOp = iota // value
	testAnd                     // tests a and b
	testOr                      // tests a or b
	testCmp                     // expressions a, b compared by cmp
	testIsNull                  // expression a is null
	testInNumbers               // expression a is one of numbers
	testInStrings               // string column key is one of texts
	testRegex                   // string column key matches pattern
	testFail                    // fails with ErrListOperand
)

// A test is a node of a compiled predicate.
type test struct {
	op      testOp
	negate  bool // of leaves: the opposite is meant
	value   bool
	cmp     cmpOp
	a, b    int32
	key     registry.KeyID
	numbers *numberSet
	texts   map[string]struct{}
	pattern *pattern
	path    string // of leaves that may fail
}

// Keys returns the keys that p reads, ascending, registry.IDKey among them if
// it reads the id. Not to be changed.
func (p *Pred) Keys() []registry.KeyID { return p.keys }

// Params returns the parameters that p reads, ascending. Not to be changed.
func (p *Pred) Params() []registry.ParamID { return p.params }

// Filter returns the active rows of in, in their order, for which p is true. A leaf that can fail
// (bad pattern, list of strings on a non-key) fails only if some row reaches it. The error is the
// *EvalError of the first such row, or rowset.ErrStopped once stop says so. A nil stop never does.
func (p *Pred) Filter(stop rowset.Stop, in rowset.RowSet, params *Params) (rowset.RowSet, error) {
	if in.N == 0 {
		return in, nil
	}
	m, _ := p.machines.Get().(*predMachine)
	if m == nil {
		m = &predMachine{machine: newMachine(p.code), tests: p.tests, bound: make([]testBinding, len(p.tests))}
	}
	defer p.machines.Put(m)
	m.begin(stop, in.Batch, params)
	defer m.end()

	// First a bit for each row, then the list: so it is made in its true length.
	m.hits = m.hits[:0]
	count := 0
	var c chunk
	todo := chunks{in: in, stop: stop}
	for todo.advance(&c) {
		all := fullMask(c.n)
		var out mask
		if err := m.test(p.root, &c, &all, &out); err != nil {
			if err != rowset.ErrStopped {
				err = m.firstError(p.root, &c)
			}
			return rowset.RowSet{}, err
		}
		hits := out[:c.words()]
		m.hits = append(m.hits, hits...)
		count += countOnes(hits)
	}
	if todo.stopped {
		return rowset.RowSet{}, rowset.ErrStopped
	}
	switch count {
	case in.N:
		return in, nil
	case 0:
		return rowset.RowSet{Batch: in.Batch}, nil
	}
	rows := make([]int32, count)
	if in.Rows == nil {
		listDense(rows, m.hits)
	} else {
		listSelected(rows, m.hits, in.Rows)
	}
	return rowset.RowSet{Batch: in.Batch, Rows: rows, N: count}, nil
}

// listDense writes the positions of the ones to rows, which has room for
// exactly these.
func listDense(rows []int32, hits []uint64) {
	for k, w := range hits {
		base := int32(k * 64)
		if w == ^uint64(0) {
			for i := range rows[:64] {
				rows[i] = base + int32(i)
			}
			rows = rows[64:]
			continue
		}
		block := rows[:bits.OnesCount64(w)]
		rows = rows[len(block):]
		for i := range block {
			block[i] = base + int32(bits.TrailingZeros64(w))
			w &= w - 1
		}
	}
}

// listSelected writes the elements of from at the positions of the ones to
// rows, which has room for exactly these.
func listSelected(rows []int32, hits []uint64, from []int32) {
	for k, w := range hits {
		source := from[k*64:]
		block := rows[:bits.OnesCount64(w)]
		rows = rows[len(block):]
		for i := range block {
			block[i] = source[bits.TrailingZeros64(w)]
			w &= w - 1
		}
	}
}
