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
	now    clock.Time
	oldest clock.Time // values whose read was sent before are too old

	token rowcache.Token // of the reads under way
	sent  clock.Time     // when they were sent; zero: they were not yet

	hits  int
	least clock.Time // when the oldest value among the hits was read

	// The keys of the last Look:
	text   []byte
	ends   [rowcache.WarmMax]int32
	hashes [rowcache.WarmMax]uint64
}

// NewRecall returns what a table has, no older than maxAge; zero: as old as the table keeps it. shape says what a read of a key
// means: reads with equal texts have equal values. All keys begin with prefix. It returns nil if there is no table, or if it takes no further
// shape.
func NewRecall(t *rowcache.Table, c clock.Clock, shape, prefix string, maxAge time.Duration) *Recall {
	if t == nil {
		return nil
	}
	t.Follow(prefix)
	id, ok := t.Shape(shape)
	if !ok {
		return nil
	}
	r := &Recall{table: t, clock: c, shape: id, now: c.Now()}
	if maxAge > 0 {
		r.oldest = r.now.Add(-maxAge)
	}
	return r
}

// LookMax is the most keys that one Look takes.
const LookMax = rowcache.WarmMax

// Look looks for n keys, at most LookMax: key appends the one of number i to dst.
func (r *Recall) Look(n int, key func(dst []byte, i int) []byte) {
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
	value, sent, ok := r.table.GetHashed(r.hashes[i], r.text[begin:r.ends[i]], r.shape, r.now, r.oldest)
	if ok {
		r.hits++
		r.least = r.least.Earlier(sent)
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
func (r *Recall) Put(key, value []byte) { r.table.Put(key, r.shape, value, r.token, r.sent) }

// Hits returns how many values Get has found, and how old the oldest was when the node began.
func (r *Recall) Hits() (n int, oldest time.Duration) {
	if r.hits == 0 {
		return 0, 0
	}
	return r.hits, r.now.Sub(r.least)
}
