package httpfront

import (
	"bytes"
	"strconv"
	"time"
)

// head is the request line and the headers of one request. Its slices belong to the text that parse has read.
type head struct {
	method  []byte
	path    []byte // without query
	name    []byte // the host of an absolute target; nil: use the header Host
	http11  bool
	fields  [len(fieldNames)][]byte // by field; nil: not given
	length  int64                   // of the body
	chunked bool                    // the body comes in chunks, and length says nothing
}

// field is a header that the front reads. Each may be given once.
type field int

const (
	host field = iota
	origin
	expect
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
	host: "Host", origin: "Origin", expect: "Expect", connection: "Connection", contentLength: "Content-Length", contentEncoding: "Content-Encoding",
	transferEncoding: "Transfer-Encoding", authorization: "Authorization", requestID: "X-Request-Id",
	requestTimeout: "X-Request-Timeout-Ms", traceParent: "traceparent",
}

func (h *head) get(f field) []byte { return h.fields[f] }

// fault says why the end or the meaning of a request is in doubt. Empty: neither is.
type fault string

// The faults. RFC 9112 forbids each, or lets a server refuse it. A proxy in front may read such a request in another
// way.
const (
	faultRequest   fault = "the request line is malformed"
	faultVersion   fault = "the version must be HTTP/1.1 or HTTP/1.0"
	faultLine      fault = "a header line does not end in CR LF"
	faultName      fault = "a header line has no name, a folded line or a space before the colon"
	faultValue     fault = "a header has a control character"
	faultTwice     fault = "a header is given twice"
	faultHost      fault = "HTTP/1.1 needs the header Host"
	faultLength    fault = "Content-Length must be a number of bytes"
	faultBoth      fault = "Content-Length and Transfer-Encoding are both given"
	faultEncoding  fault = "Transfer-Encoding must be chunked"
	faultOldCoding fault = "HTTP/1.0 has no Transfer-Encoding"
)

// parse reads text, which ends with the first empty line.
func (h *head) parse(text []byte) fault {
	*h = head{}
	line, n, _ := cutLine(text)
	if fault := h.parseRequest(line); fault != "" {
		return fault
	}
	for text = text[n:]; ; text = text[n:] {
		line, n, _ = cutLine(text)
		switch {
		case line == nil:
			return faultLine
		case len(line) == 0:
			return h.framed()
		}
		name, value, fault := cutField(line)
		if fault != "" {
			return fault
		}
		f, ok := fieldOf(name)
		if !ok {
			continue
		}
		if h.fields[f] != nil {
			return faultTwice
		}
		h.fields[f] = value
	}
}

// parseRequest reads the request line: a method, a target and a version, with a space between two of them.
func (h *head) parseRequest(line []byte) fault {
	first := bytes.IndexByte(line, ' ')
	last := bytes.LastIndexByte(line, ' ')
	if first < 1 || last < first+2 || !isToken(line[:first]) || !isTarget(line[first+1:last]) {
		return faultRequest
	}
	h.method = line[:first]
	switch version := line[last+1:]; {
	case string(version) == "HTTP/1.1":
		h.http11 = true
	case string(version) == "HTTP/1.0":
	case len(version) == len("HTTP/1.1") && string(version[:5]) == "HTTP/" && isDigit(version[5]) && version[6] == '.' && isDigit(version[7]):
		return faultVersion
	default:
		return faultRequest
	}
	h.setTarget(line[first+1 : last])
	return ""
}

// setTarget takes the path out of a target. The target is a path, or begins with the scheme and the name of a server.
func (h *head) setTarget(target []byte) {
	for _, scheme := range [...]string{"http://", "https://"} {
		if len(target) >= len(scheme) && target[0] != '/' && bytes.EqualFold(target[:len(scheme)], []byte(scheme)) {
			target = target[len(scheme):]
			end := bytes.IndexAny(target, "/?#")
			if end < 0 {
				end = len(target)
			}
			h.name, target = target[:end:end], target[end:]
		}
	}
	if end := bytes.IndexAny(target, "?#"); end >= 0 {
		target = target[:end]
	}
	h.path = target
}

// framed finds out where the body ends.
func (h *head) framed() fault {
	length, coding := h.get(contentLength), h.get(transferEncoding)
	switch {
	case h.http11 && h.get(host) == nil:
		return faultHost
	case coding == nil && length == nil:
		return ""
	case coding == nil:
		n, err := strconv.ParseUint(string(length), 10, 63) // It takes digits alone.
		h.length = int64(n)
		if err != nil {
			return faultLength
		}
		return ""
	case length != nil:
		return faultBoth
	case !h.http11:
		return faultOldCoding
	case !bytes.EqualFold(coding, []byte("chunked")):
		return faultEncoding
	}
	h.chunked = true
	return ""
}

// hasBody reports whether the request has a body, which may be empty.
func (h *head) hasBody() bool { return h.chunked || h.get(contentLength) != nil }

// expects reports whether the client waits for 100 Continue before it sends the body.
func (h *head) expects() bool {
	return h.http11 && (h.chunked || h.length > 0) && bytes.EqualFold(h.get(expect), []byte("100-continue"))
}

// server returns the name of the server that the client asks.
func (h *head) server() []byte {
	if h.name != nil {
		return h.name
	}
	return h.get(host)
}

// cutField returns the name and the value of a header line, without the white space around the value, which is not nil.
func cutField(line []byte) (name, value []byte, fault fault) {
	colon := bytes.IndexByte(line, ':')
	if colon < 1 || !isToken(line[:colon]) {
		return nil, nil, faultName
	}
	value = trim(line[colon+1:])
	if !isText(value) {
		return nil, nil, faultValue
	}
	return line[:colon], value, ""
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
		if f = origin; name[0]|' ' == 'e' {
			f = expect
		}
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

// kinds of bytes.
const (
	tokenByte  = 1 << iota // may be in a method and in the name of a header
	targetByte             // may stand in a target
	textByte               // may be in the value of a header
)

// kindsOf has the kinds of each byte.
var kindsOf = func() (table [256]uint8) {
	const marks = "!#$%&'*+-.^_`|~"
	for i := range table {
		c := byte(i)
		if isDigit(c) || c|' ' >= 'a' && c|' ' <= 'z' || c > ' ' && bytes.IndexByte([]byte(marks), c) >= 0 {
			table[i] |= tokenByte
		}
		if c > ' ' && c != 0x7f {
			table[i] |= targetByte | textByte
		}
		if c == ' ' || c == '\t' {
			table[i] |= textByte
		}
	}
	return table
}()

// are reports whether all bytes of s are of a kind.
func are(s []byte, kind uint8) bool {
	for _, c := range s {
		if kindsOf[c]&kind == 0 {
			return false
		}
	}
	return true
}

func isToken(s []byte) bool  { return are(s, tokenByte) }
func isTarget(s []byte) bool { return are(s, targetByte) }
func isText(s []byte) bool   { return are(s, textByte) }
func isDigit(c byte) bool    { return c >= '0' && c <= '9' }

// closes reports whether the client ends the connection after this request.
func (h *head) closes() bool {
	if h.get(connection) == nil {
		return !h.http11
	}
	keeps := h.http11
	for option := range bytes.SplitSeq(h.get(connection), []byte(",")) {
		switch option = trim(option); {
		case bytes.EqualFold(option, []byte("close")):
			return true
		case bytes.EqualFold(option, []byte("keep-alive")):
			keeps = true
		}
	}
	return !keeps
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

// id returns the request's id from the header X-Request-Id. It is nil if there is none, or if it must not be in a
// header and a log.
func (h *head) id() []byte {
	if value := h.get(requestID); isID(value) {
		return value
	}
	return nil
}

// isID reports whether s may be in a header and in a log: printable ASCII without spaces, of bounded length.
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

// trace returns the header traceparent. It is nil unless it has the form of W3C Trace Context: version 00, or a later
// version that begins like version 00.
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

// timeout returns the duration of the header X-Request-Timeout-Ms, or 0 without one. ok is false unless it is a
// number of milliseconds, at least 1.
func (h *head) timeout() (d time.Duration, ok bool) {
	value := h.get(requestTimeout)
	if value == nil {
		return 0, true
	}
	const most = uint64(1<<63-1) / uint64(time.Millisecond)
	for _, c := range value {
		if c < '0' || c > '9' { // ParseUint accepts no signs, and underscores only in base 0; be sure
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
