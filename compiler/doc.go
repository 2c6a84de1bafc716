// Package compiler compiles plans that are written in TypeScript into the JSON artifacts that
// package plan loads. It needs no Node: esbuild strips the types and bundles the imports, and
// goja runs the result.
//
//	x.plan.ts ──▶ bundle ──▶ rewrite ────────────▶ run ───────────▶ emit ──▶ artifact
//	 (and its      esbuild,   operators, conditions  goja, in a       sorted
//	 imports)      source     and equalities become  sandbox: tokens  keys,
//	               map        calls                  build IR         spans
//
// JavaScript cannot overload operators, so rewrite replaces each operator, condition and equality of the bundle by a
// call. A call with plain values computes as JavaScript does. A call with a token, such as Key.id, builds an
// expression or a predicate. A token where a value is needed, such as the condition of an if, is an error.
//
//	compiler.go, process.go                    the parent: child processes, results, plans of one name
//	engine.go                                  the compiler of one engine, for Options.Compiler
//	child.go, unit.go, limit_linux.go          the child: jobs, one plan, the watchdog for time and memory
//	files.go, bundle.go                        reading inside the folder only; esbuild; the way back to the source
//	rewrite.go, extent.go, prelude.js          operators become calls
//	operators.go, operations.go, builders.go   what the calls do with tokens
//	value.go, node.go, host.go                 tokens, candidate sets, global names
//	run.go, sandbox.js                         the sandbox
//	testing.go, testing.js                     tests of plans: their code in a child
//	options.go                                 the options of a method become values of the artifact, with their places
//	tree.go, emit.go                           IR and the artifact
//	diagnostic.go, words.go                    diagnostics: their places, and their texts
//	refusal.go                                 faults that the loader finds, at their places in the source
//	language.go                                the vocabulary, made of the task catalog and the registry
//
// A plan is a program, so it runs in a child process with bounds on memory and time. See [Main]. A [Language] says
// which names a plan may use. It is made from the task catalog and the registry.
package compiler
