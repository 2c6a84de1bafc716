package resp

import (
	"bytes"
	"fmt"
	"math"
)

// Limits bound what a peer can make a Decoder do. A zero field means its default. A
// reply beyond a limit is a ProtocolError as soon as its header is read. Immutable.
type Limits struct {
	// MaxDepth bounds the nesting of arrays; an array of plain values has depth 1.
	// Zero means 16: Redis's deepest answers (XINFO STREAM FULL) have 6.
	MaxDepth int
	// MaxElements bounds the values in one reply, counted over all its arrays and
	// by their announced lengths. Zero means 256 Mi. Memory grows only by what has arrived.
	MaxElements int
	// MaxBulkBytes bounds one bulk string. Zero means 512 MiB, Redis's own bound.
	MaxBulkBytes int
	// MaxLineBytes bounds a simple string, an error or an integer. Zero means 64 KiB.
	MaxLineBytes int
}

func (l Limits) withDefaults() Limits {
	for _, f := range []struct {
		field *int
		value int
	}{
		{&l.MaxDepth, 16},
		{&l.MaxElements, 256 << 20},
		{&l.MaxBulkBytes, 512 << 20},
		{&l.MaxLineBytes, 64 << 10},
	} {
		if *f.field <= 0 {
			*f.field = f.value
		}
		*f.field = min(*f.field, math.MaxInt32)
	}
	return l
}

// A Decoder finds the end of n replies in bytes that arrive in any pieces. It never
// sees a socket and keeps no bytes: its owner keeps them, and hands them over again together
// with later ones. The decoder remembers parsed values as offsets from the first byte of
// the batch. So it parses no value twice, and a reply in a thousand pieces costs no more
// than in one. Once its slices have grown it does not allocate. One goroutine at a time.
//
// redcon's ReadNextRESP does not serve here: it starts again at the first byte for each piece, has no limits, and
// does not check the inside of arrays.
type Decoder struct {
	tape
	limits Limits
	resp3  bool

	left     int     // replies not yet complete
	pos      int     // where the next value begins; all before it is on the tape
	need     int     // no progress is possible while there are fewer bytes
	scanned  int     // no '\n' of the line at pos lies before this
	promised int     // values that the current reply has announced so far
	open     []frame // the arrays around pos, outermost first
	err      error   // the batch cannot be decoded; sticky until Reset

	begun    int  // where the reply around pos begins, if open is not empty
	until    int  // parse stops when left is down to it
	skipping bool // the next reply is read and forgotten
	bulkEnd  int  // of the bulk string at pos that has not arrived; 0: none
	skipLeft int  // bytes of a bulk string that are still to be skipped
}

// A frame is an array with missing elements.
type frame struct {
	index uint32 // its entry on the tape
	left  uint32 // its missing elements, > 0
}

// NewDecoder returns a decoder of RESP2 that waits for 0 replies.
func NewDecoder(l Limits) *Decoder { return &Decoder{limits: l.withDefaults()} }

// NewDecoder3 returns a decoder of RESP3, whose peer has answered HELLO 3, that waits for 0 replies. See Kind for what
// it makes of values that RESP2 does not have.
func NewDecoder3(l Limits) *Decoder { return &Decoder{limits: l.withDefaults(), resp3: true} }

// Reset makes the decoder forget everything and wait for n replies. Views of earlier replies become invalid.
func (d *Decoder) Reset(n int) {
	d.reset()
	d.left, d.pos, d.need, d.scanned, d.promised = n, 0, 0, 0, 0
	d.open, d.err = d.open[:0], nil
	d.until, d.skipping, d.skipLeft = 0, false, 0
}

// Replies returns a view of the replies that are complete: all, after Decode has reported the
// batch done.
func (d *Decoder) Replies() Replies { return Replies{t: &d.tape, n: uint32(d.complete())} }

// complete returns the number of replies that Decode has found complete since Reset.
func (d *Decoder) complete() int {
	if len(d.open) > 0 {
		return len(d.roots) - 1
	}
	return len(d.roots)
}

// Need returns how many bytes must have arrived before Decode can continue: more than there are, and the whole of an
// announced bulk string.
func (d *Decoder) Need() int { return d.need }

// boundary returns where the first incomplete reply begins.
func (d *Decoder) boundary() int {
	if len(d.open) > 0 {
		return d.begun
	}
	return d.pos
}

// Decode looks at all bytes of the batch that have arrived so far, those of earlier
// calls first. Once the batch is complete it reports done and the batch's length in
// bytes; data may go on after that. Before, it returns 0 and false. An error is
// always a *ProtocolError, after which the stream cannot be trusted any more.
func (d *Decoder) Decode(data []byte) (n int, done bool, err error) {
	if d.err != nil {
		return 0, false, d.err
	}
	if d.skipping {
		n, d.err = d.skip(data)
		return n, d.left == 0 && d.err == nil, d.err
	}
	if d.left > 0 && len(data) >= d.need {
		d.err = d.parse(data)
	}
	d.data = data[:d.pos]
	if d.left > 0 || d.err != nil {
		return 0, false, d.err
	}
	return d.pos, true, nil
}

// parse puts the complete values of data, from d.pos on, on the tape.
func (d *Decoder) parse(data []byte) error {
	if uint64(len(data)) > math.MaxUint32 {
		return &ProtocolError{Offset: d.pos, Reason: "batch of replies larger than 4 GiB"}
	}
	for d.left > d.until {
		pos := d.pos
		if pos >= len(data) {
			d.need = pos + 1
			return nil
		}
		var v value
		switch data[pos] {
		case '$':
			size, body, ok := header(data, pos+1)
			switch {
			case !ok:
				return d.shortHeader(data)
			case size == -1:
				v.kind, v.off = Null, uint32(body)
				d.pos = body
			case size < 0 || size > int64(d.limits.MaxBulkBytes):
				return d.malformed("bulk string of %d bytes; the limit is %d", size, d.limits.MaxBulkBytes)
			default:
				end := body + int(size)
				if len(data) < end+2 {
					d.need, d.bulkEnd = end+2, end+2
					return nil
				}
				if data[end] != '\r' || data[end+1] != '\n' {
					return d.malformed("bulk string of %d bytes does not end there", size)
				}
				v.kind, v.off, v.n = Bulk, uint32(body), uint32(size)
				d.pos = end + 2
			}
		case '*':
			size, next, ok := header(data, pos+1)
			switch {
			case !ok:
				return d.shortHeader(data)
			case size == -1:
				v.kind, v.off = Null, uint32(next)
				d.pos = next
			default:
				if err := d.openArray(size); err != nil {
					return err
				}
				d.pos = next
				if size > 0 { // Its last element will complete it.
					continue
				}
				d.closeValue()
				continue
			}
		case '+', '-', ':':
			end, err := d.line(data)
			if end == 0 {
				return err
			}
			switch text := data[pos+1 : end]; data[pos] {
			case '+':
				v.kind = SimpleString
			case '-':
				v.kind = Error
			default:
				v.kind = Integer
				if _, ok := parseInt(text); !ok {
					return d.malformed("integer %.40q", text)
				}
			}
			v.off, v.n = uint32(pos+1), uint32(end-pos-1)
			d.pos = end + 2
		default:
			if !d.resp3 {
				return d.malformed("unknown type byte %q", data[pos])
			}
			var err error
			if v, err = d.parse3(data); err != nil {
				return err
			}
			if d.pos == pos { // It has not arrived.
				return nil
			}
			if v.kind == 0 { // The header of an array, which is on the tape.
				continue
			}
		}
		if len(d.open) == 0 {
			d.roots = append(d.roots, uint32(len(d.vals)))
		}
		d.vals = append(d.vals, v)
		d.closeValue()
	}
	return nil
}

// openArray puts the header of an array of size elements on the tape.
func (d *Decoder) openArray(size int64) error {
	if size < 0 || size > int64(d.limits.MaxElements-d.promised) {
		return d.malformed("array of %d elements, after %d in this reply; the limit is %d", size, d.promised,
			d.limits.MaxElements)
	}
	if len(d.open) >= d.limits.MaxDepth {
		return d.malformed("arrays nested deeper than %d", d.limits.MaxDepth)
	}
	index := uint32(len(d.vals))
	if len(d.open) == 0 {
		d.roots = append(d.roots, index)
		d.begun = d.pos
	}
	d.promised += int(size)
	// The slices grow by what has arrived, never by what a header announces.
	d.vals = append(d.vals, value{kind: Array, off: index + 1, n: uint32(size)})
	if size > 0 {
		d.open = append(d.open, frame{index, uint32(size)})
	}
	return nil
}

// closeValue accounts for a completed value. The value may complete its array, which may complete the next outer one,
// and so on.
func (d *Decoder) closeValue() {
	for len(d.open) > 0 {
		top := &d.open[len(d.open)-1]
		top.left--
		if top.left > 0 {
			return
		}
		d.vals[top.index].off = uint32(len(d.vals))
		d.open = d.open[:len(d.open)-1]
	}
	d.left--
	d.promised = 0
}

// header reads the decimal number at data[at:] and its CR LF, and returns where what
// follows begins. It is not ok if that is incomplete or malformed. A number of more
// than 18 digits, which might overflow, is malformed: no length is near it.
func header(data []byte, at int) (n int64, next int, ok bool) {
	// Nearly all lengths have one digit or two. Reading these without the loop saves instructions (BenchmarkDecode).
	if at+4 <= len(data) {
		d := data[at : at+4 : at+4]
		if tens := d[0] - '0'; tens <= 9 {
			switch ones := d[1] - '0'; {
			case d[1] == '\r' && d[2] == '\n':
				return int64(tens), at + 3, true
			case ones <= 9 && d[2] == '\r' && d[3] == '\n':
				return int64(tens)*10 + int64(ones), at + 4, true
			}
		}
	}
	i := at
	negative := i < len(data) && data[i] == '-'
	if negative {
		i++
	}
	first := i
	for ; i < len(data); i++ {
		c := data[i] - '0'
		if c > 9 {
			break
		}
		n = n*10 + int64(c)
	}
	if i == first || i-first > maxHeaderDigits || i+1 >= len(data) || data[i] != '\r' || data[i+1] != '\n' {
		return 0, 0, false
	}
	if negative {
		n = -n
	}
	return n, i + 2, true
}

const maxHeaderDigits = 18

// shortHeader decides whether the header at d.pos, which could not be read, is
// incomplete or malformed.
func (d *Decoder) shortHeader(data []byte) error {
	text := data[d.pos+1:]
	i := 0
	if i < len(text) && text[i] == '-' {
		i++
	}
	first := i
	for i < len(text) && i-first <= maxHeaderDigits && text[i]-'0' <= 9 {
		i++
	}
	digits := i - first
	if digits > 0 && digits <= maxHeaderDigits && i < len(text) && text[i] == '\r' {
		i++
	}
	switch {
	case digits > maxHeaderDigits:
		return d.malformed("length %q", text[:i])
	case i < len(text):
		return d.malformed("length %q", text[:i+1])
	default:
		d.need = len(data) + 1
		return nil
	}
}

// line returns the position of the CR LF of the line at d.pos. 0 without an error means that it has not arrived.
func (d *Decoder) line(data []byte) (int, error) {
	from := max(d.pos+1, d.scanned)
	i := bytes.IndexByte(data[from:], '\n')
	end := from + i - 1
	if i < 0 {
		end = len(data)
	}
	if end-d.pos-1 > d.limits.MaxLineBytes+1 || i >= 0 && end-d.pos-1 > d.limits.MaxLineBytes {
		return 0, d.malformed("line longer than %d bytes", d.limits.MaxLineBytes)
	}
	if i < 0 {
		d.scanned, d.need = len(data), len(data)+1
		return 0, nil
	}
	if end <= d.pos || data[end] != '\r' {
		return 0, d.malformed("line that ends in LF without CR")
	}
	return end, nil
}

// malformed returns the error of the value at d.pos.
func (d *Decoder) malformed(format string, args ...any) error {
	return &ProtocolError{Offset: d.pos, Reason: fmt.Sprintf(format, args...)}
}

// A ProtocolError says that bytes are not RESP, or exceed the Limits. It matches
// ErrProtocol. Immutable once built.
type ProtocolError struct {
	Offset int // of the offending value, in bytes from the start of the batch of replies
	Reason string
}

// Error implements error.
func (e *ProtocolError) Error() string {
	return fmt.Sprintf("protocol error at byte %d of the reply: %s", e.Offset, e.Reason)
}

// Is reports whether target is ErrProtocol.
func (e *ProtocolError) Is(target error) bool { return target == ErrProtocol }
