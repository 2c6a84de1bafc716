// Package peers is rankd's plans as a good Go engineer would write them without
// rankd: no plan, no scheduler, a function for each plan that reads straight down,
// a goroutine for each request, and one pipelined batch for each wave of Redis
// commands.
//
//	request ─▶ Ranker (ranker.go, one function per plan)
//	             │ waves: viewer ─▶ lists ─▶ users ─▶ media
//	             ▼
//	           Store (store.go)
//	             ├─ rueidis.go    github.com/redis/rueidis, auto-pipelining
//	             └─ goredis.go    github.com/redis/go-redis, pools or auto-pipelining
//
// It is there to be measured against, so it is written to win: what README.md has found
// to be faster is the default, and nothing is done that an answer does not need. The
// Redis commands are the engine's, in the engine's waves, and the answers are the
// engine's, candidate by candidate.
//
// The command in cmd/peer is the worker that "rankd bench compare" starts; its load,
// warm-up and histograms are the same code as for rankd's own engines (target.go).
package peers
