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
// Fourteen packages are stable: if a version breaks what they export, CHANGELOG.md says so, and says how to adapt.
//
//	rankd                    open an engine, ask it
//	task, task/builtin       write a task; the tasks that are there
//	rowset, registry, plan   what a task works on: rows, keys and endpoints, its node
//	rankdtest                test tasks and plans
//	program                  the program rankd with tasks of your own
//	trace                    take the traces of an engine
//	trace/record             read and write files of recorded requests
//	adapters/rankdprom       its metrics for Prometheus
//	adapters/rankdotel       its traces for OpenTelemetry
//	compiler                 compile plans that are written in TypeScript
//	compiler/editor          the types of that language for an editor
//
// docs/api.txt has their exported names, so that a change is seen. All others are not covered, as their first
// sentences say, and neither are five parts of these: Metrics and what it contains; Intake, except Start;
// package rowset's columns, since a result may soon borrow buffers of the engine; replies of Redis as tasks see them
// (resp.Reply); and those parts of package plan that tasks do not need (Graph, Library, Ops and similar).
//
// docs/glossary.md explains the words that this package shares with others.
package rankd
