// Package cli, which follows the engine's needs, holds the experiments of the program rankd: the
// commands "rankd bench …", the figures of --bench, and --bench_eventloop. Each has a file: its flags,
// its scenarios and subjects, how a round of it runs, and what its report says. Package harness does
// the rest.
package cli
