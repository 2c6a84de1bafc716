// Package reference, which is not covered by the compatibility promise, describes plans to the people and
// tools that write them. All of it is made from the specs of the tasks, the table of operators and the
// registry, so it always agrees with the engine.
//
//	task.Spec ──▶ Task ──▶ Text       rankd tasks
//	                  └──▶ pages      docs/reference, by the tests
//
// The examples are plans in TypeScript. A test compiles and runs each, and keeps artifact and answer in
// examples.json: see Examples.
package reference
