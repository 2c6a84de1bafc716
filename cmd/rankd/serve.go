package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/command"
	"github.com/rankd/rankd/request"
)

// serve answers the requests on stdin until they end or ctx does. The error is
// command.ErrFailed if a request failed.
func serve(ctx context.Context, e *rankd.Engine, o *options, stdin io.Reader, stdout io.Writer) error {
	s := newServer(e, o)
	newStream := request.NewStream
	if o.input == inputLines {
		newStream = request.NewLineStream
	}
	go s.read(newStream(stdin, o.maxRequestBytes))
	return s.write(ctx, stdout)
}

// server moves requests from a stream to the engine, and answers back in the
// order in which their requests came.
//
// The number of slots bounds it. A request takes a slot before it is read and gives the slot
// back once its answer is written. A slow request therefore holds up reading instead of
// letting answers pile up behind it.
type server struct {
	engine *rankd.Engine
	format rankd.Format
	deltas bool
	free   chan *slot // slots not in use
	line   chan *slot // slots in use, in input order; has room for all slots

	mu      sync.Mutex
	stopped bool // no slot may join the line any more; guarded by mu
}

// slot holds one request on its way. It belongs to the reader until it joins the line, and
// then to the writer; the engine sets answer or err before it sends on done. A free slot is
// empty, since an answer may have millions of rows.
type slot struct {
	request rankd.Request
	answer  *rankd.Answer
	err     error                      // of a request that failed, or did not get to the engine
	done    chan struct{}              // one value per request: the outcome is there
	finish  func(*rankd.Answer, error) // made once per slot, not per request
}

// empty forgets the request and its outcome.
func (p *slot) empty() { *p = slot{done: p.done, finish: p.finish} }

// answerBytesKept bounds the buffer that one answer leaves to the next. Thousands of
// candidates fit; the memory of a rare giant is given back.
const answerBytesKept = 1 << 20

func newServer(e *rankd.Engine, o *options) *server {
	n := o.maxInflight
	s := &server{engine: e, format: o.Format(), deltas: o.deltas, free: make(chan *slot, n), line: make(chan *slot, n)}
	for range n {
		p := &slot{done: make(chan struct{}, 1)}
		p.finish = func(a *rankd.Answer, err error) {
			p.answer, p.err = a, err
			p.done <- struct{}{} // has room: one outcome per request
		}
		s.free <- p
	}
	return s
}

// read is the reader goroutine. It ends with the stream, or with the first
// document after the line was closed.
func (s *server) read(stream *request.Stream) {
	defer close(s.line)
	for p := range s.free {
		doc, err := stream.Next()
		if err == io.EOF {
			return
		}
		broken := err != nil && !errors.As(err, new(*request.Error)) // stdin, not a document
		if err == nil {
			p.request, err = s.engine.ParseRequest(doc)
			p.request.SchemaDeltas = s.deltas
			err = stream.Locate(err, doc)
		}
		if err != nil {
			p.err = s.engine.Intake().Refused(err)
		}
		if !s.join(p) || broken {
			return
		}
	}
}

// join puts p at the end of the line and starts it. It reports false, having
// done neither, if the line is closed.
func (s *server) join(p *slot) bool {
	s.mu.Lock()
	stopped := s.stopped
	if !stopped {
		s.line <- p
	}
	s.mu.Unlock()
	switch {
	case stopped:
		return false
	case p.err != nil:
		p.done <- struct{}{}
	default:
		s.engine.Submit(context.Background(), p.request, p.finish)
	}
	return true
}

// stop closes the line to newcomers. The slots in line will be answered.
func (s *server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
}

// write is the writer. It takes the slots as they stand in line, waits for the outcome of
// each, and writes. It returns when the line has ended, or has
// been emptied after ctx ended.
func (s *server) write(ctx context.Context, stdout io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, s.stop)() // at once, and not when the line happens to be empty
	// Nobody reads once stdout has failed: finish the requests in flight, take in no more.
	out := bufio.NewWriterSize(&failureHook{w: stdout, onError: cancel}, 64<<10)
	var buf []byte
	failed := false
	for p := s.next(ctx, out); p != nil; p = s.next(ctx, out) {
		failed = failed || p.err != nil
		buf = s.appendAnswer(buf[:0], p)
		p.empty()             // before the write, which waits for the reader of stdout
		_, _ = out.Write(buf) // an error stays, for the last Flush to report
		if cap(buf) > answerBytesKept {
			buf = nil
		}
		s.free <- p
	}
	if err := out.Flush(); err != nil {
		return &command.RuntimeError{Err: fmt.Errorf("writing answers: %w", err)}
	}
	if failed {
		return command.ErrFailed
	}
	return nil
}

// failureHook passes writes on and tells of an error.
type failureHook struct {
	w       io.Writer
	onError func()
}

func (h *failureHook) Write(p []byte) (int, error) {
	n, err := h.w.Write(p)
	if err != nil {
		h.onError()
	}
	return n, err
}

// next returns the first slot in line once its outcome is there, or nil at the
// end. It flushes before it waits, so that no answer is held back.
func (s *server) next(ctx context.Context, out *bufio.Writer) *slot {
	var p *slot
	select {
	case p = <-s.line:
	default:
		_ = out.Flush()
		select {
		case p = <-s.line:
		case <-ctx.Done():
			s.stop()
			select {
			case p = <-s.line:
			default: // empty, and nothing joins any more
			}
		}
	}
	if p == nil {
		return nil
	}
	select {
	case <-p.done:
	default:
		_ = out.Flush()
		<-p.done
	}
	return p
}

// appendAnswer appends the line that answers p.
func (s *server) appendAnswer(dst []byte, p *slot) []byte {
	var failed *rankd.Error
	if errors.As(p.err, &failed) {
		return failed.AppendJSON(dst)
	}
	return p.answer.AppendJSON(dst, s.format)
}
