package taskrun

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rankd/rankd/internal/rowcache"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
)

// A ReadAhead is what one node has read for a later one: commands, and the replies to them. It belongs to the body that
// fills it, then to its Ahead, and then to the body that takes it. One goroutine at a time.
type ReadAhead struct {
	Endpoint *registry.Endpoint
	Commands resp.Batch
	Replies  resp.Gathered
	Token    rowcache.Token // of the first of the commands, for values that are kept
	Sent     clock.Time     // when it left; zero: nothing is kept

	next int // commands before it were found already, or passed over
}

// Find looks for all commands of a batch, in their order, behind those that it has found before. It appends their
// numbers to dst. ok is false if one is not there: then nothing further is found.
func (a *ReadAhead) Find(b *resp.Batch, dst []int) (numbers []int, ok bool) {
	at := a.next
	a.next = a.Commands.Len()
	for i := range b.Len() {
		for want := b.Span(i, i+1); ; at++ {
			if at >= a.Commands.Len() {
				return dst, false
			}
			if bytes.Equal(a.Commands.Span(at, at+1), want) {
				break
			}
		}
		dst = append(dst, at)
		at++
	}
	a.next = at
	return dst, true
}

// Ahead holds what nodes of a request have read for later ones until those take it. A node that was given up may leave
// something here that nobody takes. The zero value is ready. Any goroutine.
type Ahead struct {
	held  atomic.Int32 // of reads
	mu    sync.Mutex
	reads []heldAhead  // guarded by mu
	spare []*ReadAhead // for New; guarded by mu
}

// heldAhead is what waits for a node. Guarded by the Ahead's mu.
type heldAhead struct {
	node int
	read *ReadAhead
}

// The most that an Ahead keeps for its next use.
const (
	spareMax      = 8
	spareBytesMax = 256 << 10
)

// New returns an empty ReadAhead. It may have the memory of one that was freed.
func (a *Ahead) New() *ReadAhead {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.spare); n > 0 {
		r := a.spare[n-1]
		a.spare = a.spare[:n-1]
		return r
	}
	return new(ReadAhead)
}

// Put leaves r to a node. It is not the caller's any more.
func (a *Ahead) Put(node int, r *ReadAhead) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reads = append(a.reads, heldAhead{node, r})
	a.held.Store(int32(len(a.reads)))
}

// Take returns what was left to a node, once; nil: nothing.
func (a *Ahead) Take(node int) *ReadAhead {
	if a.held.Load() == 0 { // Usually nobody reads ahead.
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.reads, func(h heldAhead) bool { return h.node == node })
	if i < 0 {
		return nil
	}
	r := a.reads[i].read
	a.reads = slices.Delete(a.reads, i, i+1)
	a.held.Store(int32(len(a.reads)))
	return r
}

// Free takes a ReadAhead back whose replies nobody looks at any more.
func (a *Ahead) Free(r *ReadAhead) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.free(r)
}

func (a *Ahead) free(r *ReadAhead) {
	if len(a.spare) == spareMax || r.Replies.Size() > spareBytesMax {
		return
	}
	r.Commands.Shrink(spareBytesMax)
	r.Replies.Reset()
	r.Endpoint, r.Token, r.Sent, r.next = nil, 0, 0, 0
	a.spare = append(a.spare, r)
}

// Clear ends a request, of which no body runs: what nobody has taken is free.
func (a *Ahead) Clear() {
	if a.held.Load() == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, h := range a.reads {
		a.free(h.read)
	}
	clear(a.reads)
	a.reads = a.reads[:0]
	a.held.Store(0)
}
