// Package cli, which is not covered by the compatibility promise, holds the experiments of the program rankd:
// the commands "rankd bench …", the figures of --bench, and --bench_eventloop. Each has a file: its flags,
// its scenarios and subjects, how a round of it runs, and what its report says. Package harness does the
// rest.
//
// The folder bench opens engines with rankd.Open, as any program does, and nothing imports it but the program
// rankd, which imports this package:
//
//	harness             what they have in common: interleaved rounds ─▶ medians, intervals, ratios, aims ─▶ text, JSON, a page
//	load                closed and open loop, histograms, resource facts
//	internal/worker     a process per engine, the lines of JSON that it reads and writes, and the age of what it serves from memory
//	internal/engines    "pool:redis_pool=16" ─▶ an engine as the target of a load
//	caller              clients of "rankd serve" as the target of a load, and those that others wrote
//	internal/backend    the Redis of a benchmark, and proxies that add latency
//	internal/scenario   plans with their data, users and contexts
//	internal/delay      a proxy that makes the way to a server longer
//	internal/placement  plans of cheap, heavy and waiting nodes, and a machine of virtual cores that runs them
//	internal/eventloop  posts, timers, sleeping, offloading, interference, round trips
//	peers               a module of its own: the plans hand-written on other Redis clients
//
// docs/benchmarks.md describes the method and the limits of the figures.
package cli
