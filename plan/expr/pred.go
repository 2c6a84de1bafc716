package expr

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// The errors with which a leaf of a predicate may fail once a row reaches it. Filter
// wraps them in an *EvalError.
var (
	// ErrListOperand says that the lhs of an in with a list of strings is not a key_ref.
	ErrListOperand = errors.New("a list of strings needs a key_ref as lhs")
	// ErrNullPattern says that the parameter with the pattern is unset, null or not a string.
	ErrNullPattern = errors.New("pattern parameter is null, unset or no string")
	// ErrBadPattern says that the pattern is not a RE2 regular expression or is too large.
	ErrBadPattern = errors.New("bad pattern")
)

// EvalError says which part of an expression or a predicate failed, and why. Immutable; any
// goroutine.
type EvalError struct {
	Path string // from the root of the tree: "a.x"; "" is the root itself
	Err  error  // of a predicate: wraps ErrListOperand, ErrNullPattern or ErrBadPattern
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

// Pred is a compiled predicate. Immutable once built, except a cache of compiled
// patterns behind a lock. Any goroutine.
type Pred struct {
	program    program // of all expressions
	tests      []test  // operands come before their and, or
	root       int32
	keys       []registry.KeyID
	params     []registry.ParamID
	evaluators sync.Pool // of *predEvaluator; only scratch memory
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
	negate  bool // leaves only: the value is the opposite
	value   bool
	cmp     cmpOp
	a, b    int32
	key     registry.KeyID
	numbers *numberSet
	texts   map[string]struct{}
	pattern *pattern
	path    string // leaves that may fail only: the place in the tree
}

// Keys returns the keys that p reads, ascending. registry.IDKey stands for the id.
// Callers must not change the slice.
func (p *Pred) Keys() []registry.KeyID { return p.keys }

// Params returns the parameters that p reads, ascending. Callers must not change the slice.
func (p *Pred) Params() []registry.ParamID { return p.params }

// Filter returns the active rows of in, in their order, for which p is true. A leaf that can fail
// (bad pattern, list of strings on a non-key) fails only if some row reaches it. The error is the
// *EvalError of the first such row, or rowset.ErrStopped once stop says so. A nil stop never does. The
// list of the result is m's.
func (p *Pred) Filter(stop rowset.Stop, m *rowset.Memory, in rowset.RowSet, params *Params) (rowset.RowSet, error) {
	if in.N == 0 {
		return in, nil
	}
	ev, _ := p.evaluators.Get().(*predEvaluator)
	if ev == nil {
		ev = &predEvaluator{evaluator: newEvaluator(p.program), tests: p.tests, bound: make([]testBinding, len(p.tests))}
	}
	defer p.evaluators.Put(ev)
	ev.begin(stop, in.Batch, params)
	defer ev.end()

	// Bits first, then the list, so that the list gets its exact length.
	ev.hits = ev.hits[:0]
	count := 0
	var c chunk
	todo := chunks{in: in, stop: stop}
	for todo.advance(&c) {
		all := fullMask(c.n)
		var out mask
		if err := ev.test(p.root, &c, &all, &out); err != nil {
			if err != rowset.ErrStopped {
				err = ev.firstError(p.root, &c)
			}
			return rowset.RowSet{}, err
		}
		hits := out[:c.words()]
		ev.hits = append(ev.hits, hits...)
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
	rows := m.Rows(count)
	if in.Rows == nil {
		listDense(rows, ev.hits)
	} else {
		listSelected(rows, ev.hits, in.Rows)
	}
	return rowset.RowSet{Batch: in.Batch, Rows: rows, N: count}, nil
}

// listDense writes the positions of the ones to rows, which has exactly that length.
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

// listSelected writes the elements of from at the positions of the ones to rows, which
// has exactly that length.
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
