package builtin

import (
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// numberTypes are the types of columns that tasks compute with.
var numberTypes = []registry.Type{registry.Int, registry.Float}

// groupTypes are the types of columns whose values make rows a group.
var groupTypes = []registry.Type{registry.Int, registry.String, registry.Bool}

// outKeyParam returns the parameter for the float column that a task writes.
func outKeyParam(doc string) plan.ParamSchema {
	return plan.ParamSchema{Name: "out_key", Type: plan.Key, Required: true, Doc: doc,
		Source: plan.SourceRule{KeyTypes: []registry.Type{registry.Float}, Writes: true}}
}

// numbers reads a column of numbers, or the id, row by row of the batch. The zero value is a column of nulls. Immutable; any goroutine.
type numbers struct {
	floats []float64
	ints   []int64
	valid  rowset.Bitmap
}

// numbersOf returns the numbers of a key. As in an expression, a batch without such a column has nulls.
func numbersOf(b *rowset.Batch, key registry.KeyID) numbers {
	if key == registry.IDKey {
		return numbers{ints: b.IDs}
	}
	if c := b.Int(key); c != nil {
		return numbers{ints: c.Values, valid: c.Valid}
	}
	if c := b.Float(key); c != nil {
		return numbers{floats: c.Values, valid: c.Valid}
	}
	return numbers{}
}

// get returns the number of a batch row as a double; false means null.
func (n numbers) get(row int) (float64, bool) {
	switch {
	case n.floats != nil:
		return n.floats[row], n.valid.Get(row)
	case n.ints != nil:
		return float64(n.ints[row]), n.valid.Get(row)
	}
	return 0, false
}

// equal reports whether two batch rows, neither of them null, have the same number. Integers compare exactly.
func (n numbers) equal(a, b int32) bool {
	if n.ints != nil {
		return n.ints[a] == n.ints[b]
	}
	return n.floats[a] == n.floats[b]
}

// scores is a float column under way: one value per batch row, null until it is set. One goroutine at a time.
type scores struct {
	values []float64
	valid  rowset.Bitmap
}

// newScores counts the rows of the column and makes it.
func newScores(c *task.Ctx, b *rowset.Batch) (*scores, error) {
	if err := c.MakeRows(int64(b.Len())); err != nil {
		return nil, err
	}
	s := &scores{values: c.Memory.Floats(b.Len()), valid: rowset.NewBitmap(b.Len())}
	clear(s.values)
	return s, nil
}

func (s *scores) set(row int32, v float64) {
	s.values[row] = v
	s.valid.Set(int(row))
}

func (s *scores) setNull(row int32) {
	s.values[row] = 0
	s.valid.Clear(int(row))
}

// over returns in with the column added or replaced.
func (s *scores) over(in rowset.RowSet, key *registry.Key) rowset.RowSet {
	in.Batch = rowset.With(in.Batch, &rowset.FloatColumn{Key: key.ID, Values: s.values, Valid: s.valid})
	return in
}

// finish is over for a column that is complete. It fails if an active row is null and the key is not nullable.
func (s *scores) finish(in rowset.RowSet, key *registry.Key) (rowset.RowSet, error) {
	set := s.valid.Count(len(s.values)) // of active rows alone
	if nulls := in.Len() - set; nulls > 0 && !key.Nullable {
		return rowset.RowSet{}, task.Invalidf("out_key: the result is null for %d rows, and %s is not nullable", nulls, key.Name)
	}
	if set == len(s.values) {
		s.valid = nil
	}
	return s.over(in, key), nil
}
