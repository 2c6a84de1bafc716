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
// A plan is a program, so it runs in a child process with bounds on memory and time. See [Main]. A [Language] says
// which names a plan may use. It is made from the task catalog and the registry.
package compiler
