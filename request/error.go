package request

import (
	"github.com/google/uuid"
)

// The error texts that an answer may carry for a request that was refused
// before it ran. The first three are those of the original engine.
const (
	CodeInvalidJSON   = "Invalid JSON input"      // not one JSON document
	CodeInvalid       = "Invalid request"         // user_id, plan or deadline_ms is missing or mistyped
	CodeInvalidParams = "Invalid param_overrides" // unknown parameter, or a value of the wrong type
	CodeTooLarge      = "Request too large"       // longer than the stream accepts
)

// Error says why a request was refused before it ran. Immutable once built.
type Error struct {
	RequestID string // the request's own if it could be read, otherwise generated
	Code      string // the answer's "error"
	Detail    string // the answer's "detail"; one line
	Offset    int64  // in bytes from the start of the document; -1 if the fault has no place
}

// Error implements error.
func (e *Error) Error() string { return e.Code + ": " + e.Detail }

// NewID returns a new random id (a version 4 UUID). Any goroutine.
func NewID() string { return uuid.NewString() }
