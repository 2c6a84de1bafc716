// Package cpupool runs CPU work off the loop and brings it back: a job's Work
// runs on a worker of a pond pool, then its Done runs on the loop, through
// Post, in the order in which the jobs finished.
//
//	loop ── Submit ─▶ queue ── end of the iteration ─▶ worker: Work ── Post ─▶ loop: Done
//
// It mirrors libuv's uv_queue_work and uv_cancel. A job is intrusive: its owner
// allocates it once and may submit it again after Done, so that a steady state
// allocates nothing here.
//
// A full queue is an error, never a wait, because the loop submits and must not
// block. A cancelled job leaves the queue at once and is completed at the end of the
// iteration, whatever the workers do.
//
// # What is pond's and what is ours
//
// pond provides the workers: at most so many goroutines, started as they are needed,
// and a stop that waits for them. The queue is ours, for two reasons. pond cannot take
// back what it was given, so a cancelled job would keep its place. And to start a worker
// wakes a sleeping thread, some 10 µs on a virtual machine, ten times the work of a small node.
// The loop therefore starts one worker at the end of an iteration, and a worker that leaves
// jobs behind starts the next, at its own expense. Given to pond one by one at the end of
// the iteration instead, jobs cost 15 % more CPU per request (concat_plan, 8 in flight).
//
// # The end
//
// Close refuses jobs and waits for those accepted; then the loop stops. If the loop stops
// first it refuses the hand-backs. Close then waits for the loop's end and runs their Done
// itself: each accepted job has its Done called exactly once, in either order.
//
// # How many workers
//
// The loop's goroutine wakes late whenever all Ps run CPU
// work (a wake-up then waits for a 10 ms preemption slice). The rule is "CPU
// goroutines < GOMAXPROCS"; the program therefore sets GOMAXPROCS to the
// number of workers plus two, one P for the loop and one for the runtime's
// timers and the request stream.
package cpupool
