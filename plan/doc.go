// Package plan reads a plan artifact, checks it fail-closed, and compiles it
// once into an immutable, integer-indexed graph that any number of requests
// and loops share.
//
//	artifact ──▶ read ──────────────▶ compile ─────────────────────▶ Graph
//	 (JSON)      shape of the file    ops, inputs, params, tables,
//	             and of every tree    endpoints, outputs, no cycle
//
// Reading comes entirely before compiling, so an artifact with several faults is
// refused for the one that lies nearer to its text. The first fault is the error; it
// names file, node and field, in one line. Unknown members are ignored, except
// inside params and scheduling, where they are refused: there a misspelt name would
// silently change what the plan does.
//
// Not checked here, because it may depend on the run: the number of inputs, the
// range of integers, and whether columns and keys exist.
//
// A Library finds plans by name in a folder, loads each once, and keeps it.
package plan
