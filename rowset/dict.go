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

// A dictBuilder grows a Dict and finds the code of a value. It copies new values into blocks, so that one allocation serves
// many, and finds them by an open table of codes: a Go map took a fifth of the time of a lookup whose titles are all different,
// to grow again and again. One goroutine at a time; not to be copied once it has values.
type dictBuilder struct {
	dict   *Dict
	memory *Memory // lends the index
	rows   int     // that are expected

	block strings.Builder // of the newest values; it never grows, since that would copy those before
	size  int             // of the next block, in bytes

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
	if b.index == nil {
		for code, s := range b.dict.Values {
			if s == string(value) {
				return int32(code)
			}
		}
		return b.add(b.copy(value), 0)
	}
	slot := maphash.Bytes(b.seed, value)
	for ; ; slot++ {
		code := b.index[slot&uint64(len(b.index)-1)]
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
	if b.index == nil {
		for code, s := range b.dict.Values {
			if s == value {
				return int32(code)
			}
		}
		return b.add(value, 0)
	}
	slot := maphash.String(b.seed, value)
	for ; ; slot++ {
		code := b.index[slot&uint64(len(b.index)-1)]
		if code == 0 {
			return b.add(value, slot)
		}
		if b.dict.Values[code-1] == value {
			return code - 1
		}
	}
}

// Blocks of values have 64 bytes, and each further one of a dictionary four times as many, up to 4,096. A value longer than a
// quarter of that has its own.
const blockBytesMin, blockBytesMax = 64, 4096

// copy returns a value as a string.
func (b *dictBuilder) copy(value []byte) string {
	if b.rows <= 4 || len(value) > blockBytesMax/4 {
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

// add adds a value that is new, at that slot of the index if there is one.
func (b *dictBuilder) add(value string, slot uint64) int32 {
	values := b.dict.Values
	if n := len(values); n == cap(values) { // straight to what all rows may need
		values = append(make([]string, 0, max(min(4*n, b.rows), 2*n, 4)), values...)
	}
	b.dict.Values = append(values, value)
	n := len(b.dict.Values)
	switch {
	case b.index != nil && 2*n <= len(b.index):
		b.index[slot&uint64(len(b.index)-1)] = int32(n)
	case n > dictScanMax:
		b.buildIndex()
	}
	return int32(n - 1)
}

// buildIndex makes an index with room for twice as many values or, from the second time on, for one in each row if that is not many more.
func (b *dictBuilder) buildIndex() {
	n := len(b.dict.Values)
	size := 1 << bits.Len(uint(4*n))
	if b.index == nil {
		b.seed = maphash.MakeSeed()
	} else {
		size = max(size, min(1<<bits.Len(uint(2*b.rows)), 1<<bits.Len(uint(8*n))))
	}
	b.index = b.memory.Rows(size)
	clear(b.index)
	for code, value := range b.dict.Values {
		slot := maphash.String(b.seed, value)
		for b.index[slot&uint64(size-1)] != 0 {
			slot++
		}
		b.index[slot&uint64(size-1)] = int32(code) + 1
	}
}
