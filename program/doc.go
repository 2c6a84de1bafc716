// Package program is the program rankd as a library: [Main] runs each of its commands, with tasks, tables, models and
// plans of your own beside or in place of the built-in ones. cmd/rankd is Main and nothing else.
//
// The root command reads requests from stdin, runs a plan for each, and
// writes one line of JSON per request to stdout, in input order.
//
//	stdin ─▶ Stream ─▶ ParseRequest ─▶ line of pending answers ─▶ AppendJSON ─▶ stdout
//	 (reader goroutine)      │            ▲ (at most --max_inflight)  (writer goroutine)
//	                         ▼            │
//	                  rankd.Engine ── done callbacks, in any order
//
// This package is flags, stdin and printing in front of package rankd. flags.go has the flags that package
// internal/cmdline does not have, and effect.go says which flag affects which job. engine.go opens an engine, and
// serve.go moves requests and answers. run.go is "rankd run", reference.go is "rankd tasks", and
// trace.go is "rankd trace", eval.go is "rankd eval". print.go lists plans, and metrics.go prints --metrics. Packages trace/... draw, package
// bench/cli holds the benchmarks, and package internal/command/serve is "rankd serve".
//
// Exit status: 0 if all went well, 1 if a request failed or the output could not be written, 2 for bad usage or a bad
// plan, in which case nothing is written to stdout. One job differs: --list-plans lists the sound plans even if one
// is bad, and then exits with 2.
package program
