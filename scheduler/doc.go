// Package scheduler, which is not covered by the compatibility promise, runs plans. It holds the DAG state
// machine, which is pure, and Async, the engine that drives it on a loop.
//
//	    ┌──────────────── State: what is ready, running, done ───────────────┐
//	    │ Next                                                  Succeed │ Fail │
//	    ▼                                                               │      │
//	place ─▶ Run.Load ─▶ Job.Steps ─┬─▶ inliner: on the loop, no wait ──┤      │
//	                                ├─▶ loopBody: a coroutine, awaits ──┤ first wins
//	                                └─▶ offload: a worker, a chain ─────┤      │
//	                                    deadline, refusal, giving up ───┴──────┘
//
// docs/how-a-request-runs.md follows one request, and lists the files in the order in which they are best read. Package
// scheduler/blocking has the engines without a loop, which drive the same jobs.
//
// # The Async engine
//
// One loop goroutine owns every request in flight: no lock guards any of it. The body of a node
// may await Redis or a timer. It is then suspended as a coroutine while the loop goes on. CPU
// work runs on the pool and comes back as a post.
//
// A computing node runs inline if its author and the plan permit it, and its predicted time is
// under a threshold. Otherwise it goes to the pool, with the rest of its chain. In the mode
// OffloadAll each computing node is a job of its own.
//
// A node with a deadline is a race between the end of its body and a timer, both on the loop. The
// first settles the node, and the other finds it settled. A body that loses is an orphan. It keeps
// everything that it uses: its inputs are immutable, its parameters are a copy, its command batch
// and its timer are its own. It runs to its end, or stops early when it notices. Only then is its
// memory used again.
//
// An orphan waits for nothing. The node's deadline, or Close, ends the sleep or the Redis call
// that its body is in; a wait that begins afterwards ends at once. So on the loop an orphan
// outlives its node by an iteration or two, and orphans do not pile up. This goes beyond the
// original specification, where a timed-out body sleeps on. There as here its result is dropped, and a
// body that ignores its cancellation counts as a late completion.
//
// # Closing
//
// Close refuses new requests and lets those in flight end, up to a grace. It fails the rest with
// ErrShuttingDown, whose bodies are orphans from then on. It closes the clients, which ends the
// orphans' calls, and waits until the last orphan has ended. CPU work ends when it looks, or at its
// own end. Then the pool stops, and after it the loop, since late completions post.
//
// docs/glossary.md explains the words that this package shares with others.
package scheduler
