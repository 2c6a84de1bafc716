// Package worker, which is not covered by the compatibility promise, is the process in which a benchmark runs
// an engine. Each engine and each peer has a process of its own, so that its garbage, goroutines and
// GOMAXPROCS do not disturb the others. All processes stay up, so that rounds can be interleaved (A B A B)
// without a restart:
//
//	rankd bench compare ──Round──▶ stdin   worker: reactor     ──▶ Redis
//	                    ◀─Report── stdout
//	                    ──Round──▶ stdin   worker: peer:rueidis ──▶ Redis
//	                    ◀─Report── stdout
//
// # The protocol
//
// The worker reads one line of JSON ([Round]), writes one line of JSON ([Report]), and so on.
// Times are nanoseconds. The worker ends when stdin ends. It writes messages for people
// to stderr. Its command line is
//
//	rankd bench worker --engine SPEC    SPEC as in --engines: "reactor", "pool:redis_pool=16"
//	<peers binary> --engine NAME        NAME without its prefix: "rueidis", "go-redis"
//
// # Writing a worker
//
// A worker in Go needs only a [load.Target] and [Serve]. All workers share the code for load,
// warm-up, histograms and resource usage, which makes them comparable.
//
//	func main() {
//		open := func(s worker.Setup) (load.Target, error) { return dial(s.Redis, s.Plan, s.Fanout) }
//		if err := worker.Serve(os.Stdin, os.Stdout, open); err != nil { ... }
//	}
//
// The worker opens a target for the first round and keeps it while Setup stays the same. When
// Setup changes, it closes the old target before it opens the new one. Each round begins
// with a warm-up of its own.
package worker
