package trace

import (
	"context"
	"io"

	"github.com/rankd/rankd/internal/fileio"
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
	waiting *fileio.Queue[*Recording]
}

// queueMax is how many recordings a Queue holds.
const queueMax = 256

// NewQueue returns a Queue that calls handle for one recording after the other. Each is a copy that handle may keep. Close ends it.
func NewQueue(handle func(*Recording)) *Queue { return &Queue{fileio.NewQueue(queueMax, handle)} }

// Take implements Sink. It never blocks.
func (q *Queue) Take(r *Recording) { q.waiting.Add(1, r.Keep) }

// Dropped returns how many recordings were dropped so far.
func (q *Queue) Dropped() int { return int(q.waiting.Dropped()) }

// Close handles what waits, and returns how many recordings were dropped. A second call returns the same.
func (q *Queue) Close() (dropped int) {
	dropped, _ = q.Shutdown(context.Background())
	return dropped
}

// Shutdown is Close that waits no longer than ctx. If ctx ends first, recordings that wait are dropped, and the error is the cause of ctx.
func (q *Queue) Shutdown(ctx context.Context) (dropped int, err error) {
	err = q.waiting.Close(ctx)
	return q.Dropped(), err
}

// A Writer is a Sink that writes each trace as one line of JSON, through a Queue. After an error of writing it goes on with the next
// trace. Any goroutine.
type Writer struct {
	queue *Queue
	to    *fileio.Checked
}

// NewWriter returns a Writer to w. Close ends it. The Writer calls report, on its own goroutine, with the error when writing begins to
// fail, and with nil when it works again. report may be nil.
func NewWriter(w io.Writer, report func(error)) *Writer {
	s := &Writer{to: fileio.NewChecked(w, report)}
	s.queue = NewQueue(func(r *Recording) {
		line, _ := r.Trace().MarshalJSON() // A trace has nothing that JSON lacks.
		_, _ = s.to.Write(append(line, '\n'))
	})
	return s
}

// Take implements Sink. It never blocks.
func (s *Writer) Take(r *Recording) { s.queue.Take(r) }

// Dropped returns how many recordings were dropped so far.
func (s *Writer) Dropped() uint64 { return s.queue.waiting.Dropped() }

// Failures returns how many writes have failed.
func (s *Writer) Failures() uint64 { return s.to.Failures() }

// Close writes what waits, and returns how many recordings were dropped and the first error of writing. A second call
// returns the same.
func (s *Writer) Close() (dropped int, err error) { return s.Shutdown(context.Background()) }

// Shutdown is Close that waits no longer than ctx. If ctx ends first, recordings that wait are dropped, and the error is the cause of ctx.
func (s *Writer) Shutdown(ctx context.Context) (dropped int, err error) {
	dropped, err = s.queue.Shutdown(ctx)
	if err == nil {
		err = s.to.Err()
	}
	return dropped, err
}
