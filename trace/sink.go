package trace

import (
	"context"
	"io"
	"sync"
)

// A Sink takes recordings of requests as they end. Any goroutine calls it, the loop among them, so Take must not
// block and must not compute for long: Recording.Trace belongs on another goroutine. The Recording is valid until Take
// returns. A sink that chooses, slow requests for example, copies with Keep what it wants.
type Sink interface {
	Take(*Recording)
}

// A Chooser is a Sink that chooses requests before they run: the engine records only those that the sink wants. Any
// goroutine.
type Chooser interface {
	Sink
	// Wants reports whether the sink wants the recording of a request, whose caller gave ctx to the engine. Any goroutine calls it, the
	// loop among them, so it must not block.
	Wants(ctx context.Context) bool
}

// SinkFunc is a function that is a Sink. Any goroutine.
type SinkFunc func(*Recording)

// Take implements Sink.
func (f SinkFunc) Take(r *Recording) { f(r) }

// A Queue is a Sink that hands recordings to a function on a goroutine of its own: what comes while queueMax recordings
// wait is dropped and counted. Any goroutine.
type Queue struct {
	waiting chan *Recording
	done    chan struct{}
	mu      sync.Mutex // guards closed and dropped
	closed  bool
	dropped int
}

// queueMax is how many recordings a Queue holds.
const queueMax = 256

// NewQueue returns a Queue that calls handle for one recording after the other. Each is a copy that handle may keep. Close ends it.
func NewQueue(handle func(*Recording)) *Queue {
	q := &Queue{waiting: make(chan *Recording, queueMax), done: make(chan struct{})}
	go func() {
		defer close(q.done)
		for r := range q.waiting {
			handle(r)
		}
	}()
	return q
}

// Take implements Sink. It never blocks.
func (q *Queue) Take(r *Recording) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.waiting) == cap(q.waiting) {
		q.dropped++
		return
	}
	q.waiting <- r.Keep() // has room: nobody else fills the queue without mu
}

// Close handles what waits, and returns how many recordings were dropped. A second call returns the same.
func (q *Queue) Close() (dropped int) {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		close(q.waiting)
	}
	dropped = q.dropped
	q.mu.Unlock()
	<-q.done
	return dropped
}

// A Writer is a Sink that writes each trace as one line of JSON, through a Queue. Any goroutine.
type Writer struct {
	queue *Queue
	err   error // of the first failed write; of the queue's goroutine until Close
}

// NewWriter returns a Writer to w. Close ends it.
func NewWriter(w io.Writer) *Writer {
	s := new(Writer)
	s.queue = NewQueue(func(r *Recording) {
		if s.err != nil {
			return
		}
		var line []byte
		if line, s.err = r.Trace().MarshalJSON(); s.err == nil {
			_, s.err = w.Write(append(line, '\n'))
		}
	})
	return s
}

// Take implements Sink. It never blocks.
func (s *Writer) Take(r *Recording) { s.queue.Take(r) }

// Close writes what waits, and returns how many recordings were dropped and the first error of writing. A second call
// returns the same.
func (s *Writer) Close() (dropped int, err error) {
	dropped = s.queue.Close()
	return dropped, s.err
}
