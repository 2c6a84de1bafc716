// Package task says what a task is and holds the twelve that rankd comes
// with, one file each.
//
// A task is described by a Spec: its op name, its parameters, how many inputs
// it takes, the shape that its output must have, and its body. The body comes
// in two places, and the author's choice decides where a node runs:
//
//	RunAsync set   on the loop, in a coroutine: it may await Redis or a timer,
//	               and must not compute for long
//	RunAsync nil   Run is offloaded to the CPU pool: it computes and must not
//	               do I/O
//
// One exception: a node whose Spec's Computes tells that it makes many rows is offloaded, too.
//
// Engines that have no loop always call Run. A task that does I/O writes one
// body and sets it as both: what waits is behind Ctx, and each engine brings its
// own way of waiting (a suspended coroutine, or a blocked goroutine).
//
// Whatever the place, Invoke runs the body: it checks the number of inputs,
// contains a panic, and checks the output against the Spec, so that a wrong
// task fails its request and nothing else. It also sees to it that each new batch is counted
// against the rows that the nodes of a request may make together: see RowBudget.
package task
