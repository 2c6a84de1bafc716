package scheduler

import (
	"time"

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

// isCheap reports whether a node, with all that follows it in its chain, may run inline and is
// predicted to take less time than the threshold.
func (r *run) isCheap(index int) bool {
	e, first := r.engine, &r.profile.nodes[index]
	rows, sum := r.State.Rows(index), time.Duration(0)
	for n := first; n.mayInline; index, n = int(n.next), &r.profile.nodes[n.next] {
		rows += n.makes
		took, known := n.predict(r.Req.Graph.Nodes[index], rows)
		if !known {
			return n == first && n.there == onLoop && n.cost.runs == 0 // its author has it run on the loop
		}
		if sum += took; sum >= e.placement.InlineThreshold {
			return false
		}
		if n.next < 0 || !r.policy.chains {
			return true
		}
	}
	return false
}
