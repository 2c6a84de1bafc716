package taskrun

import (
	"slices"
	"time"

	"github.com/rankd/rankd/internal/rowcache"
	"github.com/rankd/rankd/loop/clock"
)

// Recall gives one run of a node the values that an engine keeps of an endpoint's keys: those from earlier reads of
// the same meaning. A job has one Recall for all its nodes, one after the other, and calls Open for each. Loop only,
// from the body for which it was opened.
type Recall struct {
	table  *rowcache.Table
	clock  clock.Clock
	shape  rowcache.Shape
	maxAge time.Duration // the greatest age that the node accepts; zero: whatever the table keeps
	use    *rowcache.Use // of the node, which Found adds to

	token rowcache.Token // of the reads under way
	sent  clock.Time     // when they were sent; zero: they were not yet

	now  clock.Time              // of the first Find, if it is known; zero: it is not
	text []byte                  // of the keys of a Find
	ends [rowcache.FindMax]int32 // where each of them ends

	values Values
}

// Open begins with the values of a table that a rule allows. It returns false if there is no table, or if the table
// has no room for another shape. Find counts in use. now is the present instant, if it is known, or zero.
func (r *Recall) Open(t *rowcache.Table, c clock.Clock, now clock.Time, use *rowcache.Use, rule *RecallRule) bool {
	if t == nil {
		return false
	}
	t.Follow(rule.Prefix)
	id, ok := t.Shape(rule.Shape)
	if !ok {
		return false
	}
	r.table, r.clock, r.now, r.use, r.shape, r.maxAge = t, c, now, use, id, rule.MaxAge
	r.token, r.sent = 0, 0
	return true
}

// A RecallRule says which values a node takes from memory. Immutable; any goroutine.
type RecallRule struct {
	// Shape says what a read of a key means: reads with equal texts have equal values. "" stands for one that is not kept.
	Shape  string
	Prefix string        // with which all keys begin
	MaxAge time.Duration // the greatest age that the node accepts; zero: whatever the table keeps
}

// Find looks for keys from to to-1: key appends key number i to dst. The values are views that are valid until the
// next Put, wait or call of Find.
func (r *Recall) Find(from, to int, key func(dst []byte, i int) []byte) *Values {
	v := &r.values
	v.begin(from, to-from)
	for at := from; at < to; {
		now, oldest := r.now, clock.Time(0)
		if r.now = 0; now == 0 { // Values age while the node works and waits.
			now = r.clock.Now()
		}
		if r.maxAge > 0 {
			oldest = now.Add(-r.maxAge)
		}
		text, n := r.text[:0], min(to-at, len(r.ends))
		for i := range n {
			text = key(text, at+i)
			r.ends[i] = int32(len(text))
		}
		r.text = text
		hits, least := r.table.Find(text, r.ends[:n], v.values[at-from:], r.shape, now, oldest)
		if hits < n {
			v.miss(at, n)
		}
		if hits > 0 {
			r.use.Values += hits
			r.use.Age = max(r.use.Age, now.Sub(least))
		}
		at += n
	}
	return v
}

// Counts returns what was counted so far, for Reread.
func (r *Recall) Counts() (rowcache.Counts, rowcache.Use) { return r.table.Counts(), *r.use }

// Reread counts values found since these counts as misses, because the node reads their keys after all.
func (r *Recall) Reread(c rowcache.Counts, use rowcache.Use) {
	now := r.table.Counts()
	now.Misses += now.Hits - c.Hits
	now.Hits, now.HitAge = c.Hits, c.HitAge
	r.table.Recount(now)
	*r.use = use
}

// Sending notes that the node is about to send reads.
func (r *Recall) Sending() {
	if r.sent == 0 {
		r.token, r.sent = r.table.Token(), r.clock.Now()
	}
}

// Put keeps the value of a key from a read since Sending.
func (r *Recall) Put(key, value []byte) {
	r.table.Put(key, r.shape, value, r.token, r.sent)
}

// keepValues and keepValuesBytes bound the room that a Recall keeps for its next use.
const (
	keepValues      = 8192
	keepValuesBytes = 64 << 10
)

// Values are the values of several keys, in their order. Loop only, from the body that has the Recall.
type Values struct {
	Bytes  []byte // of the values that are not in the table: a new one is appended, and then added
	Misses []int  // keys that were not found, ascending

	from   int
	values [][]byte // by key, from that on: views; nil: there is none
}

// begin makes room for the values of so many keys.
func (v *Values) begin(from, keys int) {
	if cap(v.values) > keepValues || cap(v.Bytes) > keepValuesBytes {
		*v = Values{}
	}
	if v.Bytes == nil {
		v.Bytes = make([]byte, 0, 64) // The view of an empty value must not be nil.
	}
	v.Misses, v.from, v.Bytes = v.Misses[:0], from, v.Bytes[:0]
	v.values = slices.Grow(v.values[:0], keys)[:keys]
}

// miss notes the keys among n from first on that were not found.
func (v *Values) miss(first, n int) {
	for key := first; key < first+n; key++ {
		if v.values[key-v.from] == nil {
			v.Misses = append(v.Misses, key)
		}
	}
}

// Keep copies the values out of the table, so that they outlast a wait and Puts.
func (v *Values) Keep() {
	for i, value := range v.values {
		if value != nil {
			start := len(v.Bytes)
			v.Bytes = append(v.Bytes, value...)
			v.Add(v.from+i, start)
		}
	}
}

// Add says that the bytes since from are the value of a key.
func (v *Values) Add(key, from int) {
	v.values[key-v.from] = v.Bytes[from:len(v.Bytes):len(v.Bytes)]
}

// At returns the value of a key, or nil if it has none.
func (v *Values) At(key int) []byte { return v.values[key-v.from] }

// All yields the values by their keys, without those of keys that have none.
func (v *Values) All(yield func(key int, value []byte) bool) {
	for i, value := range v.values {
		if value != nil && !yield(v.from+i, value) {
			return
		}
	}
}
