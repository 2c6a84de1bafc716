package resp

// Gathered holds copies of replies, on as many tapes as they need, so that no buffer that
// grows large is ever copied. The zero value is empty and ready. One goroutine at a time.
type Gathered struct {
	tapes []*tape // the last of them takes what is added
	all   tape    // its list holds the replies, which stand on these tapes
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

// set puts a copy of the reply to command i of n into its place.
func (g *Gathered) set(i, n int, r Reply) {
	if g.all.list == nil {
		g.all.list = make([]Reply, n)
	}
	g.all.list[i] = g.copyOf(r)
}

// has reports whether the reply to command i is there.
func (g *Gathered) has(i int) bool { return g != nil && g.all.list != nil && g.all.list[i].t != nil }

func (g *Gathered) copyOf(r Reply) Reply {
	n := len(g.tapes)
	if n == 0 || len(g.tapes[n-1].data) >= gatheredTapeBytes || len(g.tapes[n-1].vals) >= gatheredTapeValues {
		g.tapes = append(g.tapes, new(tape))
		n++
	}
	t := g.tapes[n-1]
	before := len(t.data)
	entry := t.copyOf(r)
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
