package resp

import (
	"bytes"
	"hash/maphash"
)

// outboxBytes is when an outbox is full: it leaves before more is gathered. Loop and server work
// at the same time if pieces have some 50 commands; see package reactor.
const outboxBytes = 2 << 10

// An outbox gathers the commands that will leave next on one connection. Until they leave,
// equal reads of several calls, or of one, are one command. Loop only.
type outbox struct {
	buf   []byte // the commands, encoded
	len   int    // their number
	parts []part
	bulk  bulk
	stale bool // a call that asks for something here has given up

	// For commands that are shared:
	starts []uint32  // where each begins
	reads  readTable // of those since the last that may write
}

func (o *outbox) full() bool { return len(o.buf) >= outboxBytes }

func (o *outbox) command(i int) []byte {
	if i+1 < len(o.starts) {
		return o.buf[o.starts[i]:o.starts[i+1]]
	}
	return o.buf[o.starts[i]:]
}

// add gathers commands from to to-1 of a call. With share, equal reads become one command.
func (o *outbox) add(c *Call, from, to int, share bool) {
	// In place: a copy of fields just stored waits for all of them.
	o.parts = append(o.parts, part{})
	p := &o.parts[len(o.parts)-1]
	p.call, p.generation = c, c.generation
	p.from, p.to, p.at = int32(from), int32(to), int32(o.len)
	if share {
		o.join(p)
		return
	}
	o.buf = append(o.buf, c.Batch.Span(from, to)...)
	o.len += to - from
	p.end = int32(o.len)
}

// join gathers the commands of a part one by one, and finds equal reads.
func (o *outbox) join(p *part) {
	b := &p.call.Batch
	var head []byte // of the command before, its name included: a batch has few names
	var read bool
	for k := p.from; k < p.to; k++ {
		command := b.Span(int(k), int(k)+1)
		if head == nil || !bytes.HasPrefix(command, head) {
			_, end := commandName(command)
			head, read = command[:end], readOnly(command)
		}
		place := o.place(command, read)
		p.end = max(p.end, place+1)
		switch {
		case k == p.from:
			p.at = place
		case p.at != scattered && place != p.at+k-p.from:
			p.scatter(k)
		}
		if p.at == scattered {
			p.call.pieces.places[k] = uint32(place)
		}
	}
}

// place returns where an equal read is, or appends the command. read says that it is a read.
func (o *outbox) place(command []byte, read bool) int32 {
	var hash uint32
	if read {
		hash = readHash(command)
		if place := o.find(hash, command); place >= 0 {
			return int32(place)
		}
	}
	place := o.len
	o.len++
	o.starts = append(o.starts, uint32(len(o.buf)))
	o.buf = append(o.buf, command...)
	if read {
		o.reads.enter(hash, place)
	} else {
		o.reads.clear() // A read behind a write must not be answered from before it.
	}
	return int32(place)
}

// scatter has pieces.places tell the places of the part, of which the commands before k have
// theirs in a row.
func (p *part) scatter(k int32) {
	in, n := p.call.inPieces(), p.call.Batch.Len()
	if cap(in.places) < n {
		in.places = append(make([]uint32, 0, n), in.places...)
	}
	in.places = in.places[:n]
	for i := p.from; i < k; i++ {
		in.places[i] = uint32(p.at + i - p.from)
	}
	p.at = scattered
}

// find returns the place of a read equal to command, or -1.
func (o *outbox) find(hash uint32, command []byte) int {
	return o.reads.find(hash, func(i int) bool { return bytes.Equal(o.command(i), command) })
}

// hasAll reports whether all these commands of a call are reads that are here already.
func (o *outbox) hasAll(c *Call, from, to int) bool {
	for k := from; k < to; k++ {
		command := c.Batch.Span(k, k+1)
		if !readOnly(command) || o.find(readHash(command), command) < 0 {
			return false
		}
	}
	return true
}

// gatherAgain leaves out what only calls that gave up had asked for.
func (o *outbox) gatherAgain(share bool) {
	parts, bulk := o.parts, o.bulk
	o.parts = nil
	o.reset()
	o.bulk = bulk // more than is left of it; the answers give it back
	for i := range parts {
		if p := &parts[i]; p.wanted() {
			o.add(p.call, int(p.from), int(p.to), share)
		}
	}
}

// reset empties the outbox and keeps its memory, within reason.
func (o *outbox) reset() {
	if cap(o.buf) > batchKeepBytes {
		*o = outbox{}
	}
	clear(o.parts)
	o.buf, o.len, o.starts, o.parts = o.buf[:0], 0, o.starts[:0], o.parts[:0]
	o.bulk, o.stale = bulk{}, false
	o.reads.clear()
}

// A readTable finds reads by their hash: open addressing, linear probing, at most half full.
// Loop only.
type readTable struct {
	entries []readEntry // its length is a power of two, or 0
	len     int
}

type readEntry struct {
	hash  uint32
	index uint32 // of the command, plus 1; 0: free
}

// readTableKeep is the largest table that is kept: 32 KiB.
const readTableKeep = 4096

var readSeed = maphash.MakeSeed()

func readHash(command []byte) uint32 {
	h := maphash.Bytes(readSeed, command)
	return uint32(h ^ h>>32)
}

func (t *readTable) find(hash uint32, equal func(index int) bool) int {
	if t.len == 0 {
		return -1
	}
	for i := hash; ; i++ {
		e := &t.entries[i&uint32(len(t.entries)-1)]
		if e.index == 0 {
			return -1
		}
		if e.hash == hash && equal(int(e.index-1)) {
			return int(e.index - 1)
		}
	}
}

func (t *readTable) enter(hash uint32, index int) {
	if 2*(t.len+1) > len(t.entries) {
		old := t.entries
		t.entries, t.len = make([]readEntry, max(128, 2*len(old))), 0
		for _, e := range old {
			if e.index > 0 {
				t.enter(e.hash, int(e.index-1))
			}
		}
	}
	i := hash
	for t.entries[i&uint32(len(t.entries)-1)].index > 0 {
		i++
	}
	t.entries[i&uint32(len(t.entries)-1)] = readEntry{hash, uint32(index + 1)}
	t.len++
}

func (t *readTable) clear() {
	switch {
	case t.len == 0:
	case len(t.entries) > readTableKeep:
		*t = readTable{}
	default:
		clear(t.entries)
		t.len = 0
	}
}
