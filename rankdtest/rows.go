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
	return with(rows, registry.Float, key, values)
}

// WithStrings returns rows with a string column added or replaced. There is one value per
// active row: a string, or nil for null. Anything else panics.
func WithStrings(rows rowset.RowSet, key registry.KeyID, values ...any) rowset.RowSet {
	return with(rows, registry.String, key, values)
}

// WithInts returns rows with an int column added or replaced. There is one value per active row: an
// int64, an int, or nil for null. Anything else panics.
func WithInts(rows rowset.RowSet, key registry.KeyID, values ...any) rowset.RowSet {
	return with(rows, registry.Int, key, values)
}

// WithBools returns rows with a bool column added or replaced. There is one value per active row: a
// bool, or nil for null. Anything else panics.
func WithBools(rows rowset.RowSet, key registry.KeyID, values ...any) rowset.RowSet {
	return with(rows, registry.Bool, key, values)
}

// WithSets returns rows with a column of string sets added or replaced. There is one value per active
// row: a []string, or nil for null. Anything else panics.
func WithSets(rows rowset.RowSet, key registry.KeyID, values ...any) rowset.RowSet {
	return with(rows, registry.StringSet, key, values)
}

// WithVectors returns rows with a column of vectors added or replaced. There is one value per active row: a []float32 or a []float64 of dims
// finite numbers, or nil for null. Anything else panics.
func WithVectors(rows rowset.RowSet, key registry.KeyID, dims int, values ...any) rowset.RowSet {
	return withColumn(rows, &registry.Key{ID: key, Type: registry.Vector, Dims: dims}, values)
}

// with returns rows with a column of that type added or replaced.
func with(rows rowset.RowSet, t registry.Type, key registry.KeyID, values []any) rowset.RowSet {
	return withColumn(rows, &registry.Key{ID: key, Type: t}, values)
}

// withColumn returns rows with the column of a key added or replaced.
func withColumn(rows rowset.RowSet, key *registry.Key, values []any) rowset.RowSet {
	b := rowset.NewBuilder(nil, key, len(values))
	for _, value := range values {
		if !b.AppendAny(value) {
			panic(fmt.Sprintf("rankdtest: a column of type %s cannot hold a %T", key.TypeName(), value))
		}
	}
	return rowset.Scatter(nil, rows, b.Column())
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

// Values returns a column's values of the active rows, in order: each a float64, a string, an int64, a
// bool, a []string ascending by its bytes, or nil for null. It returns nil if there is no such column.
func Values(rows rowset.RowSet, key registry.KeyID) []any {
	if rows.Batch == nil {
		return nil
	}
	c := rows.Batch.Column(key)
	if c == nil {
		return nil
	}
	values := make([]any, rows.Len())
	for i := range values {
		values[i] = c.Any(int(rows.Row(i)))
	}
	return values
}
