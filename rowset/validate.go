package rowset

import (
	"fmt"
	"slices"

	"github.com/rankd/rankd/internal/excerpt"
	"github.com/rankd/rankd/registry"
)

// Validate checks every invariant of the row set and its batch, and returns an error
// for the first that is broken. It looks at every row, so it is for tests.
func (r RowSet) Validate() error {
	if r.Batch == nil {
		if r.N != 0 || r.Rows != nil {
			return fmt.Errorf("rowset: %d active rows without a batch", r.N)
		}
		return nil
	}
	if err := r.Batch.Validate(); err != nil {
		return err
	}
	n := r.Batch.Len()
	if r.N < 0 || r.N > n {
		return fmt.Errorf("rowset: %d active rows of %d", r.N, n)
	}
	if r.Rows == nil {
		return nil
	}
	if len(r.Rows) != r.N {
		return fmt.Errorf("rowset: N is %d, but %d rows are listed", r.N, len(r.Rows))
	}
	seen := NewBitmap(n)
	for i, row := range r.Rows {
		if row < 0 || int(row) >= n {
			return fmt.Errorf("rowset: Rows[%d] is %d, the batch has %d rows", i, row, n)
		}
		if seen.Get(int(row)) {
			return fmt.Errorf("rowset: Rows[%d] lists row %d again", i, row)
		}
		seen.Set(int(row))
	}
	return nil
}

// Validate checks every invariant of the batch, and returns an error for the first
// that is broken. It looks at every row, so it is for tests.
func (b *Batch) Validate() error {
	if err := b.Check(nil); err != nil {
		return err
	}
	for i := range b.Strings {
		if err := b.Strings[i].Dict.validate(); err != nil {
			return fmt.Errorf("rowset: string column %d %w", b.Strings[i].Key, err)
		}
	}
	sets := b.Columns().Sets
	for i := range sets {
		if err := sets[i].Dict.validate(); err != nil {
			return fmt.Errorf("rowset: string_set column %d %w", sets[i].Key, err)
		}
	}
	return nil
}

func (d *Dict) validate() error {
	seen := make(map[string]bool, len(d.Values))
	for code, s := range d.Values {
		if seen[s] {
			return fmt.Errorf("has %s twice in its dictionary (code %d)", excerpt.Quote(s), code)
		}
		seen[s] = true
	}
	return nil
}

func (d *SetDict) validate() error {
	for i := range d.Len() {
		for k, code := range d.Set(i) {
			if k > 0 && d.Set(i)[k-1] >= code {
				return fmt.Errorf("has a set (%d) whose members do not ascend", i)
			}
		}
	}
	return d.Strings.validate()
}

// Check checks what readers of a batch rely on: columns in order, each key once, as many values as rows,
// and codes within their dictionaries. It does not look at columns that b shares with from, which may
// be nil.
func (b *Batch) Check(from *Batch) error {
	if err := b.checkKeys(); err != nil {
		return err
	}
	if err := b.checkLengths(b.Len()); err != nil {
		return err
	}
	for i := range b.Strings {
		c := &b.Strings[i]
		if from != nil && SharesColumn(from, b, c.Key) {
			continue
		}
		if err := checkCodes(registry.String, c.Key, c.Codes, len(c.Dict.Values)); err != nil {
			return err
		}
	}
	sets := b.Columns().Sets
	for i := range sets {
		c := &sets[i]
		if from != nil && SharesColumn(from, b, c.Key) {
			continue
		}
		if err := checkCodes(registry.StringSet, c.Key, c.Codes, c.Dict.Len()); err != nil {
			return err
		}
		if !c.Dict.sound() {
			return fmt.Errorf("rowset: string_set column %d has a set outside of its dictionary", c.Key)
		}
	}
	return nil
}

// checkKeys checks that each list ascends, and that no key is in two of them.
func (b *Batch) checkKeys() error {
	c := b.Columns()
	for _, err := range [...]error{
		checkAscending(registry.Float, c.Floats), checkAscending(registry.String, c.Strings), checkAscending(registry.Int, c.Ints),
		checkAscending(registry.Bool, c.Bools), checkAscending(registry.StringSet, c.Sets),
	} {
		if err != nil {
			return err
		}
	}
	var few [16]registry.KeyID
	keys := b.AppendKeys(few[:0])
	for i := 1; i < len(keys); i++ {
		if keys[i-1] == keys[i] {
			return fmt.Errorf("rowset: column %d is there with two types", keys[i])
		}
	}
	return nil
}

func checkAscending[C column](t registry.Type, columns []C) error {
	for i := 1; i < len(columns); i++ {
		if columns[i-1].key() >= columns[i].key() {
			return fmt.Errorf("rowset: %s column %d is out of order", t, columns[i].key())
		}
	}
	return nil
}

// checkLengths checks that each column has n values and a dictionary, if it needs one.
func (b *Batch) checkLengths(n int) error {
	c, words := b.Columns(), BitmapWords(n)
	for i := range c.Floats {
		c := &c.Floats[i]
		if err := checkLength(registry.Float, c.Key, len(c.Values), n, c.Valid); err != nil {
			return err
		}
	}
	for i := range c.Ints {
		c := &c.Ints[i]
		if err := checkLength(registry.Int, c.Key, len(c.Values), n, c.Valid); err != nil {
			return err
		}
	}
	for i := range c.Bools {
		c := &c.Bools[i]
		if len(c.Values) != words {
			return fmt.Errorf("rowset: bool column %d has %d words of values for %d rows", c.Key, len(c.Values), n)
		}
		if err := checkLength(registry.Bool, c.Key, n, n, c.Valid); err != nil {
			return err
		}
	}
	for i := range c.Strings {
		c := &c.Strings[i]
		if err := checkLength(registry.String, c.Key, len(c.Codes), n, nil); err != nil {
			return err
		}
		if c.Dict == nil {
			return fmt.Errorf("rowset: string column %d has no dictionary", c.Key)
		}
	}
	for i := range c.Sets {
		c := &c.Sets[i]
		if err := checkLength(registry.StringSet, c.Key, len(c.Codes), n, nil); err != nil {
			return err
		}
		if c.Dict == nil || c.Dict.Strings == nil {
			return fmt.Errorf("rowset: string_set column %d has no dictionary", c.Key)
		}
	}
	return nil
}

func checkLength(t registry.Type, key registry.KeyID, values, n int, valid Bitmap) error {
	if values != n {
		return fmt.Errorf("rowset: %s column %d has %d values for %d rows", t, key, values, n)
	}
	if valid != nil && len(valid) != BitmapWords(n) {
		return fmt.Errorf("rowset: %s column %d has %d words of validity for %d rows", t, key, len(valid), n)
	}
	return nil
}

func checkCodes(t registry.Type, key registry.KeyID, codes []int32, n int) error {
	for row, code := range codes {
		// NullCode is -1: one unsigned comparison covers it and all codes.
		if uint32(code+1) > uint32(n) {
			return fmt.Errorf("rowset: %s column %d, row %d: code %d of %d", t, key, row, code, n)
		}
	}
	return nil
}

// sound reports whether the sets are parts of the members, and the members codes of strings.
func (d *SetDict) sound() bool {
	last := int32(0)
	for _, offset := range d.Offsets {
		if offset < last || int(offset) > len(d.Members) {
			return false
		}
		last = offset
	}
	outside := func(code int32) bool { return uint32(code) >= uint32(len(d.Strings.Values)) }
	return !slices.ContainsFunc(d.Members, outside)
}

// SharesColumn reports whether a and b have the memory of that column in common. It does not read the values.
// It is true if b lacks the column.
func SharesColumn(a, b *Batch, key registry.KeyID) bool {
	switch b.TypeOf(key) {
	case registry.Float:
		from, to := a.Float(key), b.Float(key)
		return from != nil && sameSlice(from.Values, to.Values) && sameSlice(from.Valid, to.Valid)
	case registry.Int:
		from, to := a.Int(key), b.Int(key)
		return from != nil && sameSlice(from.Values, to.Values) && sameSlice(from.Valid, to.Valid)
	case registry.Bool:
		from, to := a.Bool(key), b.Bool(key)
		return from != nil && sameSlice(from.Values, to.Values) && sameSlice(from.Valid, to.Valid)
	case registry.String:
		from, to := a.String(key), b.String(key)
		return from != nil && sameSlice(from.Codes, to.Codes) && from.Dict == to.Dict
	case registry.StringSet:
		from, to := a.Set(key), b.Set(key)
		return from != nil && sameSlice(from.Codes, to.Codes) && from.Dict == to.Dict
	}
	return true
}

// sameSlice reports whether a and b are the same memory.
func sameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
