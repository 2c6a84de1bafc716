package builtin

import (
	"math/bits"
	"math/rand/v2"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// noGroup stands for a row without a group: its value is null, or there is no such column.
const noGroup int32 = -1

// groupKeyTypes are the types of columns that groupsOf takes.
var groupKeyTypes = []registry.Type{registry.Int, registry.String, registry.Bool}

// groupsOf numbers the distinct values of a column (or the id) among the active rows: groups has one number below n, or noGroup, for
// each active row in order. The slice is m's.
func groupsOf(m *rowset.Memory, in rowset.RowSet, key registry.KeyID) (groups []int32, n int) {
	groups = m.Rows(in.Len())
	if key == registry.IDKey {
		ids := newNumbering(m, in.Len())
		for i := range groups {
			groups[i] = ids.number(in.ID(i))
		}
		return groups, ids.count
	}
	if c := in.Batch.String(key); c != nil {
		return stringGroups(m, in, c, groups)
	}
	if c := in.Batch.Int(key); c != nil {
		values := newNumbering(m, in.Len())
		for i := range groups {
			groups[i] = noGroup
			if row := int(in.Row(i)); c.Valid.Get(row) {
				groups[i] = values.number(c.Values[row])
			}
		}
		return groups, values.count
	}
	c := in.Batch.Bool(key)
	for i := range groups {
		groups[i] = noGroup
		if row := int(in.Row(i)); c != nil && c.Valid.Get(row) {
			groups[i] = 0
			if c.Values.Get(row) {
				groups[i] = 1
			}
		}
	}
	return groups, 2
}

// stringGroups takes the codes of a dictionary for groups. Codes of a dictionary that is much longer than the
// rows are numbered anew, so that later work grows with the rows.
func stringGroups(m *rowset.Memory, in rowset.RowSet, c *rowset.StringColumn, groups []int32) ([]int32, int) {
	if n := len(c.Dict.Values); n <= 4*in.Len()+64 {
		for i := range groups {
			groups[i] = c.Codes[in.Row(i)]
		}
		return groups, n
	}
	codes := newNumbering(m, in.Len())
	for i := range groups {
		groups[i] = noGroup
		if code := c.Codes[in.Row(i)]; code >= 0 {
			groups[i] = codes.number(int64(code))
		}
	}
	return groups, codes.count
}

// A numbering gives distinct integers the numbers 0, 1, 2 and so on, in the order of their arrival. It is a hash table with linear probing. One
// goroutine at a time.
type numbering struct {
	keys    []int64
	numbers []int32 // of the key in that slot, plus 1; 0: the slot is free
	shift   int
	seed    uint64 // random, so that nobody can choose integers that collide
	count   int
}

// newNumbering returns a numbering with room for that many integers. Its slices are m's.
func newNumbering(m *rowset.Memory, most int) *numbering {
	slots := 1 << max(3, bits.Len(uint(2*most)))
	t := &numbering{keys: m.IDs(slots), numbers: m.Rows(slots), shift: 64 - bits.TrailingZeros(uint(slots)), seed: rand.Uint64() | 1}
	clear(t.numbers)
	return t
}

func (t *numbering) number(key int64) int32 {
	high, low := bits.Mul64(uint64(key)^t.seed, 0x9e3779b97f4a7c15)
	for slot := (high ^ low) >> t.shift; ; slot = (slot + 1) & uint64(len(t.numbers)-1) {
		switch n := t.numbers[slot]; {
		case n == 0:
			t.count++
			t.keys[slot], t.numbers[slot] = key, int32(t.count)
			return int32(t.count - 1)
		case t.keys[slot] == key:
			return n - 1
		}
	}
}
