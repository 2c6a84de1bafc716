// Package cpupool, which is not covered by the compatibility promise, runs CPU work outside the loop. A job's
// Work runs on a worker of a pond pool. Then its Done runs on the loop, through Post, in the order in which
// the jobs finish.
//
//	loop ── Submit ─▶ queue ── end of the iteration ─▶ worker: Work ── Post ─▶ loop: Done
//
// It mirrors libuv's uv_queue_work and uv_cancel. A job is intrusive: its owner allocates
// it once and may submit it again after Done, so that a steady state allocates nothing
// here.
//
// Jobs start in the order of Job.Due, and of their submission if they are due together. Submit returns an error if the queue is full. It never waits, because the loop submits
// and must not block. A cancelled job leaves the queue at once and completes at the end
// of the iteration, whatever the workers do.
//
// # The parts of pond and of this package
//
// pond provides the workers: a bounded number of goroutines, started on demand, and a stop that waits for them. This
// package has the queue, for two reasons. pond cannot take a job back, so a cancelled job would keep its place. And
// starting a worker wakes a sleeping thread, which takes some 10 µs on a virtual machine, ten times the work of a
// small node. The loop therefore starts one worker at the end of an iteration. A worker that leaves jobs behind
// starts the next worker itself, off the loop. Giving the jobs to pond one by one at the end of the iteration took
// more CPU per request.
//
// # The end
//
// Close refuses further jobs and waits for the accepted ones; then the loop stops. If the
// loop stops first, it refuses the posts of finished jobs. Close then waits for the loop's
// end and runs their Done itself. Done runs exactly once for each accepted
// job, in either order.
//
// # How many workers
//
// The loop's goroutine wakes late while all Ps run CPU work: it then waits for a 10 ms
// preemption slice. The rule is "CPU goroutines < GOMAXPROCS". The program therefore sets
// GOMAXPROCS to the number of workers plus two: one P for the loop, and one for the
// runtime's timers and the request stream.
//
// docs/glossary.md explains the words that this package shares with others.
package cpupool
