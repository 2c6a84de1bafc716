package resp

import "github.com/rankd/rankd/loop/clock"

// A slot stands for n commands on the wire, in one connection's FIFO. It is separate
// from the call so that a call that gave up can be used again at once, while its
// replies still find their place and are dropped.
type slot struct {
	call       *Call
	generation uint64 // of the call when it was sent
	n          int
	sentAt     clock.Time
}

// wanted reports whether the call still waits for this slot's replies.
func (s *slot) wanted() bool { return s.call.generation == s.generation }

// slotsKeep is the largest ring that an empty FIFO keeps: 40 KiB, enough for the
// default MaxInflight.
const slotsKeep = 1024

// slots is a FIFO of slots in a ring that doubles when it is full.
type slots struct {
	ring  []slot // its length is 0 or a power of two
	first int    // index of the oldest
	len   int
}

func (q *slots) push(s slot) {
	if q.len == len(q.ring) {
		ring := make([]slot, max(16, 2*len(q.ring)))
		n := copy(ring, q.ring[q.first:])
		copy(ring[n:], q.ring[:q.first])
		q.ring, q.first = ring, 0
	}
	q.ring[(q.first+q.len)&(len(q.ring)-1)] = s
	q.len++
}

// front returns the oldest slot, which must exist.
func (q *slots) front() *slot { return &q.ring[q.first] }

func (q *slots) pop() slot {
	s := q.ring[q.first]
	q.ring[q.first] = slot{}
	q.first = (q.first + 1) & (len(q.ring) - 1)
	q.len--
	if q.len == 0 && len(q.ring) > slotsKeep {
		q.ring, q.first = nil, 0
	}
	return s
}
