// Package explain says why a row of an answer is where it is, and why an id is not in the answer.
//
// It reads the rows that each node of a run took in and gave out (scheduler.NodeRows). They are immutable, so a row
// can be followed back after the run; the run itself only keeps them.
//
//	a returned row                        an id that is missing
//	output ── From ─▶ … ─▶ source         every node that leads to an output:
//	each node on the way says what        has it the id in an input and not in its result?
//	it did to the row (Reason)            the last such node says why (Reason)
//
// The package does not know tasks by name. It knows the shapes of results (task.Output), and lets the Explain of a
// task's Spec run a node a second time, at most once for each node. From and Reason of the Account return what that
// run found. So only the row sets decide where an id went.
//
// Explanation is the data, with its JSON form. Text writes it for people.
//
// docs/glossary.md explains the words that this package shares with others.
package explain
