package expr

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
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

// ParamError says that a request's value of a parameter is at fault. Immutable; any goroutine.
type ParamError struct {
	Param registry.ParamID
	Err   error // of a predicate: wraps ErrNullPattern or ErrBadPattern; of a key template: why it makes no key
}

// Error implements error. It does not name the parameter.
func (e *ParamError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *ParamError) Unwrap() error { return e.Err }

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
	*source
	code       code
	root       int32
	evaluators sync.Pool // of *predEvaluator; only scratch memory
}

// A predEvaluator has room for the result.
type predEvaluator struct {
	evaluator
	hits []uint64 // a bit per active row
}

// Filter returns the active rows of in, in their order, for which p is true. A leaf that can fail
// (bad pattern, list of strings on a non-key) fails only if some row reaches it. The error is the
// *EvalError of the first such row, or rowset.ErrStopped once stop says so. A nil stop never does. The
// list of the result is m's.
func (p *Pred) Filter(stop rowset.Stop, m *rowset.Memory, in rowset.RowSet, params *Params) (rowset.RowSet, error) {
	if in.N == 0 {
		return in, nil
	}
	ev := p.evaluator()
	defer p.evaluators.Put(ev)
	ev.begin(stop, in, params)
	defer ev.end()

	// Bits first, then the list, so that the list gets its exact length.
	count, err := ev.matches(p.root, in)
	if err != nil {
		return rowset.RowSet{}, err
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

// Matches returns for which active rows of in p is true, by position: bit i belongs to the row in.Row(i), and
// bits past the last row are 0. It also returns how many rows these are. Errors are as in Filter.
func (p *Pred) Matches(stop rowset.Stop, in rowset.RowSet, params *Params) (rowset.Bitmap, int, error) {
	if in.N == 0 {
		return nil, 0, nil
	}
	ev := p.evaluator()
	defer p.evaluators.Put(ev)
	ev.begin(stop, in, params)
	defer ev.end()
	count, err := ev.matches(p.root, in)
	if err != nil {
		return nil, 0, err
	}
	return slices.Clone(ev.hits), count, nil
}

// evaluator returns scratch memory. The caller puts it back.
func (p *Pred) evaluator() *predEvaluator {
	if ev, ok := p.evaluators.Get().(*predEvaluator); ok {
		return ev
	}
	return &predEvaluator{evaluator: newEvaluator(p.code)}
}

// matches sets hits for the active rows of in, and returns how many are true.
func (ev *predEvaluator) matches(root int32, in rowset.RowSet) (count int, err error) {
	if ev.failed != nil {
		return 0, ev.failed
	}
	ev.hits = ev.hits[:0]
	var c chunk
	todo := chunks{in: in, stop: ev.stop}
	for todo.advance(&c) {
		all := fullMask(c.n)
		var out mask
		if err := ev.test(root, &c, &all, &out, 0); err != nil {
			if err != rowset.ErrStopped {
				err = ev.firstError(root, &c)
			}
			return 0, err
		}
		hits := out[:c.words()]
		ev.hits = append(ev.hits, hits...)
		count += countOnes(hits)
	}
	if todo.stopped {
		return 0, rowset.ErrStopped
	}
	return count, nil
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
