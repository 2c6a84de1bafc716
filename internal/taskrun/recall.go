package taskrun

import (
	"slices"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/rowcache"
)

// Recall is what an engine keeps of an endpoint's keys, as one run of a node sees it: values that an earlier read of the
// same meaning has brought. A job has one for all nodes that it runs, one after the other: Open begins with each. Loop only, from the body that
// it was opened for.
type Recall struct {
	table  *rowcache.Table
	clock  clock.Clock
	shape  rowcache.Shape
	maxAge time.Duration // of values that the node takes; zero: as old as the table keeps them
	use    *rowcache.Use // of the node, which Found adds to

	token rowcache.Token // of the reads under way
	sent  clock.Time     // when they were sent; zero: they were not yet

	// Of the last Look:
	now    clock.Time
	oldest clock.Time // that the node takes; zero: any
	text   []byte
	ends   [rowcache.WarmMax + 1]int32 // of the keys before key i
	hashes [rowcache.WarmMax]uint64

	values Values
}

// Open begins with what a table has, no older than maxAge; zero: as old as the table keeps it. shape says what a read of a key
// means: reads with equal texts have equal values. All keys begin with prefix. It returns false if there is no table, or if it takes no further
// shape. Found counts in use.
func (r *Recall) Open(t *rowcache.Table, c clock.Clock, use *rowcache.Use, shape, prefix string, maxAge time.Duration) bool {
	if t == nil {
		return false
	}
	t.Follow(prefix)
	id, ok := t.Shape(shape)
	if !ok {
		return false
	}
	r.table, r.clock, r.use, r.shape, r.maxAge = t, c, use, id, maxAge
	r.token, r.sent = 0, 0
	return true
}

// LookMax is the most keys that one Look takes.
const LookMax = rowcache.WarmMax

// Look looks for keys from to to-1, at most LookMax: key appends the one of number i to dst.
func (r *Recall) Look(from, to int, key func(dst []byte, i int) []byte) {
	r.now, r.oldest = r.clock.Now(), 0 // The node may have waited since the last Look, and values age meanwhile.
	if r.maxAge > 0 {
		r.oldest = r.now.Add(-r.maxAge)
	}
	text, begin := r.text[:0], 0
	for i := range to - from {
		text = key(text, from+i)
		r.ends[i+1], r.hashes[i] = int32(len(text)), r.table.Hash(text[begin:])
		begin = len(text)
	}
	r.text = text
	r.table.Warm(r.hashes[:to-from])
}

// Found returns the value of key i of the last Look, from 0 on, a view that is valid until the next Put or wait.
func (r *Recall) Found(i int) (value []byte, ok bool) {
	value, sent, ok := r.table.Get(r.hashes[i], r.text[r.ends[i]:r.ends[i+1]], r.shape, r.now, r.oldest)
	if ok {
		r.use.Values++
		r.use.Age = max(r.use.Age, r.now.Sub(sent))
	}
	return value, ok
}

// Sending notes that the node is about to send reads.
func (r *Recall) Sending() {
	if r.sent == 0 {
		r.token, r.sent = r.table.Token(), r.clock.Now()
	}
}

// Put keeps the value of a key that a read since Sending has brought.
func (r *Recall) Put(key, value []byte) {
	r.table.Put(key, r.shape, value, r.token, r.sent)
}

// Values returns room for the values of keys from to to-1, until the next call.
func (r *Recall) Values(from, to int) *Values {
	v := &r.values
	if cap(v.Bytes) > keepValuesBytes {
		v.Bytes = nil
	}
	v.Bytes, v.Misses, v.from = v.Bytes[:0], v.Misses[:0], from
	v.spans = slices.Grow(v.spans[:0], to-from)[:to-from]
	clear(v.spans)
	return v
}

// keepValuesBytes bounds the room that a Recall keeps for its next use.
const keepValuesBytes = 64 << 10

// Values are the values of several keys, in their order. Loop only, from the body that has the Recall.
type Values struct {
	Bytes  []byte // of all values: a new one is appended, and then added
	Misses []int  // keys that were not found

	from  int
	spans []valueSpan // by key, from that on
}

// valueSpan says where a value is in the bytes of Values. The zero valueSpan: there is none.
type valueSpan struct {
	from, to int
	there    bool
}

// Add says that the bytes since from are the value of a key.
func (v *Values) Add(key, from int) {
	v.spans[key-v.from] = valueSpan{from: from, to: len(v.Bytes), there: true}
}

// All yields the values by their keys, without those of keys that have none.
func (v *Values) All(yield func(key int, value []byte) bool) {
	for i, s := range v.spans {
		if s.there && !yield(v.from+i, v.Bytes[s.from:s.to]) {
			return
		}
	}
}
