package peers

import "strconv"

// keys builds the keys of a batch in one buffer. A batch costs two allocations, while
// concatenation costs one per key. One goroutine at a time.
type keys struct {
	buf  []byte
	ends []int
}

func (k *keys) add(prefix string, id int64) {
	k.buf = strconv.AppendInt(append(k.buf, prefix...), id, 10)
	k.ends = append(k.ends, len(k.buf))
}

func (k *keys) addText(key string) {
	k.buf = append(k.buf, key...)
	k.ends = append(k.ends, len(k.buf))
}

// text returns all keys, one after another; key i is text[start(i):end(i)].
func (k *keys) text() string { return string(k.buf) }

func (k *keys) bounds(i int) (start, end int) {
	if i > 0 {
		start = k.ends[i-1]
	}
	return start, k.ends[i]
}

func (k *keys) reset() { k.buf, k.ends = k.buf[:0], k.ends[:0] }
