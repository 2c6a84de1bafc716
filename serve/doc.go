// Package serve, which follows the engine's needs, is the one way from a front, such as HTTP or RESP, into the
// engine and back. It knows no sockets.
//
//	bytes ──▶ front ── Query ──▶ Service.Ask ── grants ──▶ rankd.Intake.Start ──▶ admission, scheduler
//	bytes ◀── front ◀── Reply ── done ◀── metrics, log ◀──────────────────────────────────────┘
//
// A [Service] gives every request to the same engine, checks what its caller may ask for, counts it and logs its failure.
// A [Query] is one request, and brings the [Reply] back. An [outcome.Class] says how a request ended.
//
// An answer has the bytes that the program rankd prints on stdout, and so has an error of a request that stdin could bring.
//
// docs/glossary.md explains the words that this package shares with others.
package serve
