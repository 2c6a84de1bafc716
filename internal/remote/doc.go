// Package remote asks services that answer JSON over HTTP: a model server, a feature service. It speaks
// HTTP/1.1 through net/http, which blocks, so the work is done off the loop:
//
//	loop                          a goroutine per request on its way
//	Client.Do ── a free slot? ──▶ Exchange.Request writes the body
//	    │  waits in line          net/http sends it and reads the answer
//	    ▼                         Exchange.Answer takes the answer
//	Call.Done ◀─────── post ───── ends
//
// A Client belongs to a loop. A Blocking serves engines that block. Both use a Service, which makes one request and
// knows what its failure means.
//
// # Bounds
//
// At most Options.Connections requests are in flight, one for each connection, and no more than Options.MaxInflight.
// Each has a goroutine of its own, and each connection has two of net/http's. Further calls wait in a queue without a
// goroutine, at most Options.MaxWaiting of them. Request and answer have bounds in bytes.
//
// # Ownership
//
// From Do to Done the goroutine may call both functions of the Exchange. So a call that times out, or that its owner
// cancels, ends in two steps: its request is cancelled, and Done follows when the goroutine has returned. A queued
// call ends at once.
//
// # Repetition
//
// A service may close an idle connection just as a request leaves on it. net/http then sends the request once more,
// if no byte of an answer has come. A service must therefore tolerate the same request twice.
//
// docs/glossary.md explains the words that this package shares with others.
package remote
