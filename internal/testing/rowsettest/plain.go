package rowsettest

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// Row is the plain form of a row, which tests compare columns with: its id, and its non-null values as text
// by key. Equal rows are equal values of Go. Immutable; any goroutine.
type Row struct {
	ID     int64
	Fields string // "2001=0.5;3001=\"DE\";", ascending by key
}

// PlainRows reads the active rows one by one.
func PlainRows(rs rowset.RowSet) []Row {
	rows := []Row{}
	if rs.Batch == nil {
		return rows
	}
	keys := rs.Batch.AppendKeys(nil)
	for i := range rs.N {
		var fields strings.Builder
		for _, key := range keys {
			if text, ok := Field(rs.Batch, key, int(rs.Row(i))); ok {
				fields.WriteString(strconv.Itoa(int(key)) + "=" + text + ";")
			}
		}
		rows = append(rows, Row{rs.ID(i), fields.String()})
	}
	return rows
}

// Field returns the value of a column at a row of the batch as text, or false if it is null.
func Field(b *rowset.Batch, key registry.KeyID, row int) (text string, ok bool) {
	c := b.Column(key)
	if c == nil {
		return "", false
	}
	switch v := c.Any(row).(type) {
	case nil:
		return "", false
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), true
	case []string:
		for i := range v {
			v[i] = strconv.Quote(v[i])
		}
		return "{" + strings.Join(v, ",") + "}", true
	default:
		return fmt.Sprintf("%#v", v), true
	}
}

// Equal reports whether two row sets have the same columns and the same active rows: ids in the same order,
// and the same value or null in each column, doubles bit by bit.
func Equal(a, b rowset.RowSet) bool {
	if a.N != b.N || (a.Batch == nil) != (b.Batch == nil) {
		return false
	}
	if a.Batch == nil {
		return true
	}
	for i := range a.N {
		if a.ID(i) != b.ID(i) {
			return false
		}
	}
	keys := a.Batch.AppendKeys(nil)
	return slices.Equal(keys, b.Batch.AppendKeys(nil)) &&
		!slices.ContainsFunc(keys, func(key registry.KeyID) bool { return !equalColumns(a, b, key) })
}

func equalColumns(a, b rowset.RowSet, key registry.KeyID) bool {
	x, y := a.Batch.Column(key), b.Batch.Column(key)
	if x.Type() != y.Type() {
		return false
	}
	for i := range a.N {
		if !equalValues(x.Any(int(a.Row(i))), y.Any(int(b.Row(i)))) {
			return false
		}
	}
	return true
}

// equalValues compares values as Column.Any gives them.
func equalValues(a, b any) bool {
	switch x := a.(type) {
	case float64:
		y, ok := b.(float64)
		return ok && math.Float64bits(x) == math.Float64bits(y)
	case []string:
		y, ok := b.([]string)
		return ok && slices.Equal(x, y)
	case []float32:
		y, ok := b.([]float32)
		return ok && slices.Equal(x, y)
	}
	return a == b
}
