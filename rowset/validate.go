package rowset

import "fmt"

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
	n := b.Len()
	for i := range b.Floats {
		c := &b.Floats[i]
		if i > 0 && b.Floats[i-1].Key >= c.Key {
			return fmt.Errorf("rowset: float column %d is out of order", c.Key)
		}
		if len(c.Values) != n {
			return fmt.Errorf("rowset: float column %d has %d values, the batch has %d rows", c.Key, len(c.Values), n)
		}
		if c.Valid != nil && len(c.Valid) != BitmapWords(n) {
			return fmt.Errorf("rowset: float column %d has %d words of validity for %d rows", c.Key, len(c.Valid), n)
		}
	}
	for i := range b.Strings {
		c := &b.Strings[i]
		if i > 0 && b.Strings[i-1].Key >= c.Key {
			return fmt.Errorf("rowset: string column %d is out of order", c.Key)
		}
		if b.Float(c.Key) != nil {
			return fmt.Errorf("rowset: column %d is both float and string", c.Key)
		}
		if err := c.validate(n); err != nil {
			return err
		}
	}
	return nil
}

func (c *StringColumn) validate(n int) error {
	if len(c.Codes) != n {
		return fmt.Errorf("rowset: string column %d has %d codes, the batch has %d rows", c.Key, len(c.Codes), n)
	}
	if c.Dict == nil {
		return fmt.Errorf("rowset: string column %d has no dictionary", c.Key)
	}
	seen := make(map[string]bool, len(c.Dict.Values))
	for code, s := range c.Dict.Values {
		if seen[s] {
			return fmt.Errorf("rowset: string column %d has %q twice in its dictionary (code %d)", c.Key, s, code)
		}
		seen[s] = true
	}
	for row, code := range c.Codes {
		if code != NullCode && (code < 0 || int(code) >= len(c.Dict.Values)) {
			return fmt.Errorf("rowset: string column %d, row %d: code %d of %d", c.Key, row, code, len(c.Dict.Values))
		}
	}
	return nil
}
