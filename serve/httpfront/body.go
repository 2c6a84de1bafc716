package httpfront

import "bytes"

// A framing finds the content of a body in what arrives, as RFC 9112 has it. The zero value is a body that has ended. Loop only.
type framing struct {
	left    int64 // bytes of content until the body ends, or the chunk
	part    part  // of a chunked body
	trailer int   // bytes of trailers so far
	most    int   // bytes that a line of framing, and all trailers together, may have
}

// part is what comes next in a chunked body.
type part uint8

const (
	plain    part = iota // the body is not chunked, or has ended
	size                 // the line with the size of a chunk
	chunk                // its content
	chunkEnd             // the line end behind that
	trailer              // a trailer line, or the empty line behind all
)

// frame returns the framing of the request's body. A line of framing, and all trailers together, may have so many bytes.
func (h *head) frame(most int) framing {
	if h.chunked {
		return framing{part: size, most: most}
	}
	return framing{left: h.length}
}

// ended reports whether the body has ended.
func (f *framing) ended() bool { return f.part == plain && f.left == 0 }

// next returns how many bytes at the head of data are framing, and the content behind them. The caller reports with
// take how much of the content it has used. Both are empty if more must come first. ok is false if the framing is
// broken.
func (f *framing) next(data []byte) (framing int, content []byte, ok bool) {
	for {
		rest := data[framing:]
		if f.part == plain || f.part == chunk {
			return framing, rest[:min(int64(len(rest)), f.left)], true
		}
		line, n, whole := cutLine(rest)
		switch {
		case !whole:
			return framing, nil, n <= f.most && (f.part != chunkEnd || n == 0 || n == 1 && rest[0] == '\r')
		case line == nil || !f.read(line, n):
			return framing, nil, false
		}
		framing += n
	}
}

// read reads a line of framing, which has n bytes with its line end.
func (f *framing) read(line []byte, n int) (ok bool) {
	switch f.part {
	case size:
		f.left, ok = chunkSize(line)
		f.part = chunk
		if f.left == 0 {
			f.part = trailer
		}
		return ok && n <= f.most
	case chunkEnd:
		f.part = size
		return len(line) == 0
	}
	f.trailer += n
	if len(line) == 0 {
		f.part = plain
		return true
	}
	_, _, fault := cutField(line)
	return fault == "" && f.trailer <= f.most
}

// take reports that so many bytes of the content are used.
func (f *framing) take(n int) {
	f.left -= int64(n)
	if f.left == 0 && f.part == chunk {
		f.part = chunkEnd
	}
}

// cutLine returns the line at the head of data without its line end, and its length with that. line is nil if it does not end in CR LF.
// Without a line end whole is false, and n is the length of data.
func cutLine(data []byte) (line []byte, n int, whole bool) {
	end := bytes.IndexByte(data, '\n')
	switch {
	case end < 0:
		return nil, len(data), false
	case end == 0 || data[end-1] != '\r':
		return nil, end + 1, true
	}
	return data[: end-1 : end-1], end + 1, true
}

// chunkDigits is how many digits the size of a chunk may have.
const chunkDigits = 15

// chunkSize reads the line before a chunk: hexadecimal digits, and extensions, which are ignored.
func chunkSize(line []byte) (n int64, ok bool) {
	digits := 0
	for digits < len(line) && isHexDigit(line[digits]) {
		c := line[digits] | ' ' // lower case
		if c >= 'a' {
			c -= 'a' - 10
		} else {
			c -= '0'
		}
		n = n<<4 | int64(c)
		if digits++; digits > chunkDigits {
			return 0, false
		}
	}
	rest := line[digits:]
	extension := trim(rest)
	return n, digits > 0 && isText(rest) && (len(rest) == 0 || len(extension) > 0 && extension[0] == ';')
}

func isHexDigit(c byte) bool {
	return c >= '0' && c <= '9' || c|' ' >= 'a' && c|' ' <= 'f'
}
