// Command rankd ranks: it reads requests from stdin, runs a plan for each, and
// writes one line of JSON per request to stdout, in input order.
//
//	stdin ─▶ Stream ─▶ ParseRequest ─▶ line of pending answers ─▶ AppendJSON ─▶ stdout
//	 (reader goroutine)      │            ▲ (at most --max_inflight)  (writer goroutine)
//	                         ▼            │
//	                  rankd.Engine ── done callbacks, in any order
//
// This package is flags, stdin and printing in front of package rankd: flags.go says which
// flags there are beside those of package internal/cmdline, effect.go which flag has an effect on which job, engine.go opens
// an engine, serve.go moves requests and answers, run.go is "rankd run", reference.go "rankd tasks" and "rankd schema", print.go lists plans,
// metrics.go prints --metrics, trace.go is "rankd trace". Packages trace/... draw, package
// bench/cli holds the benchmarks, and package serve/cli is "rankd serve".
//
// Exit status: 0 if all went well, 1 if a request failed or the output could not be written,
// 2 for bad usage or a bad plan, in which case nothing is written to stdout. One job
// differs: --list-plans lists the sound plans beside a bad one, and ends with 2.
package main
