// Package plan reads a plan artifact, checks it fail-closed, and compiles it
// once into an immutable, integer-indexed graph that any number of requests
// and loops share.
//
//	artifact ──▶ read ──────────────▶ compile ─────────────────────▶ Graph
//	 (JSON)      shape of the file    ops, inputs, params, tables,
//	             and of every tree    endpoints, outputs, no cycle
//
// Load reads the whole artifact before it compiles, so faults of reading come before all others. An error names file,
// node and field, in one line. Load ignores unknown members, except inside params and scheduling. There a misspelled
// name would silently change the plan, so Load refuses it.
//
// The tasks check the rest when they run, because it may depend on the run: the number
// of inputs, the range of integers, and whether columns and keys exist.
//
// Finally Load finds the lookups that can read for later ones, too (ahead.go). Graph.LateLookups says which lookups
// could be later (advice.go).
//
// A Library finds plans by name in a folder, loads each once, and keeps it.
//
// docs/glossary.md explains the words that this package shares with others.
package plan
