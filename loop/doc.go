// Package loop is an event loop in the image of libuv's: one goroutine runs
// every callback, so that what only callbacks touch needs no lock.
//
// # One iteration
//
//	            any goroutine ── Post ──▶ inbox (FIFO), at most one wake in flight
//	                                        │
//	┌─▶ poll: I/O callbacks ─▶ inbox ─▶ check ─▶ closing ─▶ now ─▶ timers ─▶ prepare ─▶ flush ─┐
//	└──────────────────────────────────────────────────────────────────────────────────────────┘
//
// The phases are these.
//
//   - poll: the host waits for I/O, for a wake or until the wait that the loop
//     computed is over, and runs the callbacks of what is ready.
//   - inbox: the posts that were there when the phase began. What they post runs
//     in the next iteration, after I/O had its turn: posting cannot starve I/O.
//   - check: check hooks, then deferred work (Defer).
//   - closing: callbacks of closed handles, each once, from a fresh stack.
//   - now: the cached time is refreshed (as it is after the poll).
//   - timers: what was due when the phase began, by due time, then by start order.
//   - prepare: idle hooks, then prepare hooks.
//   - flush: the host hands over what its connections have buffered. It comes
//     last, so that a connection needs one write for all that an iteration did, unless
//     that is so much that the host has handed over part of it earlier.
//
// # Who polls
//
// The loop knows no sockets and no goroutine. A Host gives it both, in one of
// two ways that run the same phases:
//
//   - pull: the caller's goroutine calls Run with a poll function. The loop calls
//     it once an iteration. Tests and simulations are driven like this.
//   - push: the host owns the goroutine. It runs each I/O callback through Event
//     and calls Turn after each batch of them. gnet is driven like this.
//
// Neither Run nor Turn may be called within a callback: ErrNested.
//
// # Panics and Goexit
//
// A callback that panics is contained: the loop counts the panic, reports it to Config.OnPanic or else to
// the log, and goes on.
// A callback that calls runtime.Goexit (as testing.T.FailNow does) ends the loop's
// goroutine. Nothing can prevent that, no other goroutine can take over a callback that
// is half done, and the host's poller is gone. Without a loop, posts would be accepted
// and never run, so the loop panics with ErrGoexit, which ends the process and shows the
// callback's stack. The same holds for a coroutine that a callback resumes.
//
// # Life
//
//	idle ── Start ──▶ running ── Stop ──▶ stopping ── wound down ──▶ stopped
//
// Stop flips the state under the inbox lock, so a post is either refused or will
// run; then what was accepted runs, deferred work runs, timers are dropped
// unfired, the host's connections are closed and told so, and the host finishes.
// Stop itself never waits: a goroutine that needs the end waits for Done. There is no
// way back from stopped.
//
// # Where it differs from libuv
//
//   - The wait is computed from a fresh clock, so time burned in a callback is
//     subtracted from the next wait.
//   - A timer's delay counts from the clock at Start, not from the cached time:
//     a timer is never early, however long the callback that started it has run.
//   - Hooks run, and handles close, in the order in which they were started or
//     closed (libuv's orders are last-in-first-out and undocumented).
//   - A panic in a callback is contained, counted and reported.
//   - There is no unref and no walk: nothing here needs them.
package loop
