// Package bench is the folder of what measures rankd. The parts:
//
//	load      puts load on a target, closed or open loop, and measures
//	engines   the engines as targets
//	backend   the Redis that a benchmark talks to, with latency added if asked
//	worker    one engine in a process of its own, commanded over a pipe
//	compare   interleaved rounds of several workers, intervals, the knee of a sweep
//	report    the HTML report
//	eventloop the loop alone: posts, timers, sleeps, offloads, interference
//	kernels   the columnar kernels by row count
//	loopback  the reactor beside redis-benchmark, a program
//	peers     the same plans by hand on other clients, a module of its own
package bench
