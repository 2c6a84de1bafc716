package resp

import "slices"

// Gathered holds copies of replies, on as many tapes as they need, so that no large buffer is ever copied to grow.
// The zero value is empty and ready. One goroutine at a time.
type Gathered struct {
	tapes []*tape // the last of them takes what is added
	all   tape    // its list holds the replies, which are on these tapes
	size  int     // bytes on them
}

// gatheredTapeBytes and gatheredTapeValues end a tape: the next reply begins another.
const (
	gatheredTapeBytes  = 256 << 10
	gatheredTapeValues = gatheredTapeBytes / 8
)

// gatheredKeep is the longest list that Reset keeps: 1 MiB.
const gatheredKeep = tapeKeepValues

// Add appends copies of replies.
func (g *Gathered) Add(r Replies) {
	for _, reply := range r.All() {
		g.all.list = append(g.all.list, g.copyOf(reply))
	}
}

// Set puts a copy of the reply to command i of n into its place. The caller gives the same n each time, and all n replies before it
// takes them.
func (g *Gathered) Set(i, n int, r Reply) {
	g.room(n)
	g.all.list[i] = g.copyOf(r)
}

// setPart is Set for an array of elements from to to-1 of an array.
func (g *Gathered) setPart(i, n int, r Reply, from, to int) {
	g.room(n)
	t := g.last()
	before, entry := len(t.data), uint32(len(t.vals))
	t.vals = append(t.vals, value{kind: Array, n: uint32(to - from)})
	for k := from; k < to; k++ {
		t.copyOf(r.At(k))
	}
	t.vals[entry].off = uint32(len(t.vals))
	g.size += len(t.data) - before
	g.all.list[i] = Reply{t, entry}
}

// Fail puts an error in place of the missing reply to command i of n: its Err returns err.
func (g *Gathered) Fail(i, n int, err error) {
	g.room(n)
	t := g.last()
	entry := uint32(len(t.vals))
	text := err.Error()
	t.vals = append(t.vals, value{Error, uint32(len(t.data)), uint32(len(text))})
	t.data = append(t.data, text...)
	t.fail(entry, err)
	g.all.list[i] = Reply{t, entry}
}

// Refuse is Set for an error reply. Its Err returns err, which says more.
func (g *Gathered) Refuse(i, n int, r Reply, err error) {
	g.Set(i, n, r)
	kept := g.all.list[i]
	kept.t.fail(kept.i, err)
}

// room makes room for n replies in their places.
func (g *Gathered) room(n int) {
	if len(g.all.list) < n {
		g.all.list = slices.Grow(g.all.list, n-len(g.all.list))[:n]
	}
}

// has reports whether the reply to command i is there.
func (g *Gathered) has(i int) bool { return g != nil && g.all.list != nil && g.all.list[i].t != nil }

// last returns the tape that takes what is added.
func (g *Gathered) last() *tape {
	n := len(g.tapes)
	if n == 0 || len(g.tapes[n-1].data) >= gatheredTapeBytes || len(g.tapes[n-1].vals) >= gatheredTapeValues {
		g.tapes = append(g.tapes, new(tape))
		n++
	}
	return g.tapes[n-1]
}

func (g *Gathered) copyOf(r Reply) Reply {
	t := g.last()
	before := len(t.data)
	entry := t.copyOf(r)
	if err := r.t.errs[r.i]; err != nil {
		t.fail(entry, err)
	}
	g.size += len(t.data) - before
	return Reply{t, entry}
}

// Size returns the length in bytes of what is held.
func (g *Gathered) Size() int { return g.size }

// Replies returns a view of all replies, valid until Reset.
func (g *Gathered) Replies() Replies { return Replies{t: &g.all, n: uint32(len(g.all.list))} }

// Reset forgets all replies. It keeps the memory, but at most some 4 MiB of it.
func (g *Gathered) Reset() {
	if len(g.tapes) > 0 {
		clear(g.tapes[1:])
		g.tapes = g.tapes[:1]
		g.tapes[0].clear()
	}
	clear(g.all.list)
	g.all.list, g.size = g.all.list[:0], 0
	if cap(g.all.list) > gatheredKeep {
		g.all.list = nil
	}
}
