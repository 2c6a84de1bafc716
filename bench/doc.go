// Package bench, which is not covered by the compatibility promise, is the folder of the benchmarks; "rankd
// bench" runs them. It holds no code itself. Its packages open engines with rankd.Open, as any program does,
// and nothing outside imports them but the program rankd, which imports cli:
//
//	cli        the experiments, a file each, as the commands "rankd bench …", and the figures of --bench
//	harness    what they have in common: interleaved rounds ─▶ medians, intervals, ratios, aims ─▶ text, JSON, a page
//	load       closed and open loop, histograms, resource facts
//	worker     a process per engine, the lines of JSON that it reads and writes, and the age of what it serves from memory
//	engines    "pool:redis_pool=16" ─▶ an engine as the target of a load
//	caller     clients of "rankd serve" as the target of a load, and those that others wrote
//	backend    the Redis of a benchmark, and proxies that add latency
//	scenario   plans with their data, users and contexts
//	placement  plans of cheap, heavy and waiting nodes, and a machine of virtual cores that runs them
//	eventloop  posts, timers, sleeping, offloading, interference, round trips
//	peers      a module of its own: the plans hand-written on other Redis clients
//
// docs/benchmarks.md describes the method and the limits of the figures.
package bench
