// Package bench is the folder of the benchmarks; "rankd bench" runs them. It holds no code
// itself:
//
//	load       what a load is: closed and open loop, histograms, resource facts
//	worker     a process per engine, and the lines of JSON it is spoken to with
//	engines    "pool:redis_pool=16" ─▶ an engine as the target of a load
//	backend    the Redis of a benchmark, and proxies that make the network longer
//	compare    interleaved rounds ─▶ medians, intervals, ratios, knees, tables
//	report     the same as one HTML page with charts
//	eventloop  posts, timers, sleeping, offloading, interference
//	kernels    vm, filter, sort, take, concat by number of rows
//	loopback   a program: the reactor against redis-benchmark
//	peers      a module of its own: the plans hand-written on other Redis clients
//
// The method, and what the figures do not say, is in docs/benchmarks.md.
package bench
