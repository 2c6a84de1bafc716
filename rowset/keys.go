package rowset

import (
	"fmt"

	"github.com/rankd/rankd/registry"
)

// KeyTypeError says that rows cannot be told apart by a column. Immutable.
type KeyTypeError struct {
	Key  registry.KeyID
	Type registry.Type // of the column
}

// Error implements error.
func (e *KeyTypeError) Error() string {
	return fmt.Sprintf("rows cannot be compared by key %d: its column has type %s", e.Key, e.Type)
}

// rowKeys are the keys of the active rows, by position. Two rows of one row set have the same key if
// and only if their integers are equal. A null has no key. Immutable once built; any goroutine.
type rowKeys struct {
	values []int64
	valid  Bitmap // nil: no row is without a key
}

// keysOf returns the keys of the active rows by a column or the id. A column that the batch lacks is
// null in all rows. The error is a *KeyTypeError. The slices are m's, or the batch's.
func keysOf(m *Memory, rs RowSet, key registry.KeyID) (rowKeys, error) {
	if rs.Batch == nil {
		return rowKeys{}, nil
	}
	b := rs.Batch
	c := b.Column(key)
	switch {
	case key == registry.IDKey:
		return rowKeys{values: gatherInts(m, rs, b.IDs)}, nil
	case c != nil:
		return c.rowKeys(m, rs)
	}
	return rowKeys{make([]int64, rs.N), NewBitmap(rs.N)}, nil
}

// gatherInts returns the values of the active rows, by position: a view if the rows are a prefix.
func gatherInts(m *Memory, rs RowSet, column []int64) []int64 {
	if rs.Rows == nil {
		return column[:rs.N]
	}
	values := m.IDs(rs.N)
	gather(values, column, rs.Rows, 0)
	return values
}

// mapInts returns the value that of gives for each active row, by position.
func mapInts(m *Memory, rs RowSet, of func(row int32) int64) []int64 {
	values := m.IDs(rs.N)
	for pos := range values {
		values[pos] = of(rs.Row(pos))
	}
	return values
}

// validAt returns the validity of the active rows, by position.
func validAt(rs RowSet, valid Bitmap) Bitmap {
	if valid == nil || rs.Rows == nil {
		return valid
	}
	of := NewBitmap(rs.N)
	gatherBits(of, 0, valid, rs, false)
	return of
}

// codeValidity returns which active rows have a code, by position.
func codeValidity(rs RowSet, codes []int32) Bitmap {
	valid := NewBitmap(rs.N)
	for pos := range rs.N {
		if codes[rs.Row(pos)] != NullCode {
			valid.Set(pos)
		}
	}
	return valid
}
