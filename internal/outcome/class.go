// Package outcome says how a request ended. Its one table maps a [Class] to its names in RESP, HTTP, metrics,
// logs and the documentation. Package rankd gives each of its errors a class.
package outcome

import "log/slog"

// Class says how a request ended. Immutable; any goroutine.
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
	BelowMinimum
	Abandoned
	Internal

	// Count is the number of classes.
	Count int = iota
)

// retryAfterSeconds is the Retry-After of classes for which a retry may help. A second is the least that the header
// can say.
const retryAfterSeconds = 1

// table has the names of each class, and what clients get.
var table = [Count]struct {
	code       string // of RESP
	status     int    // of HTTP
	retryAfter int    // seconds; 0: no header
	label      string // in metrics and logs
	level      slog.Level
	sentence   string // the "error" of a refusal that has no closer one
	text       string // for the documentation
}{
	OK:              {"", 200, 0, "ok", slog.LevelInfo, "", "the request has its answer"},
	BadRequest:      {"BADREQ", 400, 0, "bad_request", slog.LevelInfo, "Invalid request", "the request is wrong: its JSON, its fields, its parameters or the protocol around it"},
	UnknownPlan:     {"NOPLAN", 404, 0, "unknown_plan", slog.LevelInfo, "Unknown plan", "the request names a plan that does not exist"},
	Unauthenticated: {"NOAUTH", 401, 0, "unauthenticated", slog.LevelInfo, "Not authenticated", "the request came without a token, or with one that is not valid"},
	Forbidden:       {"NOPERM", 403, 0, "forbidden", slog.LevelInfo, "Not permitted", "the caller may not ask for this plan or set this field"},
	TooLarge:        {"TOOLARGE", 413, 0, "too_large", slog.LevelInfo, "Request too large", "the request is longer than a limit allows"},
	TooMany:         {"TOOMANY", 429, retryAfterSeconds, "too_many", slog.LevelInfo, "Too many requests", "the token has reached its max_inflight: so many of its requests are under way"},
	Overloaded:      {"OVERLOADED", 503, retryAfterSeconds, "overloaded", slog.LevelWarn, "Overloaded", "the server, or something that it asks, has too much to do; a retry elsewhere or later may succeed"},
	ShuttingDown:    {"CLOSING", 503, retryAfterSeconds, "shutting_down", slog.LevelWarn, "Shutting down", "the server is closing; a retry elsewhere succeeds"},
	Timeout:         {"TIMEOUT", 504, 0, "timeout", slog.LevelWarn, "Request deadline exceeded", "the deadline of the request or of a node passed, while the request waited or while it ran"},
	Unavailable:     {"UNAVAILABLE", 502, 0, "unavailable", slog.LevelWarn, "Node execution failed", "Redis or a service answered with an error, or could not be asked"},
	BelowMinimum:    {"BELOWMIN", 503, retryAfterSeconds, "below_minimum", slog.LevelWarn, "Below minimum", "an output has fewer rows than its plan wants, and the plan says that this is an error; a retry may succeed"},
	Abandoned:       {"ABANDONED", 499, 0, "abandoned", slog.LevelInfo, "Request cancelled", "the client had gone before the answer was there; nobody sees this"},
	Internal:        {"INTERNAL", 500, 0, "internal", slog.LevelError, "Request failed", "the plan, a task or the server is at fault"},
}

// Classes returns all classes in order.
func Classes() []Class {
	all := make([]Class, Count)
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

// Level returns the log level of the class. It depends on who has to act.
func (c Class) Level() slog.Level { return table[c].level }

// Sentence returns the "error" of a refusal without a more specific text. OK has none.
func (c Class) Sentence() string { return table[c].sentence }

// Text says what the class means, for the documentation.
func (c Class) Text() string { return table[c].text }
