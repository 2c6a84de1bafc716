// Package drift watches what requests compute with: of some requests it counts, for each column that a node of the plan
// reads, how many values are null, are defaults or come from old memory, and how scores are distributed.
//
// The loop only asks whether a request is due, which costs a look into a map. Counting is for a goroutine of its own, at
// most a request a second for each plan and side of an alias, and at most RowsMax rows of a column. So its cost does
// not depend on the load.
//
// docs/glossary.md explains the words that this package shares with others.
package drift
