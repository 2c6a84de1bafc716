package rowsettest

import (
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
	switch b.TypeOf(key) {
	case registry.Float:
		v, ok := b.Float(key).Value(row)
		return strconv.FormatFloat(v, 'g', -1, 64), ok
	case registry.String:
		v, ok := b.String(key).Value(row)
		return strconv.Quote(v), ok
	case registry.Int:
		v, ok := b.Int(key).Value(row)
		return strconv.FormatInt(v, 10), ok
	case registry.Bool:
		v, ok := b.Bool(key).Value(row)
		return strconv.FormatBool(v), ok
	case registry.StringSet:
		set, ok := b.Set(key).AppendValues(nil, row)
		for i := range set {
			set[i] = strconv.Quote(set[i])
		}
		return "{" + strings.Join(set, ",") + "}", ok
	}
	return "", false
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
	x, y := a.Batch, b.Batch
	if x.TypeOf(key) != y.TypeOf(key) {
		return false
	}
	switch x.TypeOf(key) {
	case registry.Float:
		bits := func(c *rowset.FloatColumn) func(int) (uint64, bool) {
			return func(row int) (uint64, bool) {
				v, ok := c.Value(row)
				return math.Float64bits(v), ok
			}
		}
		return equalValues(a, b, bits(x.Float(key)), bits(y.Float(key)))
	case registry.String:
		return equalValues(a, b, x.String(key).Value, y.String(key).Value)
	case registry.Int:
		return equalValues(a, b, x.Int(key).Value, y.Int(key).Value)
	case registry.Bool:
		return equalValues(a, b, x.Bool(key).Value, y.Bool(key).Value)
	}
	text := func(batch *rowset.Batch) func(int) (string, bool) {
		return func(row int) (string, bool) { return Field(batch, key, row) }
	}
	return equalValues(a, b, text(x), text(y))
}

// equalValues compares the values of the active rows.
func equalValues[T comparable](a, b rowset.RowSet, x, y func(row int) (T, bool)) bool {
	for i := range a.N {
		v, ok := x(int(a.Row(i)))
		w, also := y(int(b.Row(i)))
		if ok != also || ok && v != w {
			return false
		}
	}
	return true
}
