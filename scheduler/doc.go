// Package scheduler runs plans: it holds the DAG state machine, which is pure,
// and the engines that drive it.
//
//	                 ┌──────────── State: what is ready, running, done ───────────┐
//	                 │ Next                                       Succeed │ Fail  │
//	                 ▼                                                    │       │
//	Async:      place ─┬─ on loop ─▶ coroutine on the loop ── await ─▶ body ends ┤
//	                   └─ Run ──────▶ job on the CPU pool ─── Post ──▶ body ends ─┤
//	                                                       node's deadline ───────┘ first wins
//	Pool:       waits for Redis ? I/O workers : CPU workers, each blocking; lock, settle, signal
//	Sequential: one node at a time on the request's goroutine
//
// # The Async engine
//
// One loop goroutine owns every request in flight: no lock guards any of it. A
// node's body may await Redis or a timer; it is then suspended as a coroutine
// while the loop goes on. CPU work runs on the pool and comes back as a post.
//
// A node with a deadline is a race between its body's end and a timer, both on
// the loop: the first settles the node, the other finds it settled. A body that loses
// is an orphan. It keeps everything that it uses (its inputs are immutable, its
// parameters are a copy, its command batch and its timer are its own), runs to
// its end or stops early when it notices, and only then is its memory used again.
//
// An orphan waits for nothing: the node's deadline, or Close, ends the sleep or the Redis
// call that its body is in, and those that the body begins afterwards end at once. So on the loop
// an orphan outlives its node by an iteration or two, and orphans do not pile up. This goes
// beyond the seeds, where a timed-out body sleeps on; there as here its result is dropped, and a
// body that ignores its cancellation counts as a late completion.
//
// # Closing
//
// Close refuses new requests; lets those in flight end, up to a grace; fails the rest with
// ErrShuttingDown, whose bodies are orphans from then on; closes the clients, which ends the
// orphans' calls; and waits until the last orphan has ended, which for CPU work is when it looks, or
// at its end. Then pool and loop stop, in this order, since late completions post.
package scheduler
