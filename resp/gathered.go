package resp

// Gathered holds copies of the replies to a batch that was sent in parts. The zero value is
// empty and ready. One goroutine at a time.
type Gathered struct{ tape }

// Add appends a copy of the replies to one part.
func (g *Gathered) Add(r Replies) { g.add(r.t) }

// Size returns the length of all replies in bytes.
func (g *Gathered) Size() int { return len(g.data) }

// Replies returns a view of all replies, valid until Reset.
func (g *Gathered) Replies() Replies { return Replies{&g.tape} }

// Reset forgets all replies. It keeps the memory, but at most some 3 MiB of it.
func (g *Gathered) Reset() { g.clear() }
