// Package generation has what an engine loads together (tables, models, plans) and how one load replaces another while requests run.
//
//	Source ── Loader ──▶ Generation: immutable; each request and each answer holds the one that it began with
//	                        ▲
//	Keeper ── present, former: Reload, Back, and the rows that plans read from memory
//	   │
//	   └── Host: the engine, which runs plans for the Keeper
//
// docs/glossary.md explains the words that this package shares with others.
package generation
