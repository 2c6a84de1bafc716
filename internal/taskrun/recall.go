package taskrun

import (
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/rowcache"
)

// Recall is what an engine keeps of an endpoint's keys, as one run of a node sees it: values that an earlier read of the
// same meaning has brought. Loop only, from the body that it was made for.
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
	text   []byte
	ends   [rowcache.WarmMax]int32
	hashes [rowcache.WarmMax]uint64
}

// NewRecall returns what a table has, no older than maxAge; zero: as old as the table keeps it. shape says what a read of a key
// means: reads with equal texts have equal values. All keys begin with prefix. It returns nil if there is no table, or if it takes no further
// shape. Found counts in use.
func NewRecall(t *rowcache.Table, c clock.Clock, use *rowcache.Use, shape, prefix string, maxAge time.Duration) *Recall {
	if t == nil {
		return nil
	}
	t.Follow(prefix)
	id, ok := t.Shape(shape)
	if !ok {
		return nil
	}
	return &Recall{table: t, clock: c, shape: id, maxAge: maxAge, use: use}
}

// LookMax is the most keys that one Look takes.
const LookMax = rowcache.WarmMax

// Look looks for n keys, at most LookMax: key appends the one of number i to dst.
func (r *Recall) Look(n int, key func(dst []byte, i int) []byte) {
	r.now = r.clock.Now() // The node may have waited since the last Look, and values age meanwhile.
	r.text = r.text[:0]
	begin := 0
	for i := range n {
		r.text = key(r.text, i)
		r.ends[i], r.hashes[i] = int32(len(r.text)), r.table.Hash(r.text[begin:])
		begin = len(r.text)
	}
	r.table.Warm(r.hashes[:n])
}

// Found returns the value of key i of the last Look, a view that is valid until the next Put or wait.
func (r *Recall) Found(i int) (value []byte, ok bool) {
	begin := int32(0)
	if i > 0 {
		begin = r.ends[i-1]
	}
	var oldest clock.Time
	if r.maxAge > 0 {
		oldest = r.now.Add(-r.maxAge)
	}
	value, sent, ok := r.table.Get(r.hashes[i], r.text[begin:r.ends[i]], r.shape, r.now, oldest)
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
