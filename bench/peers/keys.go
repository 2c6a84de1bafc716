package peers

import "strconv"

// keys builds the keys of a batch in one buffer. A batch costs two allocations, where
// concatenation needs one per key. One goroutine at a time.
type keys struct {
	buf  []byte
	ends []int
}

// decimalMax is the length of the longest int64.
const decimalMax = 20

// grow makes room for n more keys with that prefix.
func (k *keys) grow(n int, prefix string) {
	if need := len(k.buf) + n*(len(prefix)+decimalMax); need > cap(k.buf) {
		k.buf = append(make([]byte, 0, need), k.buf...)
	}
	if need := len(k.ends) + n; need > cap(k.ends) {
		k.ends = append(make([]int, 0, need), k.ends...)
	}
}

func (k *keys) add(prefix string, id int64) {
	k.buf = strconv.AppendInt(append(k.buf, prefix...), id, 10)
	k.ends = append(k.ends, len(k.buf))
}

// text returns all keys, one after the other; key i is text[start(i):end(i)].
func (k *keys) text() string { return string(k.buf) }

func (k *keys) bounds(i int) (start, end int) {
	if i > 0 {
		start = k.ends[i-1]
	}
	return start, k.ends[i]
}

func (k *keys) reset() { k.buf, k.ends = k.buf[:0], k.ends[:0] }
