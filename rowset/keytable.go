package rowset

import (
	"math/bits"
	"math/rand/v2"
)

// A keyTable is a hash table of positions by their keys, with open addressing and linear probing. It
// lives for one computation. One goroutine at a time.
type keyTable struct {
	keys  []int64 // by position; some of the positions are in the table
	slots []int32 // a position plus 1, or 0 in a free slot. Invariant: a power of two, at most half of them taken
	mask  int     // len(slots)-1
	seed  uint64  // random, so that nobody can choose ids that share their slots; no result depends on it
}

// newKeyTable returns an empty table for up to so many positions of keys. Its slots are m's.
func newKeyTable(m *Memory, keys []int64, entries int) keyTable {
	slots := m.Rows(1 << bits.Len(uint(2*entries)))
	clear(slots)
	return keyTable{keys: keys, slots: slots, mask: len(slots) - 1, seed: rand.Uint64()}
}

// find returns the first position that was put in with that key, and its slot. Without one it
// returns −1 and the free slot where put belongs.
func (t *keyTable) find(key int64) (pos int32, slot int) {
	high, low := bits.Mul64(uint64(key)^t.seed, 0x9e3779b97f4a7c15) // the golden ratio: odd, and its bits look random
	return t.findFrom(key, int(high^low))
}

// findNext returns what find would return if the table began behind that slot.
func (t *keyTable) findNext(key int64, slot int) (int32, int) { return t.findFrom(key, slot+1) }

func (t *keyTable) findFrom(key int64, slot int) (int32, int) {
	for ; ; slot++ {
		slot &= t.mask
		if pos := t.slots[slot] - 1; pos < 0 || t.keys[pos] == key {
			return pos, slot
		}
	}
}

// put puts a position into the free slot that find or findNext has returned for its key.
func (t *keyTable) put(slot int, pos int32) { t.slots[slot] = pos + 1 }
