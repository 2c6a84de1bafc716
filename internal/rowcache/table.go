package rowcache

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/rankd/rankd/loop/clock"
)

// A Shape identifies what is read of a key: values of one shape have one meaning. See Table.Shape. Immutable; any
// goroutine.
type Shape uint32

// A Token says which invalidations a table had read when a read was sent. Immutable; any goroutine.
type Token uint64

// BytesMin is the least bound of a table.
const BytesMin = 1 << 20

// ValueMax is the longest value that is kept, with its key: a quarter of a segment.
const ValueMax = segmentBytes/4 - header

// stayMax bounds how many entries one Put may keep in the main ring, so that it takes only some microseconds.
const stayMax = 32

// Stats count what a table did. Immutable once returned; any goroutine.
type Stats struct {
	Counts
	Kept        uint64 // of Put
	Raced       uint64 // not kept: the key changed while it was read, or the table was dropped
	Invalidated uint64 // entries that Invalidate dropped
	Evicted     uint64 // entries that left because others came
	Dropped     uint64 // calls of InvalidateAll
	Entries     int    // now, including those that are too old
	Bytes       int    // taken now, of all that the table has
}

// Counts count keys that Find looked for. Immutable once returned; any goroutine.
type Counts struct {
	Hits, Misses uint64
	HitAge       float64 // total over all hits, in ns: from sending the read to the hit
	Expired      uint64  // misses whose entry was too old
	Untrusted    uint64  // misses because the source was not trusted
}

// A Source reports changes to a table: a *resp.Tracker. Loop only.
type Source interface {
	// Trusted reports whether the source has reported all changes that were made some time ago.
	Trusted() bool
	// Covers reports whether the source reports changes of a key at all.
	Covers(key []byte) bool
	// Track makes the source report changes of keys that begin with one of the prefixes, as soon as possible.
	Track(prefixes []string)
}

// A Divided is a source whose keys are in parts. Each part is trusted by itself, like the slots of a Redis Cluster: a
// *clusterclient.Tracker. Loop only.
type Divided interface {
	Source
	// Part returns the part of a key.
	Part(key []byte) int
	// Trusts is Trusted for one part. It does not matter while all parts are trusted.
	Trusts(part int) bool
}

// A part is what a table knows of one part of a Divided source.
type part struct {
	floor uint64 // the youngest invalidation of all its keys
	since int64  // entries whose read was sent at or before it are void
}

// shapesMax bounds the shapes of a table. Plans have few.
const (
	shapesMax   = 1 << 16
	shapesFirst = 8
)

// Table keeps values by key and shape. Loop only.
type Table struct {
	source   Source  // nil: no source reports changes
	watched  Source  // reports changes; nil: no source does
	divided  Divided // the same, if its keys are in parts
	parts    []part
	partly   int64    // the latest since of parts
	prefixes []string // of all keys that were read; plans have few
	shapes   map[string]Shape
	first    []string // the texts of the first shapes, found without a hash

	seed   maphash.Seed
	maxAge time.Duration

	// index has the places of entries by the hash of their keys: open addressing, linear probing. All shapes of a key
	// have one hash.
	index   []slot
	entries int

	small, main ring
	ghost       []uint32 // hashes of entries that left small unused, each at its place, which a younger one may take
	copied      []byte   // an entry on its way

	// Of the keys that Find looks for:
	hashes  [FindMax]uint64
	slots   [FindMax]slot // where their search begins
	touched byte          // without meaning: the sum makes the processor load memory
	peeks   bool          // its caller is Peek

	seq    uint64   // invalidations so far
	stamps []uint64 // by hash: the youngest invalidation of such a key
	floor  uint64   // the youngest of all keys
	latest int64    // when the read of an entry was sent at the latest
	since  int64    // entries whose read was sent at or before it are void

	stats Stats
}

// A slot of the index refers to an entry: the upper bits of the hash, the ring and the place. Zero is free.
type slot uint64

const (
	placeBits = 40 // in units of eight bytes, plus 1
	mainBit   = slot(1) << placeBits
	tagShift  = placeBits + 1
)

func newSlot(hash uint64, main bool, place int) slot {
	s := slot(hash>>tagShift<<tagShift) | slot(place/8+1)
	if main {
		s |= mainBit
	}
	return s
}

func (s slot) has(hash uint64) bool { return uint64(s)>>tagShift == hash>>tagShift }
func (s slot) place() int           { return (int(s&(mainBit-1)) - 1) * 8 }

// NewTable returns a table that takes at most maxBytes, BytesMin at least, for everything, and keeps no entry longer than maxAge.
func NewTable(maxBytes int, maxAge time.Duration) *Table { return NewDivided(maxBytes, maxAge, 0) }

// NewDivided returns a table for a source that is a Divided of so many parts. It is otherwise as NewTable makes it.
func NewDivided(maxBytes int, maxAge time.Duration, parts int) *Table {
	maxBytes = max(maxBytes, BytesMin)
	slots := 1 << (bits.Len(uint(maxBytes/64)) - 1) // a sixteenth to an eighth of the bytes
	t := &Table{
		shapes: make(map[string]Shape), seed: maphash.MakeSeed(), maxAge: maxAge, since: math.MinInt64, partly: math.MinInt64,
		index: make([]slot, slots), ghost: make([]uint32, slots/4), stamps: make([]uint64, min(slots, 1<<16)), parts: make([]part, parts),
	}
	for i := range t.parts {
		t.parts[i].since = math.MinInt64
	}
	segments := (maxBytes - t.fixed()) / segmentBytes
	small := max(1, segments/10)
	t.small, t.main = newRing(small), newRing(max(1, segments-small))
	return t
}

// fixed returns the bytes beside the rings.
func (t *Table) fixed() int {
	return 8*len(t.index) + 4*len(t.ghost) + 8*len(t.stamps) + 16*len(t.parts)
}

// Rely has the table find values only while a source is trusted, and keep only those of keys that it covers. Nil, as at first, means that
// values are kept until they are too old, whatever changes meanwhile.
func (t *Table) Rely(s Source) { t.source = s }

// Watch makes a source report changes of all keys that are read, as Follow names them.
func (t *Table) Watch(s Source) {
	t.watched = s
	t.divided, _ = s.(Divided)
	if len(t.prefixes) > 0 {
		s.Track(t.prefixes)
	}
}

// Follow says that keys are read that begin with a prefix.
func (t *Table) Follow(prefix string) {
	if t.watched == nil || slices.Contains(t.prefixes, prefix) {
		return
	}
	t.prefixes = append(t.prefixes, prefix)
	t.watched.Track(t.prefixes)
}

// Shape returns the shape of reads that mean the same, from a text that says what is read. It returns false if there are too many.
func (t *Table) Shape(text string) (s Shape, ok bool) {
	for i, known := range t.first {
		if known == text {
			return Shape(i + 1), true
		}
	}
	if s, ok = t.shapes[text]; !ok && len(t.shapes) < shapesMax {
		s, ok = Shape(len(t.shapes)+1), true
		if t.shapes[text] = s; s <= shapesFirst {
			t.first = append(t.first, text)
		}
	}
	return s, ok
}

// Token returns what Put wants to know of a read that is sent now.
func (t *Table) Token() Token { return Token(t.seq) }

// FindMax is the most keys that one Find takes.
const FindMax = 32

// Find looks for several keys, FindMax at most: key i is text[ends[i-1]:ends[i]]. It sets found[i] to the value of key i, a view that is valid until the
// next Put, or to nil if there is none that was sent at oldest or later. It returns how many there are, how many of them
// are old (OldAfter), and when the read of the oldest was sent.
//
// In a large table a key waits for memory two or three times, one after the other: for its slot, and for its entry. So each step is taken for all keys
// before the next one: the processor waits for all of them at once.
func (t *Table) Find(text []byte, ends []int32, found [][]byte, shape Shape, now, oldest clock.Time) (hits, old int, least clock.Time) {
	trusted := t.source == nil || t.source.Trusted()
	if !trusted && t.divided == nil {
		clear(found[:len(ends)])
		t.stats.Misses += uint64(len(ends))
		t.stats.Untrusted += uint64(len(ends))
		return 0, 0, 0
	}
	begin := int32(0)
	for i, end := range ends {
		hash := maphash.Bytes(t.seed, text[begin:end])
		t.hashes[i], t.slots[i] = hash, t.slot(hash)
		begin = end
	}
	touched := byte(0)
	for i, s := range t.slots[:len(ends)] {
		if found[i] = nil; s != 0 {
			e := t.entry(s)
			touched += e[0]
			found[i] = e
		}
	}
	t.touched = touched
	oldest = max(oldest, clock.Time(t.since+1), now.Add(-t.maxAge))
	ages := time.Duration(0) // of all hits
	young := now - clock.Time(OldAfter)
	least, begin = now, 0
	for i, end := range ends {
		e, key := entry(found[i]), text[begin:end]
		if begin = end; e == nil {
			continue
		}
		if !e.is(key, shape) {
			if e = t.search(t.hashes[i], key, shape); e == nil {
				found[i] = nil
				continue
			}
		}
		sent := clock.Time(e.sent())
		if sent < oldest {
			t.stats.Expired++
			found[i] = nil
			continue
		}
		if (!trusted || int64(sent) <= t.partly) && !t.serves(key, sent, trusted) {
			found[i] = nil
			continue
		}
		if e[atUses] < usesMax && !t.peeks {
			e[atUses]++
		}
		ages += now.Sub(sent)
		least = min(least, sent)
		if sent < young {
			old++
		}
		found[i] = e.value()
		hits++
	}
	t.stats.Hits += uint64(hits)
	t.stats.HitAge += float64(ages)
	t.stats.Misses += uint64(len(ends) - hits)
	return hits, old, least
}

// Peek is Find for a reader that takes no value: nothing counts as used, as found or as missed.
func (t *Table) Peek(text []byte, ends []int32, found [][]byte, shape Shape, now, oldest clock.Time) {
	stats := t.stats
	t.peeks = true
	t.Find(text, ends, found, shape, now, oldest)
	t.stats, t.peeks = stats, false
}

// serves reports whether an entry may be used as far as the part of its key says.
func (t *Table) serves(key []byte, sent clock.Time, trusted bool) bool {
	p := t.divided.Part(key)
	switch {
	case int64(sent) <= t.parts[p].since:
		t.stats.Expired++
		return false
	case !trusted && !t.divided.Trusts(p):
		t.stats.Untrusted++
		return false
	}
	return true
}

// search returns the entry of a key that is not at the slot of its hash, or nil.
func (t *Table) search(hash uint64, key []byte, shape Shape) entry {
	for i := hash + 1; t.slot(i) != 0; i++ {
		if s := t.slot(i); s.has(hash) {
			if e := t.entry(s); e.is(key, shape) {
				return e
			}
		}
	}
	return nil
}

// Put keeps the value that a read of a key has brought, in place of the one before. token was taken when the read was sent, and sent is
// that time. It keeps nothing if the key has changed since or the source does not cover it, and no value of more than some 16 KB.
func (t *Table) Put(key []byte, shape Shape, value []byte, token Token, sent clock.Time) {
	hash := maphash.Bytes(t.seed, key)
	if t.floor > uint64(token) || t.stamps[t.stampOf(hash)] > uint64(token) {
		t.stats.Raced++
		return
	}
	if t.divided != nil && t.parts[t.divided.Part(key)].floor > uint64(token) {
		t.stats.Raced++
		return
	}
	if len(key)+len(value) > ValueMax || t.source != nil && !t.source.Covers(key) {
		return
	}
	younger := false
	t.drop(hash, func(e entry) bool {
		same := e.is(key, shape)
		younger = younger || same && e.sent() > max(int64(sent), t.since)
		return same && !younger
	})
	if younger { // A key never goes back in time.
		t.stats.Raced++
		return
	}
	size := entrySize(len(key), len(value))
	ghost := &t.ghost[hash&uint64(len(t.ghost)-1)]
	isMain := *ghost == fingerprint(hash)
	if isMain {
		*ghost = 0
	}
	t.makeRoom(isMain, size)
	for t.entries >= len(t.index)-len(t.index)/8 {
		t.evictSmall()
		t.evictMain(false)
	}
	t.latest = max(t.latest, int64(sent))
	r := t.ring(isMain)
	place := r.push(size)
	e := r.at(place)[:size]
	binary.LittleEndian.PutUint64(e[atHash:], hash)
	binary.LittleEndian.PutUint64(e[atSent:], uint64(sent))
	binary.LittleEndian.PutUint32(e[atSize:], uint32(size))
	binary.LittleEndian.PutUint32(e[atShape:], uint32(shape))
	binary.LittleEndian.PutUint32(e[atLength:], uint32(len(value)))
	binary.LittleEndian.PutUint16(e[atKey:], uint16(len(key)))
	e[atUses], e[atDead] = 0, 0
	copy(e[header:], key)
	copy(e[header+len(key):], value)
	t.enter(hash, isMain, place)
	t.entries++
	t.stats.Kept++
}

// Invalidate drops all that is known of a key, and has reads that are under way not be kept.
func (t *Table) Invalidate(key []byte) {
	hash := maphash.Bytes(t.seed, key)
	t.seq++
	t.stamps[t.stampOf(hash)] = t.seq
	t.stats.Invalidated += uint64(t.drop(hash, func(e entry) bool { return bytes.Equal(e.key(), key) }))
}

// InvalidateAll does so for all keys. Its time does not depend on their number. now may lag behind the times that Put was given, as a
// loop's time does behind its clock's.
func (t *Table) InvalidateAll(now clock.Time) {
	t.seq++
	t.floor, t.since = t.seq, max(int64(now), t.latest)
	t.stats.Dropped++
}

// InvalidatePart is InvalidateAll for the keys of one part.
func (t *Table) InvalidatePart(number int, now clock.Time) {
	t.seq++
	p := &t.parts[number]
	p.floor, p.since = t.seq, max(int64(now), t.latest)
	t.partly = max(t.partly, p.since)
}

// Stats returns the counts so far.
func (t *Table) Stats() Stats {
	s := t.stats
	s.Entries, s.Bytes = t.entries, t.fixed()
	for _, r := range [...]*ring{&t.small, &t.main} {
		for _, taken := range r.segments {
			if taken != nil {
				s.Bytes += segmentBytes
			}
		}
	}
	return s
}

func (t *Table) ring(main bool) *ring {
	if main {
		return &t.main
	}
	return &t.small
}

func (t *Table) stampOf(hash uint64) uint64 { return hash & uint64(len(t.stamps)-1) }

// fingerprint returns what the ghost knows of an entry. It is not zero.
func fingerprint(hash uint64) uint32 { return uint32(hash>>32) | 1 }

// slot returns the slot at which the search for a hash goes on.
func (t *Table) slot(i uint64) slot { return t.index[i&uint64(len(t.index)-1)] }

func (t *Table) entry(s slot) entry { return t.ring(s&mainBit != 0).at(s.place()) }

// enter has the index refer to a new entry.
func (t *Table) enter(hash uint64, main bool, place int) {
	i := hash
	for t.slot(i) != 0 {
		i++
	}
	t.index[i&uint64(len(t.index)-1)] = newSlot(hash, main, place)
}

// drop drops the entries of a hash that are meant, and returns their number.
func (t *Table) drop(hash uint64, meant func(entry) bool) (dropped int) {
	for i := hash; t.slot(i) != 0; {
		if s := t.slot(i); s.has(hash) {
			if e := t.entry(s); meant(e) {
				e[atDead] = 1
				t.free(i)
				dropped++
				continue // another one may have come to this slot
			}
		}
		i++
	}
	t.entries -= dropped
	return dropped
}

// free frees a slot, and moves those behind it up that a search would not find any more.
func (t *Table) free(i uint64) {
	mask := uint64(len(t.index) - 1)
	for next := i + 1; ; next++ {
		s := t.slot(next)
		if s == 0 {
			break
		}
		if home := t.entry(s).hash(); (next-home)&mask >= (next-i)&mask {
			t.index[i&mask] = s
			i = next
		}
	}
	t.index[i&mask] = 0
}

// forget frees the slot of an entry that leaves its ring.
func (t *Table) forget(e entry, main bool, place int) {
	s := newSlot(e.hash(), main, place)
	i := e.hash()
	for t.slot(i) != s {
		i++
	}
	t.free(i)
	t.entries--
}

// makeRoom makes room for an entry in a ring.
func (t *Table) makeRoom(main bool, size int) {
	for !main && !t.small.fits(size) {
		t.evictSmall()
	}
	for stayed := 0; main && !t.main.fits(size); {
		if t.evictMain(stayed < stayMax) {
			stayed++
		}
	}
}

// evictSmall takes the oldest entry out of small: to main if it was used, and else only its hash stays, in ghost.
func (t *Table) evictSmall() {
	e, ok := t.small.oldest()
	if !ok {
		return
	}
	place, size := t.small.tail, e.size()
	defer t.small.pop(size)
	if e[atDead] != 0 {
		return
	}
	t.forget(e, false, place)
	if e[atUses] == 0 || e.sent() <= t.since {
		t.ghost[e.hash()&uint64(len(t.ghost)-1)] = fingerprint(e.hash())
		t.stats.Evicted++
		return
	}
	t.makeRoom(true, size)
	e[atUses] = 0
	t.pushMain(e[:size])
}

// evictMain takes the oldest entry out of main, or has it begin again with one use less if it may stay and was used.
func (t *Table) evictMain(mayStay bool) (stayed bool) {
	e, ok := t.main.oldest()
	if !ok {
		return false
	}
	place, size := t.main.tail, e.size()
	if e[atDead] != 0 {
		t.main.pop(size)
		return false
	}
	t.forget(e, true, place)
	if mayStay && e[atUses] > 0 && e.sent() > t.since {
		e[atUses]--
		t.copied = append(t.copied[:0], e[:size]...) // Its new place may overlap the old one.
		t.main.pop(size)
		if t.main.fits(size) { // not if a segment ends here
			t.pushMain(t.copied)
			return true
		}
	} else {
		t.main.pop(size)
	}
	t.stats.Evicted++
	return false
}

// pushMain appends an entry to main, which has room for it.
func (t *Table) pushMain(e entry) {
	place := t.main.push(len(e))
	copy(t.main.at(place), e)
	t.enter(e.hash(), true, place)
	t.entries++
}

// Use says what a node took from memory in place of reading it. The zero Use: nothing. Immutable once told.
type Use struct {
	Values int           // keys, each with what the node reads of it
	Old    int           // of these, those whose read was sent more than OldAfter ago
	Age    time.Duration // of the oldest, since its read was sent
}

// OldAfter is the age from which on the metrics count a value as old.
const OldAfter = time.Minute
