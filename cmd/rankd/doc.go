// Command rankd ranks: it reads requests from stdin, runs a plan for each, and
// writes one line of JSON per request to stdout, in input order.
//
//	stdin ─▶ Stream ─▶ Parse ─▶ line of pending answers ─▶ Encoder ─▶ stdout
//	 (reader goroutine)   │        ▲ (at most --max_inflight)  (writer goroutine)
//	                      ▼        │
//	                  engine ── done callbacks, in any order
//
// This package only wires: flags.go says what can be asked for, wire.go builds the
// parts and passes them down, serve.go moves requests, answer.go turns outcomes
// into answers, bench.go and print.go are the other jobs, effect.go says which flag has an
// effect on which job.
//
// Exit status: 0 if all went well, 1 if a request failed or the output could not be written,
// 2 for bad usage or a bad plan, in which case nothing is written to stdout. One job
// differs: --list-plans lists the sound plans beside a bad one, and ends with 2.
package main
