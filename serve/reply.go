package serve

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/trace"
)

// Reply is what a client is told: an answer, or why there is none. Immutable; any goroutine, until its Query is used again.
type Reply struct {
	Class     Class
	RequestID string // of the client, or generated

	answer *rankd.Answer // nil unless Class is OK
	format rankd.Format
	err    *rankd.Error // nil if Class is OK
}

// AppendBody appends the answer or the error as rankd prints it on stdout, without the line end, and returns the extended buffer.
// Each call makes a new "engine_request_id".
func (r *Reply) AppendBody(dst []byte) []byte {
	if r.err != nil {
		dst = r.err.AppendJSON(dst)
	} else {
		if r.answer.Len() > longRows { // Growing by and by would cost five times the memory.
			n := 0
			for i := range r.answer.Outputs() {
				n += encodedBytes(r.answer.Output(i).Rows())
			}
			dst = slices.Grow(dst, n)
		}
		dst = r.answer.AppendJSON(dst, r.format)
	}
	return dst[:len(dst)-1]
}

// messageMax bounds a Message in bytes.
const messageMax = 512

// Message returns the error on one line for RESP, behind the Code: at most 512 bytes without control characters. It is empty for an
// answer.
func (r *Reply) Message() string {
	if r.err == nil {
		return ""
	}
	text := strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, r.err.Error())
	if len(text) <= messageMax {
		return text
	}
	end := messageMax - len("…")
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// Rows returns the number of candidates in the answer; zero for an error.
func (r *Reply) Rows() int {
	if r.answer == nil {
		return 0
	}
	return r.answer.Len()
}

// Bytes returns about how many bytes the answer takes, now or once it is encoded, whichever is more. It is for an Outbox.
func (r *Reply) Bytes() int {
	n := 0
	if r.answer != nil {
		for i := range r.answer.Outputs() {
			rows := r.answer.Output(i).Rows()
			n += max(encodedBytes(rows), heldBytes(rows))
		}
	}
	return n
}

// encodedBytes returns about how many bytes the rows take in JSON. {"id":1234567}, and "score":0.12345678901234567, are common.
func encodedBytes(rows rowset.RowSet) int {
	if rows.Batch == nil {
		return 0
	}
	return rows.Len() * (16 + 24*rows.Batch.Count())
}

// heldBytes returns about how many bytes the rows hold, with those of their batch that are not among them.
func heldBytes(rows rowset.RowSet) int {
	if rows.Batch == nil {
		return 0
	}
	return rows.Batch.Len() * 8 * (1 + rows.Batch.Count())
}

// Trace returns what ran when, if the request asked for it and ran; otherwise nil.
func (r *Reply) Trace() *trace.Trace {
	if r.err != nil {
		return r.err.Trace()
	}
	return r.answer.Trace()
}
