// Package cli holds the commands of rankd around plans in TypeScript: compile, check and init.
//
//	plans/*.plan.ts ── sources ──▶ Compiler ──▶ results ──▶ artifacts/plans/*.plan.json (compile)
//	                                              │    └──▶ compared with them (check)
//	                                              └──▶ report: text on stderr, or JSON on stdout
//
// compile --watch repeats this for the sources that a change of a file affects.
package compile
