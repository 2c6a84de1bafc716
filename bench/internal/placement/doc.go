// Package placement, which is not covered by the compatibility promise, has the loads by which the scheduling
// modes of the reactor are compared. A [Scenario] is one or more plans that need no Redis and a load on them.
// A [Variant] is a setting of the scheduling. [Simulate] runs them on virtual cores in virtual time.
package placement
