// Package editor writes what an editor needs to check plans in TypeScript: the type declarations of
// the language, a tsconfig.json, and an example plan.
//
//	task catalog ─┐
//	              ├─▶ compiler.Language ─▶ Declarations ─▶ rankd.d.ts ─▶ tsc, the editor
//	registry ─────┘
//
// The declarations come from the language alone, so a task that a program registers needs no line
// of TypeScript. Tokens of keys have branded types: a numeric key is a number with a mark. tsc
// therefore accepts Key.id * 2, and refuses Key.country * 2. The compiler refuses more than tsc
// can see: the condition of an if is any value for tsc.
package editor
