package rowset

import (
	"hash/maphash"
	"math/bits"
	"strings"
)

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
	memory *Memory // lends the index
	rows   int     // that are expected; 0: nobody knows

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
	block.dict.Values = block.first[:0]
	return &block.dict
}

// newDictBuilder starts from values, which are distinct. It shares them until the
// first new value.
func newDictBuilder(values []string) dictBuilder {
	b := dictBuilder{dict: &Dict{Values: values[:len(values):len(values)]}}
	if len(values) > dictScanMax {
		b.buildIndex()
	}
	return b
}

// internBytes is intern for bytes, which it copies if they are new.
func (b *dictBuilder) internBytes(value []byte) int32 {
	if b.many == nil || b.many.index == nil {
		for code, s := range b.dict.Values {
			if s == string(value) {
				return int32(code)
			}
		}
		return b.add(b.copy(value), 0)
	}
	index, slot := b.many.index, maphash.Bytes(b.many.seed, value)
	for ; ; slot++ {
		code := index[slot&uint64(len(index)-1)]
		if code == 0 {
			return b.add(b.copy(value), slot)
		}
		if b.dict.Values[code-1] == string(value) {
			return code - 1
		}
	}
}

// intern returns the code of a value, adding it if it is new.
func (b *dictBuilder) intern(value string) int32 {
	if b.many == nil || b.many.index == nil {
		for code, s := range b.dict.Values {
			if s == value {
				return int32(code)
			}
		}
		return b.add(value, 0)
	}
	index, slot := b.many.index, maphash.String(b.many.seed, value)
	for ; ; slot++ {
		code := index[slot&uint64(len(index)-1)]
		if code == 0 {
			return b.add(value, slot)
		}
		if b.dict.Values[code-1] == value {
			return code - 1
		}
	}
}

// The first block of values has 64 bytes. Each further block of a dictionary is four times as large, up to 4,096. A
// value longer than a quarter of that has a block of its own.
const blockBytesMin, blockBytesMax = 64, 4096

// textBlocks makes strings of bytes, many in one block of memory. The zero value has no block yet. One goroutine at a
// time; not to be copied.
type textBlocks struct {
	block strings.Builder // the newest; it never grows, since that would copy those before
	size  int             // of the next block, in bytes
}

// copy returns a value as a string.
func (b *textBlocks) copy(value []byte) string {
	if len(value) > blockBytesMax/4 {
		return string(value)
	}
	if b.block.Cap()-b.block.Len() < len(value) {
		b.size = min(max(4*b.size, blockBytesMin, 4*len(value)), blockBytesMax)
		b.block.Reset()
		b.block.Grow(b.size)
	}
	from := b.block.Len()
	b.block.Write(value)
	return b.block.String()[from:]
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
	n, rows := len(b.dict.Values), 0
	if b.many != nil {
		rows = b.many.rows
	}
	if n == cap(b.dict.Values) { // straight to what all rows may need
		b.dict.Values = append(make([]string, 0, max(min(4*n, rows), 2*n, 4)), b.dict.Values...)
	}
	b.dict.Values = append(b.dict.Values, value)
	switch {
	case b.many != nil && b.many.index != nil && 2*(n+1) <= len(b.many.index):
		b.many.index[slot&uint64(len(b.many.index)-1)] = int32(n) + 1
	case n >= dictScanMax:
		b.buildIndex()
	}
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
	m.index = m.memory.Rows(size)
	clear(m.index)
	for code, value := range b.dict.Values {
		slot := maphash.String(m.seed, value)
		for m.index[slot&uint64(size-1)] != 0 {
			slot++
		}
		m.index[slot&uint64(size-1)] = int32(code) + 1
	}
}
