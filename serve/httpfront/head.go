package httpfront

import (
	"bytes"
	"strconv"
	"time"
)

// head has what the front reads from the headers of one request. Its slices belong to fasthttp, and are valid as long as the
// request.
type head struct {
	fields [len(fieldNames)][]byte // by field; nil: not given
}

// field is a header that the front reads. Each may be given once.
type field int

const (
	host field = iota
	origin
	connection
	contentLength
	contentEncoding
	transferEncoding
	authorization
	requestID
	requestTimeout
	traceParent
)

// fieldNames are the names of the fields, as documents show them.
var fieldNames = [...]string{
	host: "Host", origin: "Origin", connection: "Connection", contentLength: "Content-Length", contentEncoding: "Content-Encoding",
	transferEncoding: "Transfer-Encoding", authorization: "Authorization", requestID: "X-Request-Id",
	requestTimeout: "X-Request-Timeout-Ms", traceParent: "traceparent",
}

func (h *head) get(f field) []byte { return h.fields[f] }

// fault says why a request cannot be trusted to end where the front believes that it ends, or to mean what
// it seems to mean. Empty: none.
type fault string

// The faults. RFC 9112 leaves no doubt about each, or lets a server refuse it. A proxy in front may read such a
// request in another way.
const (
	faultLine      fault = "a header line does not end in CR LF"
	faultName      fault = "a header line has no name, a folded line or a space before the colon"
	faultTwice     fault = "a header is given twice"
	faultHost      fault = "HTTP/1.1 needs the header Host"
	faultBoth      fault = "Content-Length and Transfer-Encoding are both given"
	faultEncoding  fault = "Transfer-Encoding must be chunked"
	faultOldCoding fault = "HTTP/1.0 has no Transfer-Encoding"
)

// read reads the raw header lines, those after the request line, and checks what fasthttp lets pass. raw ends with the empty line, or
// is empty.
func (h *head) read(raw []byte, http11 bool) fault {
	*h = head{}
	for len(raw) > 0 {
		end := bytes.IndexByte(raw, '\n')
		if end < 1 || raw[end-1] != '\r' {
			return faultLine
		}
		line := raw[:end-1]
		raw = raw[end+1:]
		if len(line) == 0 {
			break
		}
		colon := bytes.IndexByte(line, ':')
		if colon < 1 || !isToken(line[:colon]) {
			return faultName
		}
		f, ok := fieldOf(line[:colon])
		if !ok {
			continue
		}
		if h.fields[f] != nil {
			return faultTwice
		}
		h.fields[f] = trim(line[colon+1:])
	}
	switch coding := h.get(transferEncoding); {
	case http11 && h.get(host) == nil:
		return faultHost
	case coding == nil:
		return ""
	case h.get(contentLength) != nil:
		return faultBoth
	case !http11:
		return faultOldCoding
	case !bytes.EqualFold(coding, []byte("chunked")):
		return faultEncoding
	}
	return ""
}

// trim returns a value without the white space around it. The result is not nil.
func trim(value []byte) []byte {
	for len(value) > 0 && (value[0] == ' ' || value[0] == '\t') {
		value = value[1:]
	}
	for len(value) > 0 && (value[len(value)-1] == ' ' || value[len(value)-1] == '\t') {
		value = value[:len(value)-1]
	}
	return value
}

// fieldOf returns the field of that name.
func fieldOf(name []byte) (field, bool) {
	var f field
	switch len(name) { // most headers are decided here
	case len("Host"):
		f = host
	case len("Origin"):
		f = origin
	case len("Connection"):
		f = connection
	case len("traceparent"):
		f = traceParent
	case len("X-Request-Id"):
		f = requestID
	case len("Authorization"):
		f = authorization
	case len("Content-Length"):
		f = contentLength
	case len("Content-Encoding"):
		f = contentEncoding
	case len("Transfer-Encoding"):
		f = transferEncoding
	case len("X-Request-Timeout-Ms"):
		f = requestTimeout
	default:
		return 0, false
	}
	return f, bytes.EqualFold(name, []byte(fieldNames[f]))
}

// tokenBytes are the characters that the name of a header may have.
const tokenBytes = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// inToken says of each byte whether it is in tokenBytes.
var inToken = func() (table [256]bool) {
	for i := range len(tokenBytes) {
		table[tokenBytes[i]] = true
	}
	return table
}()

// isToken reports whether name has only characters that the name of a header may have.
func isToken(name []byte) bool {
	for _, c := range name {
		if !inToken[c] {
			return false
		}
	}
	return true
}

// closes reports whether the client ends the connection after this request.
func (h *head) closes() bool {
	for option := range bytes.SplitSeq(h.get(connection), []byte(",")) {
		if bytes.EqualFold(trim(option), []byte("close")) {
			return true
		}
	}
	return false
}

// bearer returns the token of the header Authorization. It is nil without one.
func (h *head) bearer() []byte {
	const scheme = "Bearer "
	value := h.get(authorization)
	if len(value) < len(scheme) || !bytes.EqualFold(value[:len(scheme)], []byte(scheme)) {
		return nil
	}
	return bytes.TrimLeft(value[len(scheme):], " ")
}

// idBytesMax bounds an id of a header.
const idBytesMax = 128

// id returns the request's id of the header X-Request-Id. It is nil if the header has none that may stand in a header and in a
// log.
func (h *head) id() []byte {
	if value := h.get(requestID); isID(value) {
		return value
	}
	return nil
}

// isID reports whether s may stand in a header and in a log: printable ASCII without spaces, of bounded length.
func isID[S []byte | string](s S) bool {
	if len(s) == 0 || len(s) > idBytesMax {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// trace returns the header traceparent. It is nil if it is not of the form that W3C Trace Context gives: version 00, or a
// later one that begins as version 00 does.
func (h *head) trace() []byte {
	const form = len("00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")
	v := h.get(traceParent)
	switch {
	case len(v) < form, len(v) > idBytesMax, !isID(v), v[2] != '-', v[35] != '-', v[52] != '-':
		return nil
	case !isHex(v[:2]), !isHex(v[3:35]), !isHex(v[36:52]), !isHex(v[53:55]), allZero(v[3:35]), allZero(v[36:52]):
		return nil
	case string(v[:2]) == "ff", string(v[:2]) == "00" && len(v) > form, len(v) > form && v[form] != '-':
		return nil
	}
	return v
}

func isHex(s []byte) bool {
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func allZero(s []byte) bool { return len(bytes.Trim(s, "0")) == 0 }

// timeout returns the duration of the header X-Request-Timeout-Ms, 0 if it is not given. ok is false if it is not a number
// of milliseconds from 1 on.
func (h *head) timeout() (d time.Duration, ok bool) {
	value := h.get(requestTimeout)
	if value == nil {
		return 0, true
	}
	const most = uint64(1<<63-1) / uint64(time.Millisecond)
	for _, c := range value {
		if c < '0' || c > '9' { // ParseUint takes a sign in no base, and underscores in base 0 alone; be sure
			return 0, false
		}
	}
	ms, err := strconv.ParseUint(string(value), 10, 64)
	if err != nil && len(value) > 0 { // more than 64 bits
		ms = most
	}
	if ms == 0 {
		return 0, false
	}
	return time.Duration(min(ms, most)) * time.Millisecond, true
}
