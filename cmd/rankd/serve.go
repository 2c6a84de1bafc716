package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/request"
	"github.com/rankd/rankd/scheduler"
)

// serve answers the requests on stdin until they end or ctx does. The error is
// errFailed if a request failed.
func (a *app) serve(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	format := request.Flat
	if a.opts.response == "fields" {
		format = request.Fields
	}
	s := newServer(a, request.NewEncoder(a.reg, format))
	newStream := request.NewStream
	if a.opts.input == inputLines {
		newStream = request.NewLineStream
	}
	go s.read(newStream(stdin, a.opts.maxRequestBytes))
	return s.write(ctx, stdout)
}

// server moves requests from a stream to the engine, and answers back in the
// order in which their requests came.
//
// What bounds it is the number of slots: a request takes one before it is read
// and gives it back once its answer is written, so that a slow request
// holds up reading instead of letting answers pile up behind it.
type server struct {
	app     *app
	encoder *request.Encoder
	free    chan *slot // slots not in use
	line    chan *slot // slots in use, in input order; never full, there being as many places as slots

	mu      sync.Mutex
	stopped bool // nothing may join the line any more; guarded by mu
}

// slot holds one request on its way. It belongs to the reader until it joins the
// line, and then to the writer, except that the engine may read request and sets
// result before it sends on done. A free slot is empty: a result may have millions of rows.
type slot struct {
	id      string           // request_id
	failure *request.Failure // of a request that did not get to the engine
	request scheduler.Execution
	result  *scheduler.Result
	done    chan struct{}           // one value per request: the outcome is there
	finish  func(*scheduler.Result) // made once per slot, not per request
}

// empty forgets the request and its result.
func (p *slot) empty() { *p = slot{done: p.done, finish: p.finish} }

// answerBytesKept bounds the buffer that one answer leaves to the next: room for
// thousands of candidates, and not the memory of a rare giant.
const answerBytesKept = 1 << 20

func newServer(a *app, encoder *request.Encoder) *server {
	n := a.opts.maxInflight
	s := &server{app: a, encoder: encoder, free: make(chan *slot, n), line: make(chan *slot, n)}
	for range n {
		p := &slot{done: make(chan struct{}, 1)}
		p.finish = func(r *scheduler.Result) {
			p.result = r
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
		var refused *request.Error
		if err != nil && !errors.As(err, &refused) {
			if err == io.EOF {
				return
			}
			failure := refusal(err) // stdin broke: say so, and that is all
			p.id, p.failure = failure.RequestID, &failure
			s.join(p)
			return
		}
		s.prepare(p, stream, doc, err, s.app.clock.Now())
		if !s.join(p) {
			return
		}
	}
}

// prepare fills p, which is empty, from one document of stream, or from the error in its place.
func (s *server) prepare(p *slot, stream *request.Stream, doc []byte, err error, arrived clock.Time) {
	var req request.Parsed
	if err == nil {
		req, err = request.Parse(doc, s.app.reg)
		err = stream.Locate(err, doc)
	}
	if err != nil {
		failure := refusal(err)
		p.id, p.failure = failure.RequestID, &failure
		return
	}
	p.id = req.RequestID
	graph, failure := s.app.choosePlan(req.Plan)
	if failure != nil {
		p.failure = failure
		return
	}
	p.request = scheduler.Execution{
		Graph: graph, UserID: req.UserID, Params: req.Params, Arrived: arrived, Trace: s.app.opts.trace,
	}
	// The request's own limit can only shorten the program's.
	for _, limit := range [...]time.Duration{s.app.opts.deadline, req.Timeout} {
		if limit > 0 {
			p.request.Deadline = p.request.Deadline.Earlier(arrived.Add(limit))
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
	case p.failure != nil:
		p.done <- struct{}{}
	case p.request.Graph == nil:
		p.finish(&scheduler.Result{Outputs: syntheticOutputs()})
	default:
		s.app.engine.Submit(&p.request, p.finish)
	}
	return true
}

// stop closes the line to newcomers. What has joined it will be answered.
func (s *server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
}

// write is the writer: it takes the slots as they stand in line, waits for each
// one's outcome, and writes. It returns when the line has ended, or has
// been emptied after ctx ended.
func (s *server) write(ctx context.Context, stdout io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, s.stop)() // at once, and not when the line happens to be empty
	// Once stdout fails nobody reads: finish what is in flight, take in no more.
	out := bufio.NewWriterSize(&failureHook{w: stdout, onError: cancel}, 64<<10)
	var buf []byte
	failed := false
	for p := s.next(ctx, out); p != nil; p = s.next(ctx, out) {
		var ok bool
		buf, ok = s.appendAnswer(buf[:0], p)
		p.empty() // before the write, which waits for whoever reads stdout
		failed = failed || !ok
		_, _ = out.Write(buf) // an error stays, for the last Flush to report
		if cap(buf) > answerBytesKept {
			buf = nil
		}
		s.free <- p
	}
	if err := out.Flush(); err != nil {
		return &runtimeError{fmt.Errorf("writing answers: %w", err)}
	}
	if failed {
		return errFailed
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
// end. Before it waits it flushes, so that no answer is held back.
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

// appendAnswer appends the line that answers p, and reports whether it succeeded.
func (s *server) appendAnswer(dst []byte, p *slot) ([]byte, bool) {
	if p.failure == nil && p.result.Err != nil {
		failure := failureOf(p.result.Err)
		p.failure = &failure
	}
	if p.failure != nil {
		p.failure.RequestID = p.id
		return request.AppendFailure(dst, p.failure), false
	}
	r := request.Response{
		RequestID: p.id, EngineRequestID: request.NewID(),
		Outputs: p.result.Outputs, Deltas: p.result.Deltas, Trace: s.app.opts.trace,
	}
	return s.encoder.AppendResponse(dst, &r), true
}
