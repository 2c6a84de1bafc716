package serve

import (
	"errors"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/request"
)

// Class says how a request ended.
type Class uint8

// The classes.
const (
	OK Class = iota
	BadRequest
	UnknownPlan
	Unauthenticated
	Forbidden
	TooLarge
	TooMany
	Overloaded
	ShuttingDown
	Timeout
	Unavailable
	Abandoned
	Internal

	classes int = iota
)

// retryAfterSeconds is the Retry-After of classes that a retry may help. A second is the least that the header can say.
const retryAfterSeconds = 1

// table has what each class is called, and what a client is told.
var table = [classes]struct {
	code       string // of RESP
	status     int    // of HTTP
	retryAfter int    // seconds; 0: no header
	label      string // in metrics and logs
	sentence   string // the "error" of a refusal by a front
	text       string // for the documentation
}{
	OK:              {"", 200, 0, "ok", "", "the request has its answer"},
	BadRequest:      {"BADREQ", 400, 0, "bad_request", "Invalid request", "the request is wrong: its JSON, its fields, its parameters or the protocol around it"},
	UnknownPlan:     {"NOPLAN", 404, 0, "unknown_plan", "Unknown plan", "the request names a plan that does not exist"},
	Unauthenticated: {"NOAUTH", 401, 0, "unauthenticated", "Not authenticated", "the request came without a token, or with one that is not valid"},
	Forbidden:       {"NOPERM", 403, 0, "forbidden", request.CodeForbidden, "the caller may not ask for this plan or set this field"},
	TooLarge:        {"TOOLARGE", 413, 0, "too_large", "Request too large", "the request is longer than a limit allows"},
	TooMany:         {"TOOMANY", 429, retryAfterSeconds, "too_many", "Too many requests", "the token has reached its max_inflight: so many of its requests are under way"},
	Overloaded:      {"OVERLOADED", 503, retryAfterSeconds, "overloaded", "Overloaded", "the server, or something that it asks, has too much to do; a retry elsewhere or later may succeed"},
	ShuttingDown:    {"CLOSING", 503, retryAfterSeconds, "shutting_down", "Shutting down", "the server is closing; a retry elsewhere succeeds"},
	Timeout:         {"TIMEOUT", 504, 0, "timeout", "Request deadline exceeded", "the deadline of the request or of a node passed, while the request waited or while it ran"},
	Unavailable:     {"UNAVAILABLE", 502, 0, "unavailable", "Node execution failed", "Redis or a service answered with an error, or could not be asked"},
	Abandoned:       {"ABANDONED", 499, 0, "abandoned", "Request cancelled", "the client had gone before the answer was there; nobody sees this"},
	Internal:        {"INTERNAL", 500, 0, "internal", "Request failed", "the plan, a task or the server is at fault"},
}

// Classes returns all classes in order.
func Classes() []Class {
	all := make([]Class, classes)
	for i := range all {
		all[i] = Class(i)
	}
	return all
}

// Code returns the first word of the error in RESP: upper-case letters. OK has none.
func (c Class) Code() string { return table[c].code }

// Status returns the status of HTTP.
func (c Class) Status() int { return table[c].status }

// RetryAfter returns the seconds of the header Retry-After. Zero means that there is no such header.
func (c Class) RetryAfter() int { return table[c].retryAfter }

// Label returns the name of the class in metrics and logs.
func (c Class) Label() string { return table[c].label }

// Sentence returns the "error" of a refusal by a front. OK has none.
func (c Class) Sentence() string { return table[c].sentence }

// Text says what the class means, for the documentation.
func (c Class) Text() string { return table[c].text }

// classOf returns the class of an error of the engine. The first that matches counts.
func classOf(err error) Class {
	for _, known := range [...]struct {
		err   error
		class Class
	}{
		{rankd.ErrAbandoned, Abandoned},
		{rankd.ErrOverloaded, Overloaded},
		{rankd.ErrClosed, ShuttingDown},
		{rankd.ErrTimeout, Timeout},
		{rankd.ErrUnknownPlan, UnknownPlan},
		{rankd.ErrInvalidRequest, BadRequest},
		{rankd.ErrBusy, Overloaded},
		{rankd.ErrRedis, Unavailable},
		{rankd.ErrRemote, Unavailable},
	} {
		if errors.Is(err, known.err) {
			if known.class == BadRequest {
				return refusedAs(err)
			}
			return known.class
		}
	}
	return Internal
}

// refusedAs returns the class of an error about the text of a request.
func refusedAs(err error) Class {
	var refused *request.Error
	switch {
	case !errors.As(err, &refused):
	case refused.Code == request.CodeTooLarge:
		return TooLarge
	case refused.Code == request.CodeForbidden:
		return Forbidden
	}
	return BadRequest
}
