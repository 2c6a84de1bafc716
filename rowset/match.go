package rowset

import (
	"hash/maphash"

	"github.com/rankd/rankd/registry"
)

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
	leftKeys, err := keysOf(m, left.Rows, left.Key)
	if err != nil {
		return nil, err
	}
	rightKeys, err := keysOf(m, right.Rows, right.Key)
	if err != nil {
		return nil, err
	}
	if a, b := left.Rows.Batch.String(left.Key), right.Rows.Batch.String(right.Key); a != nil && a.Dict != b.Dict {
		seed := maphash.MakeSeed()
		t := translation{from: a.Dict, to: b.Dict, hash: func(text string) int64 { return int64(maphash.String(seed, text)) }}
		t.translate(m, leftKeys, rightKeys)
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

// A translation gives strings of one dictionary their codes in another one. It looks only at values that occur in
// rows, and only once at each. One goroutine at a time.
type translation struct {
	from, to *Dict
	hash     func(text string) int64
}

// translate replaces the codes in left, which are from's, by codes of to. A text that no row of right has gets a code that none
// of them has. The codes in right are to's.
func (t *translation) translate(m *Memory, left, right rowKeys) {
	table := t.index(m, right)
	codeOf := m.Rows(len(t.from.Values)) // a code of to plus 1, −1 if there is none, 0 if not known yet
	clear(codeOf)
	for pos, code := range left.values {
		if !left.valid.Get(pos) {
			continue
		}
		if codeOf[code] == 0 {
			codeOf[code] = -1
			if known := t.find(&table, t.from.Values[code]); known >= 0 {
				codeOf[code] = known + 1
			}
		}
		left.values[pos] = int64(codeOf[code]) - 1
	}
}

// index returns a table of the codes that the rows of right have, by the hashes of their texts.
func (t *translation) index(m *Memory, right rowKeys) keyTable {
	hashes, indexed := m.IDs(len(t.to.Values)), NewBitmap(len(t.to.Values))
	table := newKeyTable(m, hashes, min(len(hashes), len(right.values)))
	for pos, code := range right.values {
		if !right.valid.Get(pos) || indexed.Get(int(code)) {
			continue
		}
		indexed.Set(int(code))
		hashes[code] = t.hash(t.to.Values[code])
		other, slot := table.find(hashes[code])
		for other >= 0 { // a different text with the same hash
			other, slot = table.findNext(hashes[code], slot)
		}
		table.put(slot, int32(code))
	}
	return table
}

// find returns the code of a text in the table, or a negative number.
func (t *translation) find(table *keyTable, text string) int32 {
	hash := t.hash(text)
	code, slot := table.find(hash)
	for code >= 0 && t.to.Values[code] != text {
		code, slot = table.findNext(hash, slot)
	}
	return code
}
