package serve

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/outcome"
	"github.com/rankd/rankd/trace"
)

// Reply is what a client is told: an answer, or why there is none. Immutable; any goroutine, until its Query is used again.
type Reply struct {
	Class     outcome.Class
	RequestID string // of the client, or generated

	bytes  int
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

// Bytes returns about how many bytes the reply takes: its present size or its encoded size, whichever is larger. It
// is for an Outbox.
func (r *Reply) Bytes() int { return r.bytes }

// Trace returns what ran when, if the request asked for it and ran; otherwise nil.
func (r *Reply) Trace() *trace.Trace {
	if r.err != nil {
		return r.err.Trace()
	}
	return r.answer.Trace()
}
