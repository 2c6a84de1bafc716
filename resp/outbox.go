package resp

import (
	"bytes"
	"hash/maphash"
)

// outboxBytes is the size at which an outbox is full: it is sent before more is gathered. Loop and server work at the
// same time if pieces have some 50 commands; see package reactor.
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
	starts  []uint32  // where each begins
	reads   readTable // of those since the last that may write
	heads   [4]head   // of commands lately
	oldHead int       // the oldest of them
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
	// Built in place: copying fields that were just stored would stall on them.
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

// join gathers the commands of a part, and finds equal reads. It copies consecutive new commands together.
func (o *outbox) join(p *part) {
	b := &p.call.Batch
	var head *head
	begin := b.begin(int(p.from))
	fresh := begin // what follows it in the batch up to begin is noted, but not yet in buf
	for k := p.from; k < p.to; k++ {
		end := b.begin(int(k) + 1)
		command := b.buf[begin:end]
		if head == nil || !bytes.HasPrefix(command, head.text) {
			head = o.headOf(command)
		}
		place, shared := o.len, false
		if !head.read {
			o.reads.clear() // A read behind a write must not get an answer from before the write.
		} else if hash := readHash(command[len(head.text):]); o.reads.add(hash, place) {
			o.buf = append(o.buf, b.buf[fresh:begin]...)
			fresh = begin
			if place, shared = o.find(hash, command); !shared {
				place = o.len
				o.reads.enter(hash, place)
			}
		}
		if shared {
			fresh = end
		} else {
			o.starts = append(o.starts, uint32(len(o.buf)+begin-fresh))
			o.len++
		}
		p.end = max(p.end, int32(place)+1)
		if p.at == scattered || int32(place) != p.at+k-p.from {
			p.take(k, int32(place))
		}
		begin = end
	}
	o.buf = append(o.buf, b.buf[fresh:begin]...)
}

// A head is an encoded command up to the end of its name.
type head struct {
	text []byte
	read bool // the command is known to be a read
}

// headOf returns the head of a command. A batch has few different names, so it is mostly one of the latest heads.
func (o *outbox) headOf(command []byte) *head {
	for i := range o.heads {
		if h := &o.heads[i]; len(h.text) > 0 && bytes.HasPrefix(command, h.text) {
			return h
		}
	}
	h := &o.heads[o.oldHead]
	o.oldHead = (o.oldHead + 1) % len(o.heads)
	_, end := commandName(command)
	h.text, h.read = append(h.text[:0], command[:end]...), ReadOnly(command)
	return h
}

// take notes the place of command k of the part, if it does not follow the one before.
func (p *part) take(k, place int32) {
	if k == p.from {
		p.at = place
		return
	}
	if p.at != scattered {
		p.scatter(k)
	}
	p.call.pieces.places[k] = uint32(place)
}

// scatter fills pieces.places for the part. The commands before k have their places in a row.
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

// find returns the place of a read equal to command, if there is one.
func (o *outbox) find(hash uint32, command []byte) (place int, ok bool) {
	if o.reads.len == 0 {
		return 0, false
	}
	for i := hash; ; i++ {
		e := o.reads.at(i)
		if e.index == 0 {
			return 0, false
		}
		if e.hash == hash && bytes.Equal(o.command(int(e.index-1)), command) {
			return int(e.index - 1), true
		}
	}
}

// hasAll reports whether all these commands of a call are reads that are here already.
func (o *outbox) hasAll(c *Call, from, to int) bool {
	for k := from; k < to; k++ {
		command := c.Batch.Span(k, k+1)
		head := o.headOf(command)
		if !head.read {
			return false
		}
		if _, ok := o.find(readHash(command[len(head.text):]), command); !ok {
			return false
		}
	}
	return true
}

// gatherAgain drops commands that only calls that gave up had asked for.
func (o *outbox) gatherAgain(share bool) {
	parts, bulk := o.parts, o.bulk
	o.parts = nil
	o.reset()
	o.bulk = bulk // may be more than the remaining commands need; their answers release it
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

// readTableKeep is the largest table that is kept for reuse: 32 KiB.
const readTableKeep = 4096

var readSeed = maphash.MakeSeed()

// readHash returns the hash of a command without its head.
func readHash(arguments []byte) uint32 {
	h := maphash.Bytes(readSeed, arguments)
	return uint32(h ^ h>>32)
}

// at returns the entry in which the search for a hash goes on.
func (t *readTable) at(i uint32) *readEntry { return &t.entries[i&uint32(len(t.entries)-1)] }

// add enters a read, unless there is one of the same hash. It reports whether there is.
func (t *readTable) add(hash uint32, index int) (found bool) {
	if 2*(t.len+1) > len(t.entries) {
		t.double()
	}
	for i := hash; ; i++ {
		e := t.at(i)
		if e.index == 0 {
			*e = readEntry{hash, uint32(index + 1)}
			t.len++
			return false
		}
		if e.hash == hash {
			return true
		}
	}
}

// enter enters a read for which there is room.
func (t *readTable) enter(hash uint32, index int) {
	i := hash
	for t.at(i).index > 0 {
		i++
	}
	*t.at(i) = readEntry{hash, uint32(index + 1)}
	t.len++
}

// double makes room for as many reads again.
func (t *readTable) double() {
	old := t.entries
	t.entries, t.len = make([]readEntry, max(128, 2*len(old))), 0
	for _, e := range old {
		if e.index > 0 {
			t.enter(e.hash, int(e.index-1))
		}
	}
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
