package caller

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/rankd/rankd/bench/load"
)

// httpProtocol posts requests.
type httpProtocol struct {
	head []byte // up to the value of Content-Length
}

func newHTTP(o Options) *httpProtocol {
	p := new(httpProtocol)
	p.head = fmt.Appendf(nil, "POST /v1/rank/%s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n", o.Plan, o.Addr)
	if o.Deadline > 0 {
		p.head = fmt.Appendf(p.head, "X-Request-Timeout-Ms: %d\r\n", o.Deadline.Milliseconds())
	}
	p.head = append(p.head, "Content-Length: "...)
	return p
}

func (p *httpProtocol) appendRequest(dst []byte, user int64) []byte {
	const before, after = `{"user_id":`, `}`
	var room [20]byte
	digits := strconv.AppendInt(room[:0], user, 10)
	dst = append(dst, p.head...)
	dst = strconv.AppendInt(dst, int64(len(before)+len(digits)+len(after)), 10)
	dst = append(dst, "\r\n\r\n"...)
	dst = append(dst, before...)
	dst = append(dst, digits...)
	return append(dst, after...)
}

// quotedMax bounds how much of the body of a failure an error quotes.
const quotedMax = 300

// readAnswer reads a response with a Content-Length.
func (p *httpProtocol) readAnswer(r *bufio.Reader) (outcome, broken error) {
	line, err := readLine(r)
	if err != nil {
		return nil, err
	}
	version, rest, _ := bytes.Cut(line, []byte(" "))
	word, _, _ := bytes.Cut(rest, []byte(" "))
	status, err := strconv.Atoi(string(word))
	if err != nil || !bytes.HasPrefix(version, []byte("HTTP/1.")) {
		return nil, fmt.Errorf("a response that begins with %q", line)
	}
	length := -1
	for {
		line, err := readLine(r)
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if !bytes.EqualFold(name, []byte("Content-Length")) {
			continue
		}
		if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil || length < 0 {
			return nil, fmt.Errorf("a response with %q", line)
		}
	}
	if length < 0 {
		return nil, errors.New("a response without Content-Length")
	}
	if status == http.StatusOK {
		_, err := r.Discard(length)
		return nil, err
	}
	text := make([]byte, min(length, quotedMax))
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, err
	}
	if _, err := r.Discard(length - len(text)); err != nil {
		return nil, err
	}
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		return fmt.Errorf("%d %s: %w", status, text, load.ErrRefused), nil
	}
	return fmt.Errorf("%d %s", status, text), nil
}
