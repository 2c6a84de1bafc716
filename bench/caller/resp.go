package caller

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/bench/load"
)

// respProtocol sends RANK commands.
type respProtocol struct {
	command []byte // up to the user
	options []byte // after the user; empty for none
	words   int
}

func newRESP(o Options) *respProtocol {
	p := &respProtocol{words: 3}
	if o.Deadline > 0 {
		p.words++
		p.options = redcon.AppendBulkString(nil, fmt.Sprintf(`{"deadline_ms":%d}`, o.Deadline.Milliseconds()))
	}
	p.command = redcon.AppendArray(nil, p.words)
	p.command = redcon.AppendBulkString(p.command, "RANK")
	p.command = redcon.AppendBulkString(p.command, o.Plan)
	return p
}

func (p *respProtocol) appendRequest(dst []byte, user int64) []byte {
	var digits [20]byte
	dst = append(dst, p.command...)
	dst = redcon.AppendBulk(dst, strconv.AppendInt(digits[:0], user, 10))
	return append(dst, p.options...)
}

// readAnswer reads a bulk string, which is an answer, or an error.
func (p *respProtocol) readAnswer(r *bufio.Reader) (outcome, broken error) {
	line, err := readLine(r)
	if err != nil {
		return nil, err
	}
	if len(line) == 0 {
		return nil, errors.New("an empty line where a reply begins")
	}
	switch kind, rest := line[0], line[1:]; kind {
	case '$':
		n, err := strconv.Atoi(string(rest))
		if err != nil || n < 0 {
			return nil, fmt.Errorf("a bulk string of %q bytes", rest)
		}
		_, err = r.Discard(n + len("\r\n"))
		return nil, err
	case '-':
		code, _, _ := bytes.Cut(rest, []byte(" "))
		if c := string(code); c == "OVERLOADED" || c == "CLOSING" {
			return fmt.Errorf("%s: %w", rest, load.ErrRefused), nil
		}
		return errors.New(string(rest)), nil
	default:
		return nil, fmt.Errorf("a reply that begins with %q", kind)
	}
}

// readLine reads a line and returns it without its end. It is valid until the next read.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
}
