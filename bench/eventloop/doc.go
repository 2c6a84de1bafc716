// Package eventloop measures the event loop as the engine runs it: hosted by gnet,
// with posts from other goroutines, timers, and work offloaded to the CPU pool.
//
//	Posts         functions posted to the loop per second, by number of producers
//	Timers        timers started and fired per second, and how late they fire
//	SleepVsPool   tasks that wait: on the loop, against workers that block
//	Offload       loop ─▶ pool ─▶ loop, by the bytes that the work touches
//	Interference  how late posts, timers and replies are while the pool's workers are all busy
//
// Latencies are of whole round trips and include the reading of the clock, some
// 50 ns. Nothing here needs a plan or, except for the replies of Interference, a
// Redis.
package eventloop
