package rowset

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// Dict is a list of strings, which rows name by their places in it. Immutable once built; any goroutine.
type Dict struct {
	// Values are the strings by place. Those of a SetDict are distinct. A column of strings is strings first: Values has
	// equal ones until somebody asks for codes. The garbage collector owns their bytes, which Memory does not lend: answers and
	// what a task keeps may go on having them.
	Values []string

	distinct bool                    // no two of Values are equal; false: nobody has looked
	codes    atomic.Pointer[[]int32] // by place, of all places; nil: nobody has asked for them
}

// bytes returns about how many bytes the strings take.
func (d *Dict) bytes() int {
	n := sizeOf(d.Values)
	for _, s := range d.Values {
		n += len(s)
	}
	if codes := d.codes.Load(); codes != nil {
		n += sizeOf(*codes)
	}
	return n
}

// all returns a code for each place: the first place of an equal string. Nil says that each place is its own. Whoever asks first
// makes the codes, for all who have the dictionary. Of two who ask at once both make them, and one list stays: the loop must not
// wait for a worker, and the lists are equal.
func (d *Dict) all(m *Memory) []int32 {
	if known := d.codes.Load(); known != nil {
		return *known
	}
	codes, repeated := make([]int32, len(d.Values)), false
	index := newTextIndex(m, d.Values, len(d.Values))
	for place := range codes {
		codes[place] = index.add(int32(place))
		repeated = repeated || codes[place] != int32(place)
	}
	if !repeated {
		codes = nil
	}
	d.codes.CompareAndSwap(nil, &codes)
	return codes
}

// A textIndex finds strings of a list by their hashes. One goroutine at a time.
type textIndex struct {
	values []string
	table  keyTable // of places
	few    bool
	seed   maphash.Seed
}

// newTextIndex returns an empty index for up to so many places of values. Its slices are m's.
func newTextIndex(m *Memory, values []string, entries int) textIndex {
	entries = min(entries, len(values))
	return textIndex{values: values, table: newKeyTable(m, m.IDs(len(values)), entries), few: entries <= dictScanMax, seed: maphash.MakeSeed()}
}

// hash returns the hash of a string. Few strings are told apart by their lengths: comparing with some costs less than hashing.
func (x *textIndex) hash(text string) int64 {
	if x.few {
		return int64(len(text))
	}
	return int64(maphash.String(x.seed, text))
}

// find returns the place of a string that was added, or a negative number and the slot for it.
func (x *textIndex) find(text string, hash int64) (place int32, slot int) {
	place, slot = x.table.find(hash)
	for place >= 0 && x.values[place] != text {
		place, slot = x.table.findNext(hash, slot)
	}
	return place, slot
}

// add adds the string at a place, unless an equal one was added, and returns the place of that one.
func (x *textIndex) add(place int32) int32 {
	hash := x.hash(x.values[place])
	first, slot := x.find(x.values[place], hash)
	if first >= 0 {
		return first
	}
	x.table.keys[place] = hash
	x.table.put(slot, place)
	return place
}

// dictScanMax is the largest dictionary that is scanned for a value. Scanning so few
// short strings is as fast as hashing one. Most batches have a handful of values, so
// they need no index.
const dictScanMax = 12

// A dictBuilder grows a Dict and finds the code of a value. It copies new values into blocks, so that one allocation
// serves many. It finds values through an open-addressing table of codes: a Go map spent much of the time of a lookup
// of distinct titles on growing. One goroutine at a time; not to be copied once it has values.
type dictBuilder struct {
	dict *Dict
	many *manyValues // nil: few are expected, and there are few so far
}

// manyValues is what a dictBuilder needs for more than a handful of values. One goroutine at a time.
type manyValues struct {
	rows int // that are expected; 0: nobody knows

	blocks textBlocks // of the newest values

	seed  maphash.Seed
	index []int32 // codes plus 1 by hash, at most half full; nil while there are at most dictScanMax values
}

// newDict returns an empty dictionary. It is one allocation with its first values.
func newDict() *Dict {
	block := new(struct {
		dict  Dict
		first [4]string
	})
	block.dict.Values, block.dict.distinct = block.first[:0], true
	return &block.dict
}

// newDictBuilder starts from values, which are distinct. It shares them until the
// first new value.
func newDictBuilder(values []string) dictBuilder {
	b := dictBuilder{dict: &Dict{Values: values[:len(values):len(values)], distinct: true}}
	if len(values) > dictScanMax {
		b.buildIndex()
	}
	return b
}

// internBytes is intern for bytes, which it copies if they are new.
func (b *dictBuilder) internBytes(value []byte) int32 {
	code, slot := b.find(value)
	if code < 0 {
		return b.add(b.copy(value), slot)
	}
	return code
}

// intern returns the code of a value, adding it if it is new.
func (b *dictBuilder) intern(value string) int32 {
	code, slot := b.find(bytesOf(value))
	if code < 0 {
		return b.add(value, slot)
	}
	return code
}

// find returns the code of a value, or -1 and the slot of the index for it.
func (b *dictBuilder) find(value []byte) (code int32, slot uint64) {
	if b.many == nil || b.many.index == nil {
		for code, s := range b.dict.Values {
			if s == string(value) {
				return int32(code), 0
			}
		}
		return -1, 0
	}
	index, slot := b.many.index, maphash.Bytes(b.many.seed, value)
	for ; ; slot++ {
		code := index[slot&uint64(len(index)-1)] - 1
		if code < 0 || b.dict.Values[code] == string(value) {
			return code, slot
		}
	}
}

// The first block of values has 64 bytes. Each further block of a dictionary is four times as large, up to 4,096. A
// value longer than a quarter of that has a block of its own.
const blockBytesMin, blockBytesMax = 64, 4096

// textBlocks makes strings of bytes, many in one block of memory. The zero value has no block yet. One goroutine at a
// time; not to be copied.
type textBlocks struct {
	block []byte // the newest; strings are views of it, so what it has never changes
	size  int    // in bytes
}

// copy returns a value as a string.
func (b *textBlocks) copy(value []byte) string {
	if len(value) > blockBytesMax/4 {
		return string(value)
	}
	if cap(b.block)-len(b.block) < len(value) {
		b.size = min(max(4*b.size, blockBytesMin, 4*len(value)), blockBytesMax)
		b.block = make([]byte, 0, b.size)
	}
	from := len(b.block)
	b.block = append(b.block, value...)
	return unsafe.String(unsafe.SliceData(b.block[from:]), len(value))
}

// copy returns a value as a string.
func (b *dictBuilder) copy(value []byte) string {
	if b.many == nil {
		return string(value)
	}
	return b.many.blocks.copy(value)
}

// add adds a value that is new, at that slot of the index if there is one.
func (b *dictBuilder) add(value string, slot uint64) int32 {
	code := b.append(value)
	switch n := int(code); {
	case b.many != nil && b.many.index != nil && 2*(n+1) <= len(b.many.index):
		b.many.index[slot&uint64(len(b.many.index)-1)] = code + 1
	case n >= dictScanMax:
		b.buildIndex()
	}
	return code
}

// append adds a value without looking.
func (b *dictBuilder) append(value string) int32 {
	n, rows := len(b.dict.Values), 0
	if b.many != nil {
		rows = b.many.rows
	}
	if n == cap(b.dict.Values) { // straight to what all rows may need
		b.dict.Values = append(make([]string, 0, max(min(4*n, rows), 2*n, 4)), b.dict.Values...)
	}
	b.dict.Values = append(b.dict.Values, value)
	return int32(n)
}

// buildIndex makes an index with room for twice as many values. From the second time on, it makes room for one value
// in each row, if that is not many more.
func (b *dictBuilder) buildIndex() {
	if b.many == nil {
		b.many = new(manyValues)
	}
	m, n := b.many, len(b.dict.Values)
	size := 1 << bits.Len(uint(4*n))
	if m.index == nil {
		m.seed = maphash.MakeSeed()
	} else {
		size = max(size, min(1<<bits.Len(uint(2*m.rows)), 1<<bits.Len(uint(8*n))))
	}
	m.index = make([]int32, size)
	for code, value := range b.dict.Values {
		slot := maphash.String(m.seed, value)
		for m.index[slot&uint64(size-1)] != 0 {
			slot++
		}
		m.index[slot&uint64(size-1)] = int32(code) + 1
	}
}
