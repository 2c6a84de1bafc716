package trace

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/rankd/rankd/loop/clock"
)

// Journals has the journals of an engine, and bounds the events that the requests in flight hold together. Any goroutine.
type Journals struct {
	most int64
	left atomic.Int64
	free sync.Pool // of *Journal
}

// DefaultEvents is how many events the requests in flight of an engine hold together, at most: 32 MiB. A request
// of five nodes takes some 40.
const DefaultEvents = 1 << 20

// requestEvents is how many events one request holds, at most: 2 MiB.
const requestEvents = 1 << 16

// chunkEvents is how many events a Journal takes at once.
const chunkEvents = 64

// NewJournals returns journals of that many events that read the engine's clock; zero means DefaultEvents.
func NewJournals(c clock.Clock, events int) *Journals {
	if events <= 0 {
		events = DefaultEvents
	}
	s := &Journals{most: int64(events)}
	s.left.Store(s.most)
	s.free.New = func() any {
		return &Journal{clock: c, all: s, ids: rand.NewPCG(rand.Uint64(), rand.Uint64())}
	}
	return s
}

// take reports whether there was room for another chunk.
func (s *Journals) take() bool {
	if s.left.Add(-chunkEvents) >= 0 {
		return true
	}
	s.left.Add(chunkEvents)
	return false
}

// Unused reports whether no request holds events.
func (s *Journals) Unused() bool { return s.left.Load() == s.most }

// give returns what was taken.
func (s *Journals) give(events int) { s.left.Add(int64(events)) }
