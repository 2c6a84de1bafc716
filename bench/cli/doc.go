// Package cli, which is not covered by the compatibility promise, holds the experiments of the program rankd:
// the commands "rankd bench …", the figures of --bench, and --bench_eventloop. Each has a file: its flags,
// its scenarios and subjects, how a round of it runs, and what its report says. Package harness does the
// rest.
package cli
