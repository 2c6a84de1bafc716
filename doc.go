// Package rankd is a ranking engine to embed in a Go program.
//
// A request names a user. A plan, a DAG of tasks, fetches candidates from Redis,
// scores, filters and sorts them, and returns them within a deadline.
//
//	e, err := rankd.Open(rankd.Options{Redis: "127.0.0.1:6379"})
//	defer e.Close()
//	answer, err := e.Rank(ctx, rankd.Request{Plan: "complex_dag", UserID: 1})
//
// An [Engine] serves any number of requests at once. One goroutine behind it, the
// loop, owns all scheduler state and every Redis connection; CPU work runs on a pool
// beside it.
//
//	Rank, Submit ──▶ choose plan, check ──▶ scheduler ──▶ Answer, or *Error
//	                                          │
//	                                          ├─ the loop: tasks that wait for Redis
//	                                          └─ the CPU pool: tasks that compute
//
// # Errors
//
// Every error of Rank and Submit is an [*Error]. Its Text is one of a few known
// sentences, and errors.Is tells its class: ErrUnknownPlan, ErrNodeTimeout,
// ErrRedis and so on.
//
// # Tasks of your own
//
// Options.Tasks adds tasks beside the built-in ones. A task is a task.Spec, and package
// rankdtest runs one without Redis and without an engine.
//
// # Stability
//
// The exported names are kept in testdata/api.txt, so that a change is seen. These parts
// are not stable yet: Metrics and what it contains; package rowset's
// columns, since a result may soon borrow buffers of the engine; and replies of
// Redis as tasks see them (resp.Reply), which will soon be shared between requests.
package rankd
