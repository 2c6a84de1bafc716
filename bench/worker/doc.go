// Package worker is the process that a benchmark runs in. Each engine and each
// peer has a process of its own, so that no one's garbage, goroutines and
// GOMAXPROCS disturb another's, and all of them stay up, so that rounds can be
// interleaved (A B A B) without starting anything anew:
//
//	rankd bench compare ──Round──▶ stdin   worker: reactor     ──▶ Redis
//	                    ◀─Report── stdout
//	                    ──Round──▶ stdin   worker: peer:rueidis ──▶ Redis
//	                    ◀─Report── stdout
//
// # The protocol
//
// One line of JSON in ([Round]), one line of JSON out ([Report]), in turn; times are
// nanoseconds. A worker ends when stdin does. What it has to say to people goes to
// stderr. It is started as
//
//	rankd bench worker --engine SPEC    SPEC as in --engines: "reactor", "pool:redis_pool=16"
//	<peers binary> --engine NAME        NAME without its prefix: "rueidis", "go-redis"
//
// # Writing a worker
//
// A worker in Go needs no more than a [load.Target] and [Serve]: driving the load,
// warm-up, histograms and resource facts are the same code for all, which is what
// makes them comparable.
//
//	func main() {
//		open := func(s worker.Setup) (load.Target, error) { return dial(s.Redis, s.Plan, s.Fanout) }
//		if err := worker.Serve(os.Stdin, os.Stdout, open); err != nil { ... }
//	}
//
// A target is opened for the first round and kept while Setup stays the same; when it
// changes, the old target is closed before the new one is opened. Each round
// begins with its own warm-up.
package worker
