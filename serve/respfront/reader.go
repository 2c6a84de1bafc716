package respfront

import (
	"bytes"
	"errors"

	"github.com/tidwall/redcon"
)

// inlineMax bounds a command that is one line of text, as typed into telnet. redcon copies such a line once for each
// of its words.
const inlineMax = 1 << 10

// digitsMax is how many digits a number in a header may have.
const digitsMax = 9

// Errors in what a client sends. More bytes cannot mend any of them.
var (
	errCount    = errors.New("invalid multibulk length")
	errLength   = errors.New("invalid bulk length")
	errNoBulk   = errors.New("expected '$'")
	errNoArray  = errors.New("expected '*'")
	errInline   = errors.New("too big inline request")
	errArgsMax  = errors.New("the command has too many arguments")
	errBytesMax = errors.New("the command is too long")
)

// A reader finds the commands in what a client has sent. redcon parses each command once it is complete. The reader
// finds its end first, because redcon has no limits, panics at a negative or a huge length, and begins anew whenever
// more bytes arrive. Loop only.
type reader struct {
	argsMax, bytesMax int

	// Of the incomplete command at the head of the data:
	array bool // its number of arguments is known
	args  int  // arguments whose length is not known yet
	known int  // bytes that belong to it; the data may end before
}

// next returns the arguments of the command at the head of data, and its length. If the command is incomplete, the
// length is 0, and data begins with the same bytes in the next call. A command may have no arguments. argv is memory
// for args, which point into data. No call follows an error.
func (r *reader) next(data []byte, argv [][]byte) (args [][]byte, size int, err error) {
	if len(data) == 0 {
		return nil, 0, nil
	}
	var whole bool
	switch data[0] {
	case '*':
		whole, err = r.measureArray(data)
	case '$': // redcon would take it for the protocol of Tile38
		err = errNoArray
	default:
		whole, err = r.measureLine(data)
	}
	if !whole || err != nil {
		return nil, 0, err
	}
	size = r.known
	r.array, r.args, r.known = false, 0, 0
	_, args, _, _, err = redcon.ReadNextCommand(data[:size], argv[:0])
	return args, size, err
}

// measureLine goes on to look for the end of a line.
func (r *reader) measureLine(data []byte) (whole bool, err error) {
	end := bytes.IndexByte(data[r.known:], '\n')
	whole = end >= 0
	if whole {
		r.known += end + 1
	} else {
		r.known = len(data)
	}
	if r.known > inlineMax {
		return false, errInline
	}
	return whole, nil
}

// measureArray goes on to read the headers of an array of bulk strings.
func (r *reader) measureArray(data []byte) (whole bool, err error) {
	if !r.array {
		count, next, ok := number(data, 0)
		switch {
		case !ok:
			return false, errCount
		case next == 0:
			return false, nil
		case count > r.argsMax:
			return false, errArgsMax
		}
		r.array, r.args, r.known = true, count, next
	}
	for r.args > 0 {
		if r.known >= len(data) {
			return false, nil
		}
		if data[r.known] != '$' {
			return false, errNoBulk
		}
		length, next, ok := number(data, r.known)
		switch {
		case !ok:
			return false, errLength
		case next == 0:
			return false, nil
		case length > r.bytesMax-next:
			return false, errBytesMax
		}
		r.known = next + length + len("\r\n")
		r.args--
	}
	return r.known <= len(data), nil
}

// number reads the number between the mark at data[at] and the next line end. next is the place behind it, 0 if the
// line end is not there yet.
func number(data []byte, at int) (n, next int, ok bool) {
	first := at + 1
	for i := first; i < len(data); i++ {
		switch c := data[i]; {
		case c >= '0' && c <= '9' && i-first < digitsMax:
			n = 10*n + int(c-'0')
		case c != '\r' || i == first:
			return 0, 0, false
		case i+1 == len(data):
			return n, 0, true
		default:
			return n, i + 2, data[i+1] == '\n'
		}
	}
	return n, 0, true
}
