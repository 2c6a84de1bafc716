// Package bench, which follows the engine's needs, is the folder of the benchmarks; "rankd
// bench" runs them. It holds no code itself. Its packages open engines with rankd.Open, as
// any program does, and nothing outside imports them but the program rankd, which imports
// cli:
//
//	cli        the commands "rankd bench …" and the figures of --bench
//	load       closed and open loop, histograms, resource facts
//	worker     a process per engine, and the lines of JSON that it reads and writes
//	engines    "pool:redis_pool=16" ─▶ an engine as the target of a load
//	backend    the Redis of a benchmark, and proxies that add latency
//	scenario   plans with their data, users and contexts
//	compare    interleaved rounds ─▶ medians, intervals, ratios, knees, an answer, tables
//	report     a comparison as one HTML page with charts
//	eventloop  posts, timers, sleeping, offloading, interference
//	placement  the scheduling modes on plans of cheap, heavy and waiting nodes
//	isolation  what a large request costs small ones beside it
//	caller     clients of "rankd serve" as the target of a load
//	fronts     what the fronts of "rankd serve" cost over the engine in process
//	overload   "rankd serve" beyond its capacity
//	kernels    vm, filter, sort, take and concat by number of rows
//	loopback   a program: the reactor against redis-benchmark
//	peers      a module of its own: the plans hand-written on other Redis clients
//
// docs/benchmarks.md and docs/benchmarks.md#the-server describe the method and the limits of the figures.
package bench
