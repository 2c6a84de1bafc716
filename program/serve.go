package program

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/batch"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/request"
)

// serve answers the requests on stdin until they end or ctx does. The error is
// cmdline.ErrFailed if a request failed. stderr gets a line at the end if something is missing in answers.
func serve(ctx context.Context, e *rankd.Engine, o *options, stdin io.Reader, stdout, stderr io.Writer) error {
	s := newServer(e, o)
	newStream := request.NewStream
	if o.input == inputLines {
		newStream = request.NewLineStream
	}
	go s.read(newStream(stdin, o.maxRequestBytes))
	err := s.write(ctx, stdout)
	if lacking := s.answers.Lacking(); lacking != "" {
		fmt.Fprintf(stderr, "rankd: %s\n", lacking)
	}
	return err
}

// server answers the requests of a stream, in their order. The length of its line bounds it.
type server struct {
	engine *rankd.Engine
	format rankd.Format
	deltas bool
	line   *batch.Line

	answers batch.Summary // so far; the writer's
}

// answerBytesKept bounds the buffer that one answer leaves to the next. Thousands of
// candidates fit; the memory of a rare giant is given back.
const answerBytesKept = 1 << 20

func newServer(e *rankd.Engine, o *options) *server {
	return &server{engine: e, format: o.Format(), deltas: o.deltas, line: batch.NewLine(e, o.maxInflight)}
}

// read is the reader goroutine. It ends with the stream, or with the first
// document after the line was stopped.
func (s *server) read(stream *request.Stream) {
	s.line.Read(func(p *batch.Entry) (join, more bool) {
		doc, err := stream.Next()
		if err == io.EOF {
			return false, false
		}
		broken := err != nil && !errors.As(err, new(*request.Error)) // stdin, not a document
		if err == nil {
			p.Request, err = s.engine.ParseRequest(doc)
			p.Request.SchemaDeltas = s.deltas
			err = stream.Locate(err, doc)
		}
		if err != nil {
			p.Err = s.engine.Intake().Refused(err)
		}
		return true, !broken
	})
}

// write is the writer. It takes the slots as they stand in line, waits for the outcome of
// each, and writes. It returns when the line has ended, or has
// been emptied after ctx ended.
func (s *server) write(ctx context.Context, stdout io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, s.line.Stop)() // at once, and not when the line happens to be empty
	// Nobody reads once stdout has failed: finish the requests in flight, take in no more.
	out := bufio.NewWriterSize(&failureHook{w: stdout, onError: cancel}, 64<<10)
	var buf []byte
	failed := false
	flush := func() { _ = out.Flush() } // before each wait, so that no answer is held back
	for p := s.line.Next(ctx, flush); p != nil; p = s.line.Next(ctx, flush) {
		buf = s.appendAnswer(buf[:0], p)
		if failed = failed || p.Err != nil; p.Err == nil {
			s.answers.Users++
			s.answers.Add(p.Answer)
		}
		p.Empty()             // before the write, which waits for the reader of stdout
		_, _ = out.Write(buf) // an error stays, for the last Flush to report
		if cap(buf) > answerBytesKept {
			buf = nil
		}
		s.line.Free(p)
	}
	if err := out.Flush(); err != nil {
		return &cmdline.RuntimeError{Err: fmt.Errorf("writing answers: %w", err)}
	}
	if failed {
		return cmdline.ErrFailed
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

// appendAnswer appends the line that answers p. It sets the Err of an answer that cannot be encoded.
func (s *server) appendAnswer(dst []byte, p *batch.Entry) []byte {
	var failed *rankd.Error
	if errors.As(p.Err, &failed) {
		return failed.AppendJSON(dst)
	}
	doc := dst
	p.Err = s.engine.Intake().Contain(p.Answer.RequestID, func() { doc = p.Answer.AppendJSON(dst, s.format) })
	if errors.As(p.Err, &failed) {
		return failed.AppendJSON(dst)
	}
	return doc
}
