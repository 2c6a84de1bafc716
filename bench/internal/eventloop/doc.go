// Package eventloop, which is not covered by the compatibility promise, measures the event loop as the engine
// runs it: hosted by gnet, with posts from other goroutines and timers.
//
//	Posts         functions posted to the loop per second, by number of producers
//	Timers        timers started and fired per second, and how late they fire
//	SleepVsPool   tasks that wait on the loop, compared with workers that block
//
// A latency covers the whole round trip, including some 50 ns for reading the clock. Only SleepVsPool runs a plan.
package eventloop
