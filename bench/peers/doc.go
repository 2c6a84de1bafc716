// Package peers has rankd's plans as a good Go engineer would write them without rankd. Each
// plan is a function that reads straight down, without a scheduler. Each request has a
// goroutine, and each wave of Redis commands is one pipelined batch.
//
//	request ─▶ Ranker (ranker.go, feed.go: one function per plan)
//	             │ waves: viewer ─▶ lists ─▶ users
//	             ▼
//	           Batch (batch.go): commands, then replies
//	             ▼
//	           Store (store.go)
//	             ├─ rueidis.go    github.com/redis/rueidis, auto-pipelining
//	             └─ goredis.go    github.com/redis/go-redis, pools or auto-pipelining
//
// Benchmarks compare rankd with this package, so it is written to win. Its defaults are the
// settings that README.md found to be fastest, and it does only the work that an answer
// needs. It sends the engine's Redis commands in the engine's waves, and gives the
// engine's answers, candidate by candidate.
//
// The command in cmd/peer is the worker that "rankd bench compare" starts. It shares the code
// for load, warm-up and histograms with rankd's own engines (target.go).
package peers
