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
// block. What it relies on in pond: Go starts a worker goroutine while fewer
// than Workers run.
//
// How many workers: the loop's goroutine wakes late whenever all Ps run CPU
// work (a wake-up then waits for a 10 ms preemption slice). The rule is "CPU
// goroutines < GOMAXPROCS"; the program therefore sets GOMAXPROCS to the
// number of workers plus two, one P for the loop and one for the runtime's
// timers and the request stream.
package cpupool
