// Package loopsim drives a loop in a simulated world: a clock that jumps from one
// instant at which something happens to the next, and a queue of events that stand
// for all that happens outside the loop (bytes that arrive, a worker that is done,
// a caller that submits).
//
//	           ┌──────────────── Settle: until nothing is due ────────────────┐
//	Advance ──▶│ poll: events due, ties in seeded order ─▶ inbox ─▶ … ─▶ timers │──▶ next instant
//	           └──────────────────────────────────────────────────────────────┘
//
// Everything runs on the caller's goroutine and every choice comes from one seeded
// generator, so that one seed gives one schedule, to the last byte of its log.
package loopsim
