package joinlog

import (
	"bufio"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// lineMax bounds a line of a file that is read.
const lineMax = 64 << 20

// lineReader reads lines.
type lineReader struct {
	in     *bufio.Reader
	line   []byte
	number int // of the line that was read last, from 1
}

func newLineReader(in io.Reader) *lineReader { return &lineReader{in: bufio.NewReaderSize(in, 64<<10)} }

// next returns the next line without its end, valid until the next call. whole is false if the line has no end. The error is io.EOF at
// the end of the file.
func (r *lineReader) next() (line []byte, whole bool, err error) {
	r.line = r.line[:0]
	r.number++
	for {
		part, err := r.in.ReadSlice('\n')
		if r.line = append(r.line, part...); len(r.line) > lineMax {
			return nil, false, fmt.Errorf("line %d is longer than %d bytes", r.number, lineMax)
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

// servedVersion is the version of lines that a join understands.
const servedVersion = 1

// servedLine is what a join takes of a line: docs/served-log.md has all members.
type servedLine struct {
	Version     int            `json:"served_log"`
	Request     string         `json:"engine_request_id"`
	Time        string         `json:"time"`
	User        jsontext.Value `json:"user_id"`
	Delivered   *bool          `json:"delivered"`
	Traffic     string         `json:"traffic"`
	Probability jsontext.Value `json:"probability"`
	Outputs     []servedOutput `json:"outputs"`

	at time.Time
}

type servedOutput struct {
	Name    string                      `json:"name"`
	IDs     []jsontext.Value            `json:"ids"`
	Absent  []int                       `json:"absent"`
	Columns map[string][]jsontext.Value `json:"columns"`
	Made    map[string][]jsontext.Value `json:"made"`
}

// parseServed reads a line. Of another version it reads that only.
func parseServed(text []byte) (l servedLine, err error) {
	var version struct {
		Version int `json:"served_log"`
	}
	if err := json.Unmarshal(text, &version); err != nil || version.Version != servedVersion {
		return servedLine{Version: version.Version}, err
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return l, err
	}
	if l.Request == "" || l.Delivered == nil {
		return l, fmt.Errorf("engine_request_id or delivered is missing")
	}
	if l.at, err = parseTime(l.Time); err != nil {
		return l, err
	}
	for i := range l.Outputs {
		o := &l.Outputs[i]
		for _, columns := range [...]map[string][]jsontext.Value{o.Columns, o.Made} {
			for name, values := range columns {
				if len(values) != len(o.IDs) {
					return l, fmt.Errorf("output %d has %d ids, and %d values of column %q", i, len(o.IDs), len(values), name)
				}
			}
		}
		for _, id := range o.IDs {
			if _, err := plainText(id); err != nil {
				return l, fmt.Errorf("output %d: an id %w", i, err)
			}
		}
	}
	return l, nil
}
