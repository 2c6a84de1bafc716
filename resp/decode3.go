package resp

import (
	"bytes"
	"math"
	"strconv"
)

// parse3 reads the value at d.pos, whose type RESP2 does not have, and returns it. For a value that holds others, it
// puts the header on the tape and returns none. If the value, or the header, has not arrived, it leaves d.pos as it
// is.
//
// Redis sends neither attributes nor values in chunks; the decoder takes them for malformed.
func (d *Decoder) parse3(data []byte) (value, error) {
	switch data[d.pos] {
	case '_', '#', ',', '(':
		return d.line3(data)
	case '=', '!':
		return d.bulk3(data)
	case '%', '~', '>':
		return value{}, d.header3(data)
	default:
		return value{}, d.malformed("unknown type byte %q", data[d.pos])
	}
}

// line3 reads a null, a boolean, a double or a big number.
func (d *Decoder) line3(data []byte) (value, error) {
	end, err := d.line(data)
	if end == 0 {
		return value{}, err
	}
	text := data[d.pos+1 : end]
	v := value{kind: Bulk, off: uint32(d.pos + 1), n: uint32(len(text))}
	ok := false
	switch data[d.pos] {
	case '_':
		v.kind, ok = Null, len(text) == 0
	case '#':
		v.kind, ok = SimpleString, string(text) == "t" || string(text) == "f"
	case ',':
		_, err := strconv.ParseFloat(string(text), 64)
		ok = err == nil
	default:
		digits := bytes.TrimPrefix(text, []byte("-"))
		ok = len(digits) > 0 && len(bytes.Trim(digits, "0123456789")) == 0
	}
	if !ok {
		return value{}, d.malformed("value %.40q of type %q", text, data[d.pos])
	}
	d.pos = end + 2
	return v, nil
}

// verbatimFormat is the length of the prefix of a verbatim string, such as "txt:".
const verbatimFormat = 4

// bulk3 reads a verbatim string, or an error with a length.
func (d *Decoder) bulk3(data []byte) (value, error) {
	size, body, ok := header(data, d.pos+1)
	if !ok {
		return value{}, d.shortHeader(data)
	}
	v := value{kind: Error}
	format := 0
	if data[d.pos] == '=' {
		v.kind, format = Bulk, verbatimFormat
	}
	if size < int64(format) || size > int64(d.limits.MaxBulkBytes) {
		return value{}, d.malformed("string of %d bytes; the limit is %d", size, d.limits.MaxBulkBytes)
	}
	end := body + int(size)
	if len(data) < end+2 {
		d.need, d.bulkEnd = end+2, end+2
		return value{}, nil
	}
	if data[end] != '\r' || data[end+1] != '\n' {
		return value{}, d.malformed("string of %d bytes does not end there", size)
	}
	v.off, v.n = uint32(body+format), uint32(int(size)-format)
	d.pos = end + 2
	return v, nil
}

// header3 reads the header of a map, a set or a push.
func (d *Decoder) header3(data []byte) error {
	size, next, ok := header(data, d.pos+1)
	if !ok {
		return d.shortHeader(data)
	}
	isPush := data[d.pos] == '>'
	switch {
	case isPush && (len(d.open) > 0 || size < 1):
		return d.malformed("push of %d elements inside %d arrays", size, len(d.open))
	case data[d.pos] == '%' && size <= math.MaxInt32:
		size *= 2
	}
	if err := d.openArray(size); err != nil {
		return err
	}
	if isPush {
		d.vals[len(d.vals)-1].kind = Push
	}
	d.pos = next
	if size == 0 {
		d.closeValue()
	}
	return nil
}
