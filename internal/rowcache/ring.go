package rowcache

import (
	"bytes"
	"encoding/binary"
)

// The layout of an entry: a header, the key, the value, and zeros up to a multiple of eight bytes.
const (
	atHash   = 0  // 8 bytes
	atSent   = 8  // 8 bytes: when the read was sent
	atSize   = 16 // 4 bytes: of the whole entry
	atShape  = 20 // 4 bytes
	atLength = 24 // 4 bytes: of the value
	atKey    = 28 // 2 bytes: the length of the key
	atUses   = 30 // 1 byte: up to usesMax
	atDead   = 31 // 1 byte: nothing in the index refers to it
	header   = 32
)

// usesMax is the highest count of uses, as S3-FIFO has it.
const usesMax = 3

// An entry is a view of one entry in a ring. Loop only.
type entry []byte

// head returns the header. Its fields need no further checks of bounds.
func (e entry) head() *[header]byte { return (*[header]byte)(e) }

func (e entry) hash() uint64 { return binary.LittleEndian.Uint64(e.head()[atHash:]) }
func (e entry) sent() int64  { return int64(binary.LittleEndian.Uint64(e.head()[atSent:])) }
func (e entry) size() int    { return int(binary.LittleEndian.Uint32(e.head()[atSize:])) }
func (e entry) shape() Shape { return Shape(binary.LittleEndian.Uint32(e.head()[atShape:])) }
func (e entry) keyEnd() int  { return header + int(binary.LittleEndian.Uint16(e.head()[atKey:])) }
func (e entry) key() []byte  { return e[header:e.keyEnd()] }
func (e entry) value() []byte {
	return e[e.keyEnd():][:binary.LittleEndian.Uint32(e.head()[atLength:])]
}

// is reports whether the entry is of a key and a shape.
func (e entry) is(key []byte, shape Shape) bool {
	return e.shape() == shape && bytes.Equal(e.key(), key)
}

// entrySize returns what an entry takes.
func entrySize(key, value int) int { return (header + key + value + 7) &^ 7 }

// segmentBytes is the size of the pieces that a ring takes its memory in.
const segmentBytes = 64 << 10

type segment [segmentBytes]byte

// A ring is a queue of entries in a bounded number of segments, which it allocates as it grows. No entry crosses the
// end of a segment. Loop only.
type ring struct {
	segments []*segment // nil: not taken yet
	head     int        // where the next entry goes
	tail     int        // the oldest entry
	used     int        // from tail to head
}

func newRing(segments int) ring { return ring{segments: make([]*segment, segments)} }

func (r *ring) size() int { return len(r.segments) * segmentBytes }

// at returns the entry at a place.
func (r *ring) at(place int) entry {
	return r.segments[uint(place)/segmentBytes][uint(place)%segmentBytes:]
}

// gap returns the rest of the head's segment, if that is too short for an entry.
func (r *ring) gap(size int) int {
	if left := segmentBytes - r.head%segmentBytes; left < size {
		return left
	}
	return 0
}

// fits reports whether there is room for an entry.
func (r *ring) fits(size int) bool { return r.used+r.gap(size)+size <= r.size() }

// push makes room for an entry that fits, and returns its place.
func (r *ring) push(size int) (place int) {
	if gap := r.gap(size); gap > 0 {
		e := r.at(r.head)
		clear(e[:min(gap, header)]) // A size of zero says that the segment ends here.
		r.head = (r.head + gap) % r.size()
		r.used += gap
	}
	place = r.head
	if s := &r.segments[place/segmentBytes]; *s == nil {
		*s = new(segment)
	}
	r.head = (r.head + size) % r.size()
	r.used += size
	return place
}

// oldest returns the entry at the tail, or false if the ring is empty.
func (r *ring) oldest() (e entry, ok bool) {
	if r.used == 0 {
		return nil, false
	}
	if left := segmentBytes - r.tail%segmentBytes; left < header || r.at(r.tail).size() == 0 {
		r.tail = (r.tail + left) % r.size()
		r.used -= left
	}
	return r.at(r.tail), true
}

// pop removes the entry at the tail, which oldest has returned.
func (r *ring) pop(size int) {
	r.tail = (r.tail + size) % r.size()
	r.used -= size
}
