// Package generation loads what an engine needs (tables, models, plans) as one unit, and replaces one generation by
// another while requests run.
//
//	Source ── Loader ──▶ Generation: immutable; each request and each answer holds the one that it began with
//	                        ▲
//	Keeper ── present, former: Reload, Back, and the rows that plans read from memory
//	   │
//	   └── Host: the engine, which runs plans for the Keeper
//
// docs/glossary.md explains the words that this package shares with others.
package generation
