// Package loopsim drives a loop in a simulated world. Its clock jumps from one event to the next. A queue of
// events represents everything that happens outside the loop: bytes arrive, a worker finishes, a caller
// submits.
//
//	           ┌──────────────── Settle: until nothing is due ────────────────┐
//	Advance ──▶│ poll: events due, ties in seeded order ─▶ inbox ─▶ … ─▶ timers │──▶ next instant
//	           └──────────────────────────────────────────────────────────────┘
//
// Everything runs on the caller's goroutine, and every choice comes from one seeded
// generator. One seed therefore gives one schedule, to the last byte of its log.
package loopsim
