package scheduler

import (
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/task"
)

// where says on what a node runs.
type where uint8

const (
	onLoop where = iota
	onPool
)

// loopRowsMax is how many rows a node may make on the loop without awaiting anything. So many
// ids take some 10 µs, which is the cost of the way to the pool and back. Fewer are made sooner
// than handed over, and more would hold up the loop for longer. See BenchmarkSourcePlace.
const loopRowsMax = 2048

// place alone decides where a node runs. The author of the task decides by Spec.Place. A node
// that makes too many rows for the loop runs on the pool.
func place(spec *task.Spec, node *plan.Node) where {
	if spec.Place == task.Computes || spec.Cost != nil && spec.Cost(node) > loopRowsMax {
		return onPool
	}
	return onLoop
}

// newBody returns a body that runs there.
func (e *Async) newBody(there where) body {
	if there == onPool {
		return e.newPoolBody()
	}
	return e.newLoopBody()
}
