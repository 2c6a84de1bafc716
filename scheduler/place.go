package scheduler

import (
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/task"
)

// where says on what a node runs.
type where uint8

const (
	onLoop where = iota // as a coroutine, which may wait
	onPool
	inline // on the loop, and it does not wait
)

// loopRowsMax is how many rows a node may make on the loop without awaiting anything. So many
// ids take some 10 µs, which is the cost of the way to the pool and back. Fewer are made sooner
// than handed over, and more would hold up the loop for longer. See BenchmarkSourcePlace.
const loopRowsMax = 2048

// place decides where a node runs by its task alone, as the mode OffloadAll does. The author of
// the task decides by Spec.Place. A node that makes too many rows for the loop runs on the pool.
func place(spec *task.Spec, node *plan.Node) where {
	if spec.Place == task.Computes || spec.Cost != nil && spec.Cost(node) > loopRowsMax {
		return onPool
	}
	return onLoop
}

// place decides where a node runs that is handed out and has not gathered its inputs.
func (r *run) place(index int) where {
	n := &r.profile.nodes[index]
	switch {
	case !r.policy.inline || !n.mayInline:
		return n.there
	case r.policy.always || r.isCheap(index):
		return inline
	default:
		return onPool
	}
}

// isCheap reports whether a node is predicted to take less time than the threshold. What follows it in its chain does not
// count: nodes of some microseconds each that leave the loop together pay for the way there and back, and those behind
// them would have paid no more. Five nodes on 1,000 rows take 16 µs of processor time one by one, and 31 µs as a job
// (bench placement, top_1000).
func (r *run) isCheap(index int) bool {
	n := &r.profile.nodes[index]
	took, known := n.predict(r.Req.Graph.Nodes[index], r.State.Rows(index)+n.makes)
	if !known {
		return n.there == onLoop && n.cost.runs == 0 // its author has it run on the loop
	}
	return took < r.engine.placement.InlineThreshold
}
