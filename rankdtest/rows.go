package rankdtest

import (
	"fmt"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// Rows returns rows with these ids and no columns, all active.
func Rows(ids ...int64) rowset.RowSet { return rowset.Dense(&rowset.Batch{IDs: ids}) }

// Inputs returns the row sets as a slice, for Case.Inputs.
func Inputs(rows ...rowset.RowSet) []rowset.RowSet { return rows }

// WithFloats returns rows with a float column added or replaced. There is one value per active
// row: a float64, an int, or nil for null. Anything else panics.
func WithFloats(rows rowset.RowSet, key registry.KeyID, values ...any) rowset.RowSet {
	b := rowset.NewFloatBuilder(key, len(values))
	for _, value := range values {
		switch v := value.(type) {
		case nil:
			b.AppendNull()
		case float64:
			b.Append(v)
		case int:
			b.Append(float64(v))
		default:
			panic(fmt.Sprintf("rankdtest: a float column cannot hold a %T", value))
		}
	}
	return rowset.ScatterFloats(rows, b.Column())
}

// WithStrings returns rows with a string column added or replaced. There is one value per
// active row: a string, or nil for null. Anything else panics.
func WithStrings(rows rowset.RowSet, key registry.KeyID, values ...any) rowset.RowSet {
	b := rowset.NewStringBuilder(key, len(values))
	for _, value := range values {
		switch v := value.(type) {
		case nil:
			b.AppendNull()
		case string:
			b.Append([]byte(v))
		default:
			panic(fmt.Sprintf("rankdtest: a string column cannot hold a %T", value))
		}
	}
	return rowset.ScatterStrings(rows, b.Column())
}

// Select returns the batch of rows with these batch rows active, in this order.
func Select(rows rowset.RowSet, batchRows ...int32) rowset.RowSet {
	return rowset.RowSet{Batch: rows.Batch, Rows: batchRows, N: len(batchRows)}
}

// IDs returns the ids of the active rows, in order.
func IDs(rows rowset.RowSet) []int64 {
	ids := make([]int64, rows.Len())
	for i := range ids {
		ids[i] = rows.ID(i)
	}
	return ids
}

// Values returns a column's values of the active rows, in order: each a float64, a string, or
// nil for null. It returns nil if there is no such column.
func Values(rows rowset.RowSet, key registry.KeyID) []any {
	if rows.Batch == nil {
		return nil
	}
	floats, strings := rows.Batch.Float(key), rows.Batch.String(key)
	if floats == nil && strings == nil {
		return nil
	}
	values := make([]any, rows.Len())
	for i := range values {
		row := int(rows.Row(i))
		if strings != nil {
			if s, ok := strings.Value(row); ok {
				values[i] = s
			}
		} else if floats.Valid.Get(row) {
			values[i] = floats.Values[row]
		}
	}
	return values
}
