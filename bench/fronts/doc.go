// Package fronts, which follows the engine's needs, measures what the fronts of "rankd serve" cost over the engine in
// process: CPU a request of the serving process, throughput with many requests in flight, and latency with one. Rounds
// of all callers take turns, so that a difference is taken between measurements of the same minute.
//
// The callers are the engine's own process, which asks itself; the clients of bench/caller, in a process of their
// own; and programs that others wrote: redis-benchmark, wrk, ab.
package fronts
