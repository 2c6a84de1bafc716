// Package trace says what ran when for one request: on the loop, on each worker, on each connection to Redis.
//
//	facts from the engines ──▶ Journal: events of one request ──▶ Recording ──▶ Sink
//	                                                                │ Trace
//	                                                                ▼
//	                                          Trace: nodes, tracks, flows ──▶ CriticalPath, Segments, Gaps, JSON
//
// A Journal records what happens to one request. When the request has ended, its Recording has the plain events.
// docs/trace.md#how-a-trace-is-recorded describes both.
//
//	journal.go   what the engines note
//	event.go     the events
//	journals.go  the journals of an engine, and the bound of their events
//	recording.go what was taken down; assemble.go makes a Trace of it
//	sink.go      who takes recordings; Writer writes them as lines
//
// Drawings and readers of JSON work on a Trace. All its instants are durations since the arrival of the request, in
// nanoseconds. docs/reference/trace-format.md describes its JSON form.
//
//	model.go     the Trace and its parts
//	json.go      its JSON form
//	path.go      the critical path
//	segment.go   what the critical path was doing at each instant, and the gaps in it
//	check.go     what holds for every Trace
//
// The package knows plans and clocks, but none of the engines.
//
// docs/glossary.md explains the words that this package shares with others.
package trace
