package rowset

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/rankd/rankd/registry"
)

// Column is a column of a batch, of one of the kinds below. Each kind holds all code that is specific to its type of
// values. So a new type needs a new kind, and an entry in kinds and in assembly.columnsOf. Code that loops over rows
// looks up the kind once, as Batch.Float does, and reads its slices. Immutable once built; any goroutine.
type Column interface {
	// KeyID returns the key whose values the column has.
	KeyID() registry.KeyID
	// Type returns the type of the values.
	Type() registry.Type
	// Any returns the value of a batch row as a Go value: a float64, string, int64, bool, []string or []float32. A
	// []string is never nil, and is sorted by bytes. A null is nil.
	Any(row int) any
	// AppendJSON appends the value of a batch row as JSON: a double with a fraction or an exponent, a set as the array of its
	// strings, ascending by their bytes, a vector as the array of its numbers. False means that the value is null, and nothing was appended.
	AppendJSON(dst []byte, row int) (_ []byte, ok bool)

	// builder returns a builder of the kind. The column may be a nil pointer.
	builder(m *Memory, key *registry.Key, rows int) Builder
	// rowKeys returns the values of the active rows of rs, to tell rows apart. The slices are m's, or the column's.
	rowKeys(m *Memory, rs RowSet) (rowKeys, error)
	// check checks that the column has n values and a dictionary, if it needs one.
	check(n int) error
	// checkCodes checks that codes are within their dictionary.
	checkCodes() error
	// validate checks the dictionary. It looks at each entry, so it is for tests.
	validate() error
	// bytes returns about how many bytes the values take, with their dictionary.
	bytes() int
	// shares reports whether both columns have their memory in common. with is of the same kind.
	shares(with Column) bool
	// clone returns a copy with its own rows. Dictionaries are shared.
	clone() Column
	// firstChange returns the first of n rows at which the memory of both differs, or -1. was is of the same kind.
	firstChange(was Column, n int) int
}

// kinds has a nil pointer of each kind, in the order in which batches have columns and answers show them. Immutable.
var kinds = [...]Column{(*FloatColumn)(nil), (*StringColumn)(nil), (*IntColumn)(nil), (*BoolColumn)(nil), (*SetColumn)(nil), (*VectorColumn)(nil)}

// ranks has the position of each type in kinds, from 1, or 0 if no column has the type. Immutable.
var ranks = func() (ranks [256]uint8) {
	for i, kind := range kinds {
		ranks[kind.Type()] = uint8(i) + 1
	}
	return ranks
}()

// compareColumns orders columns by kind, and those of one kind by key.
func compareColumns(a, b Column) int {
	if s, t := a.Type(), b.Type(); s != t {
		return cmp.Compare(ranks[s], ranks[t])
	}
	return cmp.Compare(a.KeyID(), b.KeyID())
}

// sortColumns sorts columns as a batch has them.
func sortColumns(columns []Column) {
	if len(columns) > 1 {
		slices.SortFunc(columns, compareColumns)
	}
}

// sameField reports whether two columns have the same key and type.
func sameField(a, b Column) bool { return a == b || a.KeyID() == b.KeyID() && a.Type() == b.Type() }

// columnsOf appends to dst the columns with the keys of these, which are of one kind. Each kind has one block for all
// of its columns. The calls are static, so that the compiler can keep a on the stack.
func (a *assembly) columnsOf(m *Memory, like []Column, oneString []StringColumn, dst []Column) []Column {
	switch like[0].(type) {
	case *FloatColumn:
		block := make([]FloatColumn, len(like))
		for i := range block {
			a.floats(m, like[i].KeyID(), &block[i])
			dst = append(dst, &block[i])
		}
	case *StringColumn:
		block := oneString
		if len(like) != len(block) {
			block = make([]StringColumn, len(like))
		}
		for i := range block {
			a.strings(m, like[i].KeyID(), &block[i])
			dst = append(dst, &block[i])
		}
	case *IntColumn:
		block := make([]IntColumn, len(like))
		for i := range block {
			a.ints(m, like[i].KeyID(), &block[i])
			dst = append(dst, &block[i])
		}
	case *BoolColumn:
		block := make([]BoolColumn, len(like))
		for i := range block {
			a.bools(like[i].KeyID(), &block[i])
			dst = append(dst, &block[i])
		}
	case *SetColumn:
		block := make([]SetColumn, len(like))
		for i := range block {
			a.sets(m, like[i].KeyID(), &block[i])
			dst = append(dst, &block[i])
		}
	case *VectorColumn:
		block := make([]VectorColumn, len(like))
		for i := range block {
			a.vectors(like[i].(*VectorColumn), &block[i])
			dst = append(dst, &block[i])
		}
	}
	return dst
}

// Builder builds a column row by row. All values from outside enter columns through it: texts of Redis, documents of
// services, defaults, and the values of tests. One goroutine at a time.
type Builder interface {
	// AppendText adds a row with the value of a text from outside, such as a field of a Redis hash. False means that
	// the text is not such a value, and that nothing was appended. The caller may reuse the text.
	AppendText(text []byte) (ok bool)
	// AppendJSON is AppendText for a value of a JSON document whose syntax was checked, without blanks around it.
	AppendJSON(value []byte) (ok bool)
	// AppendAny adds a row with a value as Column.Any gives it; nil adds a null. Columns of numbers also take an int. False
	// means that the value is of another type, and that nothing was appended.
	AppendAny(value any) (ok bool)
	// AppendLast appends the value of the last row, which is not null, to dst: as AppendBinary takes it.
	AppendLast(dst []byte) []byte
	// AppendBinary adds a row with the value at the start of src, as AppendLast has written it, and returns what follows. The
	// caller may reuse src.
	AppendBinary(src []byte) (rest []byte)
	// AppendNull adds a null row.
	AppendNull()
	// Len returns the number of rows so far.
	Len() int
	// Column returns the column. It is the last call on the builder.
	Column() Column
}

// NewBuilder returns a builder of a key's column, or nil if no column has the key's type. It has room for so many rows, and
// grows if there are more. Long slices are m's.
func NewBuilder(m *Memory, key *registry.Key, rows int) Builder {
	if ranks[key.Type] == 0 {
		return nil
	}
	return kinds[ranks[key.Type]-1].builder(m, key, rows)
}

// Types returns the types of columns, ascending.
func Types() []registry.Type {
	types := make([]registry.Type, len(kinds))
	for i, kind := range kinds {
		types[i] = kind.Type()
	}
	slices.Sort(types)
	return types
}

// HasValue reports whether a batch row of a column has a value that is not null, as Column.Any returns it. It allocates
// for sets and vectors alone.
func HasValue(column Column, row int, value any) bool {
	switch c := column.(type) {
	case *FloatColumn:
		v, ok := c.Value(row)
		return ok && v == value
	case *IntColumn:
		v, ok := c.Value(row)
		return ok && v == value
	case *BoolColumn:
		v, ok := c.Value(row)
		return ok && v == value
	case *StringColumn:
		v, ok := c.Value(row)
		return ok && v == value
	}
	return value != nil && reflect.DeepEqual(column.Any(row), value)
}
