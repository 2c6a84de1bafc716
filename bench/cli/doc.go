// Package cli, which follows the engine's needs, holds the benchmarks of the program
// rankd: the commands "rankd bench …", the figures of --bench, and --bench_eventloop. It
// prints; the packages beside it measure.
package cli
