package serve

// traceID is the trace id of a traceparent, as text. The zero value is none.
type traceID [32]byte

// set takes the trace id out of a traceparent of W3C Trace Context, "00-" + 32 digits + "-" + 16 digits + "-" + 2 digits. Anything
// else leaves none, since it goes to the log.
func (t *traceID) set(parent []byte) {
	*t = traceID{}
	if len(parent) < 55 || parent[2] != '-' || parent[35] != '-' || parent[52] != '-' {
		return
	}
	for _, c := range parent[3:35] {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return
		}
	}
	copy(t[:], parent[3:35])
}

// String returns the id, "" if there is none.
func (t *traceID) String() string {
	if t[0] == 0 {
		return ""
	}
	return string(t[:])
}
