package fileio

import (
	"bufio"
	"fmt"
	"io"
)

// A LineReader reads lines of bounded length. One goroutine.
type LineReader struct {
	in     *bufio.Reader
	max    int
	line   []byte
	number int
}

// NewLineReader returns a reader of lines of at most max bytes, their ends included.
func NewLineReader(in io.Reader, max int) *LineReader {
	return &LineReader{in: bufio.NewReaderSize(in, 64<<10), max: max}
}

// Number returns the number of the line that was read last, from 1.
func (r *LineReader) Number() int { return r.number }

// Next returns the next line without its end, valid until the next call. whole is false if the line has no end. The error is io.EOF at
// the end of the file.
func (r *LineReader) Next() (line []byte, whole bool, err error) {
	r.line = r.line[:0]
	r.number++
	for {
		part, err := r.in.ReadSlice('\n')
		if r.line = append(r.line, part...); len(r.line) > r.max {
			return nil, false, fmt.Errorf("line %d is longer than %d bytes", r.number, r.max)
		}
		switch err {
		case nil:
			return r.line[:len(r.line)-1], true, nil
		case bufio.ErrBufferFull:
		case io.EOF:
			if len(r.line) > 0 {
				return r.line, false, nil
			}
			return nil, false, io.EOF
		default:
			return nil, false, err
		}
	}
}
