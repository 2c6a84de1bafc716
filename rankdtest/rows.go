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
	return rowset.Scatter(nil, rows, rowset.Columns{Floats: []rowset.FloatColumn{b.Column()}})
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
	return rowset.Scatter(nil, rows, rowset.Columns{Strings: []rowset.StringColumn{b.Column()}})
}

// WithInts returns rows with an int column added or replaced. There is one value per active row: an
// int64, an int, or nil for null. Anything else panics.
func WithInts(rows rowset.RowSet, key registry.KeyID, values ...any) rowset.RowSet {
	b := rowset.NewIntBuilder(key, len(values))
	for _, value := range values {
		switch v := value.(type) {
		case nil:
			b.AppendNull()
		case int64:
			b.Append(v)
		case int:
			b.Append(int64(v))
		default:
			panic(fmt.Sprintf("rankdtest: an int column cannot hold a %T", value))
		}
	}
	return rowset.Scatter(nil, rows, rowset.Columns{Ints: []rowset.IntColumn{b.Column()}})
}

// WithBools returns rows with a bool column added or replaced. There is one value per active row: a
// bool, or nil for null. Anything else panics.
func WithBools(rows rowset.RowSet, key registry.KeyID, values ...any) rowset.RowSet {
	b := rowset.NewBoolBuilder(key, len(values))
	for _, value := range values {
		switch v := value.(type) {
		case nil:
			b.AppendNull()
		case bool:
			b.Append(v)
		default:
			panic(fmt.Sprintf("rankdtest: a bool column cannot hold a %T", value))
		}
	}
	return rowset.Scatter(nil, rows, rowset.Columns{Bools: []rowset.BoolColumn{b.Column()}})
}

// WithSets returns rows with a column of string sets added or replaced. There is one value per active
// row: a []string, or nil for null. Anything else panics.
func WithSets(rows rowset.RowSet, key registry.KeyID, values ...any) rowset.RowSet {
	b := rowset.NewSetBuilder(key, len(values))
	for _, value := range values {
		switch v := value.(type) {
		case nil:
			b.AppendNull()
		case []string:
			for _, member := range v {
				b.Add([]byte(member))
			}
			b.Append()
		default:
			panic(fmt.Sprintf("rankdtest: a column of sets cannot hold a %T", value))
		}
	}
	return rowset.Scatter(nil, rows, rowset.Columns{Sets: []rowset.SetColumn{b.Column()}})
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
	b := rows.Batch
	switch b.TypeOf(key) {
	case registry.Float:
		return valuesOf(rows, b.Float(key).Value)
	case registry.String:
		return valuesOf(rows, b.String(key).Value)
	case registry.Int:
		return valuesOf(rows, b.Int(key).Value)
	case registry.Bool:
		return valuesOf(rows, b.Bool(key).Value)
	case registry.StringSet:
		return valuesOf(rows, func(row int) ([]string, bool) { return b.Set(key).AppendValues([]string{}, row) })
	}
	return nil
}

func valuesOf[T any](rows rowset.RowSet, value func(row int) (T, bool)) []any {
	values := make([]any, rows.Len())
	for i := range values {
		if v, ok := value(int(rows.Row(i))); ok {
			values[i] = v
		}
	}
	return values
}
