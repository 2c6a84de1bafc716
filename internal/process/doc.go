// Package process runs programs as processes, for benchmarks and for tests that need the program itself: redis-server, and
// "rankd serve" with its fronts on free loopback ports. They are killed or told to end like any other process, and looked at from outside.
package process
