// Package serve, which is not covered by the compatibility promise, is the one way from a front, such as HTTP
// or RESP, into the engine and back. It knows no sockets.
//
//	bytes ──▶ front ── Query ──▶ Service.Ask ── grants ──▶ rankd.Intake.Start ──▶ admission, scheduler
//	bytes ◀── front ◀── Reply ── done ◀── metrics, log ◀──────────────────────────────────────┘
//
// A [Service] gives every request to the same engine. It checks what the caller may ask for, counts the request, and
// logs its failure. A [Query] is one request, and brings the [Reply] back. An [outcome.Class] says how a request
// ended.
//
// An answer has the same bytes as on stdout of the program rankd. So has an error, if the request could have come
// from stdin.
//
// docs/glossary.md explains the words that this package shares with others.
package serve
