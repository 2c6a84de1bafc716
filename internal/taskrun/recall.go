package taskrun

import (
	"errors"
	"time"

	"github.com/rankd/rankd/internal/rowcache"
	"github.com/rankd/rankd/loop/clock"
)

// ErrMustRead ends a body that runs inline and has to wait: it goes on in a coroutine. Nobody else sees it.
var ErrMustRead = errors.New("not all is in memory")

// Recall gives one read of a node the values that an engine keeps of an endpoint's keys: those from earlier reads of
// the same meaning. Loop only, from the body for which it was opened.
type Recall struct {
	table  *rowcache.Table
	clock  clock.Clock
	shape  rowcache.Shape
	maxAge time.Duration // the greatest age that the node accepts; zero: whatever the table keeps
	use    *rowcache.Use // of the node, which Find adds to

	token rowcache.Token // of the reads under way
	sent  clock.Time     // when they were sent; zero: they were not yet

	now   clock.Time               // of the first Find, if it is known; zero: it is not
	text  []byte                   // of the keys of a Find
	ends  [rowcache.FindMax]int32  // where each of them ends
	found [rowcache.FindMax][]byte // of a Find
}

// Open begins with the values of a table that a rule allows. It returns false if the table
// has no room for another shape. Find counts in use. now is the present instant, if it is known, or zero.
func (r *Recall) Open(t *rowcache.Table, c clock.Clock, now clock.Time, use *rowcache.Use, rule *RecallRule) bool {
	t.Follow(rule.Prefix)
	id, ok := t.Shape(rule.Shape)
	if !ok {
		return false
	}
	r.table, r.clock, r.now, r.use, r.shape, r.maxAge = t, c, now, use, id, rule.MaxAge
	r.token, r.sent = 0, 0
	return true
}

// Keys are those of a read. Only the body uses it.
type Keys interface {
	// Key appends the text of key i to dst.
	Key(dst []byte, i int) []byte
}

// A RecallRule says which values a node takes from memory. Immutable; any goroutine.
type RecallRule struct {
	// Shape says what a read of a key means: reads with equal texts have equal values. "" stands for one that is not kept.
	Shape  string
	Prefix string        // with which all keys begin
	MaxAge time.Duration // the greatest age that the node accepts; zero: whatever the table keeps
}

// Find looks for keys from to to-1, rowcache.FindMax at most. Nil stands for a key that is not
// there. The values are views that are valid until the next Put, wait or call of Find.
func (r *Recall) Find(from, to int, keys Keys) [][]byte {
	now, oldest := r.texts(from, to, keys)
	found := r.found[:to-from]
	if hits, old, least := r.table.Find(r.text, r.ends[:to-from], found, r.shape, now, oldest); hits > 0 {
		r.use.Values += hits
		r.use.Old += old
		r.use.Age = max(r.use.Age, now.Sub(least))
	}
	return found
}

// Peek is Find for somebody who takes none of the values now. They do not count as used.
func (r *Recall) Peek(from, to int, keys Keys) [][]byte {
	now, oldest := r.texts(from, to, keys)
	r.table.Peek(r.text, r.ends[:to-from], r.found[:to-from], r.shape, now, oldest)
	return r.found[:to-from]
}

// texts notes the texts of keys, and where each ends. It returns the present instant and that of the oldest value that counts.
func (r *Recall) texts(from, to int, keys Keys) (now, oldest clock.Time) {
	now = r.now
	if r.now = 0; now == 0 { // Values age while the node works and waits.
		now = r.clock.Now()
	}
	if r.maxAge > 0 {
		oldest = now.Add(-r.maxAge)
	}
	text := r.text[:0]
	for i := range r.ends[:to-from] {
		text = keys.Key(text, from+i)
		r.ends[i] = int32(len(text))
	}
	r.text = text
	return now, oldest
}

// Sending notes that the node is about to send reads.
func (r *Recall) Sending() {
	if r.sent == 0 {
		r.token, r.sent = r.table.Token(), r.clock.Now()
	}
}

// Leave has a ReadAhead tell the later node when its reads were sent: now, unless some were sent before.
func (r *Recall) Leave(a *ReadAhead) {
	r.Sending()
	a.Token, a.Sent = r.token, r.sent
}

// Accept reports whether the node may keep the values of a ReadAhead, and accepts their age. What it keeps counts as sent
// when the first of its reads was, whoever sent it.
func (r *Recall) Accept(a *ReadAhead) bool {
	if a.Sent == 0 || r.maxAge > 0 && a.Sent.Add(r.maxAge) < r.clock.Now() {
		return false
	}
	if r.sent == 0 || a.Sent < r.sent {
		r.token, r.sent = a.Token, a.Sent
	}
	return true
}

// Put keeps the value of key number i from a read since Sending.
func (r *Recall) Put(i int, keys Keys, value []byte) {
	r.text = keys.Key(r.text[:0], i)
	r.table.Put(r.text, r.shape, value, r.token, r.sent)
}
