// Package process runs programs as processes, for benchmarks and for tests that need the program itself:
// redis-server, and "rankd serve" with its fronts on free loopback ports. They are killed or stopped like any other
// process, and inspected from outside.
package process
