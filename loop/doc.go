// Package loop, which is not covered by the compatibility promise, is an event loop in the image of libuv's.
// One goroutine runs every callback, so data that only callbacks touch needs no lock.
//
// # One iteration
//
//	            any goroutine ── Post ──▶ inbox (FIFO), at most one wake in flight
//	                                        │
//	┌─▶ poll: I/O callbacks ─▶ inbox ─▶ check ─▶ closing ─▶ now ─▶ timers ─▶ prepare ─▶ flush ─┐
//	└──────────────────────────────────────────────────────────────────────────────────────────┘
//
// An iteration is one round through all phases:
//
//   - poll: the host waits for I/O, for a wake, or until the wait that the loop
//     computed is over. It runs the callbacks of the sockets that are ready.
//   - inbox: the loop runs the posts that were there when the phase began. Posts made
//     meanwhile run in the next iteration, after I/O: posting cannot starve I/O.
//   - check: check hooks run, then deferred work (Defer).
//   - closing: the callbacks of closed handles run, each once, from a fresh stack.
//   - now: the loop refreshes the cached time, as it does after the poll.
//   - timers: the timers that were due when the phase began fire, by due time, then by
//     start order.
//   - prepare: idle hooks run, then prepare hooks, then the work that was put off until right
//     before the flush (BeforeFlush).
//   - flush: the host sends the bytes that its connections have buffered. This phase comes
//     last, so that a connection needs one write for a whole iteration. A connection
//     with much to send starts earlier.
//
// # Who polls
//
// The loop knows no sockets and starts no goroutine. A Host provides both, in one of
// two ways that run the same phases:
//
//   - pull: the caller's goroutine calls Run with a poll function. The loop calls
//     it once per iteration. Tests and simulations drive the loop like this.
//   - push: the host owns the goroutine. It runs each I/O callback through Event
//     and calls Iterate after each batch of them. gnet drives the loop like this.
//
// A callback must call neither Run nor Iterate: ErrNested.
//
// # Panics and Goexit
//
// The loop contains a panic in a callback: it counts the panic in Metrics, reports it to
// Config.OnPanic or else to the log, and goes on.
//
// A callback that calls runtime.Goexit (as testing.T.FailNow does) ends the loop's
// goroutine. Nothing can prevent that. No other goroutine can take over a callback that
// is half done, and the host's poller is gone. Posts would be accepted and never run. So
// the loop panics with ErrGoexit, which ends the process and shows the callback's
// stack. The same holds for a coroutine that a callback resumes.
//
// # Life
//
//	idle ── Start ──▶ running ── Stop ──▶ stopping ── wound down ──▶ stopped
//
// Stop changes the state under the inbox lock, so a post is either refused or will run. The present iteration
// finishes, also the batch of timers that is firing. Accepted posts run, then deferred work, and hooks run up to
// then. All other timers are dropped without firing. The host closes its connections, tells their users, and then
// finishes. Stop never waits: a goroutine that needs the end waits for Done. A stopped loop cannot start again.
//
// # Where it differs from libuv
//
//   - The loop computes the wait from a fresh clock, so time spent in a callback
//     shortens the next wait.
//   - A timer's delay counts from the clock at Start, not from the cached time. A timer
//     is therefore never early, however long the callback that started it has run.
//   - Hooks run in the order of their starts, and handles close in the order of their
//     Close calls. libuv's orders are last-in-first-out and undocumented.
//   - The loop contains, counts and reports a panic in a callback.
//   - There is no unref and no walk: nothing here needs them.
//
// docs/glossary.md explains the words that this package shares with others.
package loop
