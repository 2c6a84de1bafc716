// Package blocking, which is not covered by the compatibility promise, has the engines without a loop:
// TwoPools, the threading model that scheduler.Async replaces, and Sequential, the simplest engine that there
// is. They are here to be compared with.
//
//	TwoPools:   request's goroutine ─┬─ waits for Redis ─▶ I/O workers, each blocking ─┐
//	                   ▲             └─ anything else ───▶ CPU workers, each blocking ─┤
//	                   └──────────────── lock, settle the node, signal ◀───────────────┘
//	Sequential: one node at a time on the request's goroutine
//
// Both drive the same scheduler.Run and scheduler.Job as Async, with the same
// batched commands (package resp/blocking), so the engines differ in the model alone. Package
// scheduler does not know them. Its external tests hold all three engines to one contract.
//
// docs/glossary.md explains the words that this package shares with others.
package blocking
