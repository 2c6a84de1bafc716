package outcome

// NodeStatus says how much of its result a node contributed to an answer.
type NodeStatus string

// The statuses of a node in an answer.
const (
	NodeOK       NodeStatus = "ok"       // all of it
	NodePartial  NodeStatus = "partial"  // all but rows whose keys failed
	NodeFallback NodeStatus = "fallback" // it failed, and another node's result replaced its own
	NodeLate     NodeStatus = "late"     // the plan did not wait for it
	NodeFailed   NodeStatus = "failed"   // it failed, or a dispensable part of it did
)
