package rowset

import (
	"fmt"

	"github.com/rankd/rankd/internal/errtext"
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
	for _, c := range b.columns {
		if err := c.validate(); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dict) validate(c Column) error {
	seen := make(map[string]bool, len(d.Values))
	for code, s := range d.Values {
		if seen[s] {
			return columnErrorf(c, "has %s twice in its dictionary (code %d)", errtext.Quote(s), code)
		}
		seen[s] = true
	}
	return nil
}

func (d *SetDict) validate(c Column) error {
	for i := range d.Len() {
		for k, code := range d.Set(i) {
			if k > 0 && d.Set(i)[k-1] >= code {
				return columnErrorf(c, "has a set (%d) whose members do not ascend", i)
			}
		}
	}
	return d.Strings.validate(c)
}

// columnErrorf returns an error about a column.
func columnErrorf(c Column, format string, args ...any) error {
	return fmt.Errorf("rowset: %s column %d %s", c.Type(), c.KeyID(), fmt.Sprintf(format, args...))
}

// Check checks what readers of a batch rely on: columns in order, each key once, as many values as rows,
// and codes within their dictionaries. It does not look at columns that b shares with from, which may
// be nil.
func (b *Batch) Check(from *Batch) error {
	if err := b.checkKeys(); err != nil {
		return err
	}
	for _, c := range b.columns {
		if err := c.check(b.Len()); err != nil {
			return err
		}
	}
	for _, c := range b.columns {
		if from != nil && SharesColumn(from, b, c.KeyID()) {
			continue
		}
		if err := c.checkCodes(); err != nil {
			return err
		}
	}
	return nil
}

// checkKeys checks that the columns are in order, and that no two have one key.
func (b *Batch) checkKeys() error {
	for i := 1; i < len(b.columns); i++ {
		if compareColumns(b.columns[i-1], b.columns[i]) >= 0 {
			return columnErrorf(b.columns[i], "is out of order")
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

func checkLength(c Column, values, n int, valid Bitmap) error {
	if values != n {
		return columnErrorf(c, "has %d values for %d rows", values, n)
	}
	if valid != nil && len(valid) != BitmapWords(n) {
		return columnErrorf(c, "has %d words of validity for %d rows", len(valid), n)
	}
	return nil
}

func checkCodes(c Column, codes []int32, n int) error {
	for row, code := range codes {
		// NullCode is -1: one unsigned comparison covers it and all codes.
		if uint32(code+1) > uint32(n) {
			return fmt.Errorf("rowset: %s column %d, row %d: code %d of %d", c.Type(), c.KeyID(), row, code, n)
		}
	}
	return nil
}

// SharesColumn reports whether a and b have the memory of that column in common. It does not read the values.
// It is true if b lacks the column.
func SharesColumn(a, b *Batch, key registry.KeyID) bool {
	to := b.Column(key)
	if to == nil {
		return true
	}
	from := a.Column(key)
	return from != nil && (from == to || from.Type() == to.Type() && from.shares(to))
}

// sameSlice reports whether a and b are the same memory.
func sameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
