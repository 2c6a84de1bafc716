package trace

import (
	"io"
	"sync"
)

// A Sink takes recordings of requests as they end. Any goroutine calls it, the loop among them, so Take must not
// block and must not compute for long: Recording.Trace belongs on another goroutine. The Recording is valid until Take
// returns. A sink that chooses, slow requests for example, copies with Keep what it wants.
type Sink interface {
	Take(*Recording)
}

// SinkFunc is a function that is a Sink. Any goroutine.
type SinkFunc func(*Recording)

// Take implements Sink.
func (f SinkFunc) Take(r *Recording) { f(r) }

// A Writer is a Sink that writes each trace as one line of JSON. A goroutine of its own does so: what comes while
// writerQueue recordings wait is dropped and counted. Any goroutine.
type Writer struct {
	queue   chan *Recording
	done    chan struct{}
	mu      sync.Mutex // guards closed and dropped
	closed  bool
	dropped int
	err     error // of the first failed write; read after done
}

// writerQueue is how many recordings a Writer holds that are not written yet.
const writerQueue = 256

// NewWriter returns a Writer to w. Close ends it.
func NewWriter(w io.Writer) *Writer {
	s := &Writer{queue: make(chan *Recording, writerQueue), done: make(chan struct{})}
	go s.write(w)
	return s
}

func (s *Writer) write(w io.Writer) {
	defer close(s.done)
	for r := range s.queue {
		if s.err != nil {
			continue
		}
		var line []byte
		if line, s.err = r.Trace().MarshalJSON(); s.err == nil {
			_, s.err = w.Write(append(line, '\n'))
		}
	}
}

// Take implements Sink. It never blocks.
func (s *Writer) Take(r *Recording) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		s.dropped++
		return
	}
	if len(s.queue) == cap(s.queue) {
		s.dropped++
		return
	}
	s.queue <- r.Keep() // has room: nobody else fills the queue without mu
}

// Close writes what waits, and returns how many recordings were dropped and the first error of writing. A second call
// returns the same.
func (s *Writer) Close() (dropped int, err error) {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.queue)
	}
	dropped = s.dropped
	s.mu.Unlock()
	<-s.done
	return dropped, s.err
}
