package taskrun

import (
	"bytes"
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

// Find looks for the commands of a batch, in their order, behind those that it has found before. It appends their
// numbers to dst, up to the first one that is not there: then nothing further is found.
func (a *ReadAhead) Find(b *resp.Batch, dst []int) (numbers []int) {
	at := a.next
	for i := range b.Len() {
		want := b.Span(i, i+1)
		for at < a.Commands.Len() && !bytes.Equal(a.Commands.Span(at, at+1), want) {
			at++
		}
		if at == a.Commands.Len() {
			break
		}
		dst = append(dst, at)
		at++
	}
	a.next = at
	return dst
}

// keepBytes is the most bytes of replies whose memory is used again.
const keepBytes = 256 << 10

// Reset empties a, whose replies nobody looks at any more. It reports whether its memory is worth keeping.
func (a *ReadAhead) Reset() bool {
	if a.Replies.Size() > keepBytes {
		return false
	}
	a.Commands.Shrink(keepBytes)
	a.Replies.Reset()
	a.Endpoint, a.Token, a.Sent, a.next = nil, 0, 0, 0
	return true
}

// Ahead holds what nodes of a request have read for later ones until those take it. A node that was given up may leave
// something here that nobody takes. The zero value is ready. Any goroutine.
type Ahead struct {
	held  atomic.Int32 // of reads
	mu    sync.Mutex
	reads map[int]*ReadAhead // by node; guarded by mu
}

// Put leaves r to a node. It is not the caller's any more.
func (a *Ahead) Put(node int, r *ReadAhead) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.reads == nil {
		a.reads = make(map[int]*ReadAhead)
	}
	a.reads[node] = r
	a.held.Store(int32(len(a.reads)))
}

// Take returns what was left to a node, once; nil: nothing.
func (a *Ahead) Take(node int) *ReadAhead {
	if a.held.Load() == 0 { // Usually nobody reads ahead.
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.reads[node]
	delete(a.reads, node)
	a.held.Store(int32(len(a.reads)))
	return r
}

// Clear ends a request, of which no body runs. It drops what nobody has taken.
func (a *Ahead) Clear() {
	if a.held.Load() == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.reads)
	a.held.Store(0)
}
