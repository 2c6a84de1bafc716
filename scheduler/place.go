package scheduler

import (
	"cmp"
	"time"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/task"
)

// This file answers one question: where does a node run? Its task, its plan, the policy of the request, and what it has cost before
// (profile.go) decide.

// A policy is what a mode means for a run, under the engine's settings. Modes differ here, and nowhere else. Immutable;
// any goroutine.
type policy struct {
	mode   plan.Mode
	inline bool // nodes may run inline
	always bool // those run inline that may, whatever they cost
	chains bool // a node goes straight on to its single successor, on the loop or as part of one job
	// strict: a body that ends after its deadline has failed, though the timer has not fired yet. Otherwise the timer
	// decides, as in the original engine.
	strict bool
	// skips: a job that finds its request failed does not run. Otherwise it does, as in the original engine.
	skips bool
	// byDeadline: jobs start in the order of path.go. Otherwise first come, first served, as in the original engine.
	byDeadline bool
}

// policy returns what a mode means.
func (p *Placement) policy(m plan.Mode) policy {
	today := m != plan.OffloadAll
	return policy{
		mode: m, inline: today && !p.NoInlineExecution, always: m == plan.InlineAll, chains: today && !p.NoContinuationChaining,
		strict: today, skips: today, byDeadline: today,
	}
}

// The defaults of Placement.
const (
	DefaultInlineThreshold = 10 * time.Microsecond // about the price of the way to the pool and back
	DefaultMaxInlineDepth  = 3
	DefaultInlineBudget    = 200 * time.Microsecond
)

// Placement says where computing nodes run. The zero value means the defaults. The blocking engines take from it only whether a
// sort that a take follows selects the first rows: not in the mode OffloadAll. Immutable once an engine has it; any goroutine.
type Placement struct {
	// Mode holds for requests without a mode of their own. Empty means Adaptive.
	Mode plan.Mode
	// NoInlineExecution keeps computing nodes off the loop, in every mode. The flag
	// --enable_inline_execution is the opposite.
	NoInlineExecution bool
	// NoContinuationChaining sends each node through the ready queue. Otherwise a node goes
	// straight on to its single successor, on the loop or as part of one job. The flag
	// --enable_continuation_chaining is the opposite.
	NoContinuationChaining bool
	// InlineThreshold is the predicted time from which on a node does not run inline. Zero
	// means DefaultInlineThreshold, 10 µs.
	InlineThreshold time.Duration
	// MaxInlineDepth is how many successors follow an inline node directly. The next one
	// passes through the ready queue. Zero means DefaultMaxInlineDepth, 3.
	MaxInlineDepth int
	// InlineBudget is how long nodes run inline within one iteration of the loop. Those left
	// wait for the next iteration. Zero means DefaultInlineBudget, 200 µs.
	InlineBudget time.Duration
}

func (p Placement) withDefaults() Placement {
	p.Mode = cmp.Or(p.Mode, plan.Adaptive)
	if p.InlineThreshold <= 0 {
		p.InlineThreshold = DefaultInlineThreshold
	}
	if p.MaxInlineDepth <= 0 {
		p.MaxInlineDepth = DefaultMaxInlineDepth
	}
	if p.InlineBudget <= 0 {
		p.InlineBudget = DefaultInlineBudget
	}
	return p
}

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
func place(spec *task.Spec, makes int) where {
	if spec.Place == task.Computes || makes > loopRowsMax {
		return onPool
	}
	return onLoop
}

// place decides where a node runs that is handed out and has not gathered its inputs.
func (r *run) place(index int) where {
	n := &r.profile.nodes[index]
	switch {
	case !r.policy.inline || !n.mayInline || n.reads && n.recall < recallLikely:
		return n.there
	case n.reads:
		return inline
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
	took, known := n.predict(r.Req.Graph.Nodes[index], r.State.Rows(index))
	if !known {
		return n.there == onLoop && n.cost.runs == 0 // its author has it run on the loop
	}
	return took < r.engine.placement.InlineThreshold
}

// findChains notes in each node of p which node follows it in its chain.
//
// A chain is a run of computing nodes of which each is the only reader of the one before. Offloaded
// from some node on, it is one job: one way to the pool and back for all its nodes. A chain is
// split where a node is an output or counted for one, waits, is lenient, has a share of the time as its timeout, is Expensive, or may not run inline by the plan.
func (p *profile) findChains(g *plan.Graph) {
	followed := make([]bool, len(g.Nodes)) // nodes that follow one
	for i, node := range g.Nodes {
		n := &p.nodes[i]
		n.next, n.length = -1, 1
		if len(node.Succs) != 1 || node.IsOutput || node.Counted {
			continue
		}
		if next := node.Succs[0]; g.Nodes[next].Deps == 1 && p.fuses(g, i) && p.fuses(g, next) {
			n.next, followed[next] = int32(next), true
		}
	}
	var chain []int
	for i := range g.Nodes {
		if followed[i] {
			continue
		}
		chain = chain[:0]
		for at := int32(i); at >= 0; at = p.nodes[at].next {
			chain = append(chain, int(at))
		}
		for k := len(chain) - 2; k >= 0; k-- {
			n, next := &p.nodes[chain[k]], &p.nodes[chain[k+1]]
			n.length = next.length + 1
			n.timeoutMin = earlierTimeout(next.timeoutMin, g.Nodes[chain[k+1]].Timeout)
		}
	}
}

// fuses reports whether a node may be part of a chain.
func (p *profile) fuses(g *plan.Graph, node int) bool {
	n, hint := &p.nodes[node], g.Nodes[node].Inline
	return n.there == onPool && !n.expensive && !g.Nodes[node].Lenient() && g.Nodes[node].Share == 0 && (hint == nil || *hint)
}

// earlierTimeout returns the lesser of two timeouts, of which zero means none.
func earlierTimeout(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
