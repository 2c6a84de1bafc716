package rowset

import "github.com/rankd/rankd/registry"

// A Side is a row set and the column, or the id, by which Match compares its rows. Immutable; any goroutine.
type Side struct {
	Rows RowSet
	Key  registry.KeyID
}

// Match returns, by position of left, the batch row of the first active row of right with an equal
// key, or −1. A null equals nothing, and neither does a column that a batch lacks.
//
// The error is ErrStopped once stop says so, or a *KeyTypeError if the columns have different types.
// The slice is m's.
func Match(stop Stop, m *Memory, left, right Side) ([]int32, error) {
	rowOf := m.Rows(left.Rows.N)
	for pos := range rowOf {
		rowOf[pos] = -1
	}
	if left.isNull() || right.isNull() {
		return rowOf, nil
	}
	if left.keyType() != right.keyType() {
		return nil, &KeyTypeError{Key: right.Key, Type: right.keyType()}
	}
	rightKeys, err := keysOf(m, right.Rows, right.Key)
	if err != nil {
		return nil, err
	}
	var leftKeys rowKeys
	if a, b := left.Rows.Batch.String(left.Key), right.Rows.Batch.String(right.Key); a != nil && a.Dict != b.Dict {
		leftKeys = translate(m, left.Rows, a, b.Dict, rightKeys)
	} else if leftKeys, err = keysOf(m, left.Rows, left.Key); err != nil {
		return nil, err
	}
	if err := match(stop, m, leftKeys, rightKeys, rowOf); err != nil {
		return nil, err
	}
	for pos, first := range rowOf {
		if first >= 0 {
			rowOf[pos] = right.Rows.Row(int(first))
		}
	}
	return rowOf, nil
}

// isNull reports whether no row of the side has a key.
func (s Side) isNull() bool { return s.Rows.N == 0 || !s.Rows.Batch.Has(s.Key) }

// keyType returns the type of the side's keys.
func (s Side) keyType() registry.Type {
	if s.Key == registry.IDKey {
		return registry.Int
	}
	return s.Rows.Batch.TypeOf(s.Key)
}

// match fills rowOf: for each position of left the first position of right that has its key, or −1.
func match(stop Stop, m *Memory, left, right rowKeys, rowOf []int32) error {
	table := newKeyTable(m, right.values, len(right.values))
	for pos, key := range right.values {
		if pos%stopRows == 0 && stop != nil && stop.Cancelled() {
			return ErrStopped
		}
		if right.valid.Get(pos) {
			if first, slot := table.find(key); first < 0 {
				table.put(slot, int32(pos))
			}
		}
	}
	for pos, key := range left.values {
		if pos%stopRows == 0 && stop != nil && stop.Cancelled() {
			return ErrStopped
		}
		if left.valid.Get(pos) {
			rowOf[pos], _ = table.find(key)
		}
	}
	return nil
}

// translate returns the keys of the active rows of a column as those of right, the codes of some rows in another dictionary. A string
// that no row of right has gets a key that none of them has. It looks only at strings that rows have, and only once at each place.
func translate(m *Memory, rs RowSet, c *StringColumn, to *Dict, right rowKeys) rowKeys {
	index, indexed := newTextIndex(m, to.Values, len(right.values)), NewBitmap(len(to.Values))
	for pos, code := range right.values {
		if right.valid.Get(pos) && !indexed.Get(int(code)) {
			indexed.Set(int(code))
			index.add(int32(code))
		}
	}
	codeOf := m.Rows(len(c.Dict.Values)) // by place: the code in to plus 1, −1 if there is none, 0 if not known yet
	clear(codeOf)
	return c.keys(m, rs, func(place int32) int64 {
		if place < 0 {
			return 0
		}
		if codeOf[place] == 0 {
			text := c.Dict.Values[place]
			code, _ := index.find(text, index.hash(text))
			if codeOf[place] = code + 1; code < 0 {
				codeOf[place] = -1
			}
		}
		return int64(codeOf[place]) - 1
	})
}
