package request

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/google/uuid"

	"github.com/rankd/rankd/internal/outcome"
)

// The error texts of answers to requests that were refused before they ran. The first
// three are the original engine's.
const (
	CodeInvalidJSON   = "Invalid JSON input"      // the input is not one JSON document
	CodeInvalid       = "Invalid request"         // user_id, context, plan, deadline_ms, scheduling, trace or require is missing or mistyped
	CodeInvalidParams = "Invalid param_overrides" // unknown parameter, or a value of the wrong type
	CodeForbidden     = "Not permitted"           // a parameter that Given.Overrides hides
	CodeTooLarge      = "Request too large"       // longer than the stream accepts
)

// Error says why a request was refused before it ran. Immutable once built; any goroutine.
type Error struct {
	RequestID string // the request's own id if Parse could read it, otherwise generated
	Code      string // the answer's "error"
	Detail    string // the answer's "detail"; one line
	Offset    int64  // in bytes from the start of the document; -1 if the fault has no place
}

// Error implements error.
func (e *Error) Error() string { return e.Code + ": " + e.Detail }

// Class returns the class of the error.
func (e *Error) Class() outcome.Class {
	switch e.Code {
	case CodeTooLarge:
		return outcome.TooLarge
	case CodeForbidden:
		return outcome.Forbidden
	}
	return outcome.BadRequest
}

// NewID returns a new random id (a version 4 UUID). It must be unique but need not be secret, so it comes from the
// runtime's generator, which needs no system call. Any goroutine.
func NewID() string { return ID(NewIDBits()) }

// NewIDBits is NewID for who keeps ids in few bytes: ID makes the text.
func NewIDBits() [16]byte {
	var id uuid.UUID
	binary.LittleEndian.PutUint64(id[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(id[8:], rand.Uint64())
	id[6] = id[6]&0x0f | 4<<4    // the version,
	id[8] = id[8]&0x3f | 0b10<<6 // and the variant of RFC 9562
	return id
}

// ID returns the text of an id.
func ID(bits [16]byte) string { return uuid.UUID(bits).String() }
