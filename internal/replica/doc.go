// Package replica runs "rankd serve" as a process, for benchmarks and for tests that need the program itself: its fronts on
// free loopback ports, killed or told to end like any other process, and looked at from outside.
package replica
