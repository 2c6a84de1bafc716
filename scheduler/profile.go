package scheduler

import (
	"time"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/task"
)

// This file has what an engine learns about each plan, and how long it remembers.

// profile is what an engine has learned about one plan. Loop only.
type profile struct {
	tally
	nodes    []nodeProfile // as the plan's nodes
	graph    *plan.Graph   // whose profile it is
	live     int           // requests in flight, and orphans
	retired  bool          // it is forgotten once live is 0
	requests uint64        // begun
	forgets  bool          // all tasks have Spec.Forgets
}

// nodeProfile is what the plan and its tasks say of one node, and what the node has cost so far.
type nodeProfile struct {
	spec      *task.Spec
	there     where // if it does not run inline
	mayInline bool  // the author and the plan permit it
	expensive bool  // Spec.Expensive or Spec.ExpensiveNode
	makes     int   // rows besides those of its inputs: Spec.Cost
	limit     int   // task.Ctx.Limit
	reads     bool  // it only reads, and begins inline if all that it reads is likely in memory
	recall    uint8 // how likely that is: see recalled
	// The chain from this node on: see findChains.
	next       int32         // the node that follows; -1 if none does
	length     int32         // nodes, this one among them
	timeoutMin time.Duration // the least timeout that the plan sets for a later one; zero: none

	cost costModel
	ran  OpStats
	path time.Duration // from its start to the end of the plan: see path.go
}

// A node that reads begins inline from recallLikely on. recallMost is the most: after two runs that had to wait it begins in a coroutine, as in a branch
// predictor of two bits.
const (
	recallLikely = 2
	recallMost   = 3
)

// recalled learns whether a run of a node that reads had all in memory.
func (n *nodeProfile) recalled(all bool) {
	switch {
	case all && n.recall < recallMost:
		n.recall++
	case !all && n.recall > 0:
		n.recall--
	}
}

// countRun counts a run of a node whose task.Ctx.Limit was limit.
func (p *profile) countRun(n *nodeProfile, took time.Duration, limit int) {
	n.ran.count(1, took)
	if limit > 0 {
		p.counts.TopK++
	}
}

// profilesMax is how many plans an engine remembers. A program that keeps loading plans must not keep them all.
const profilesMax = 1024

// profileOf returns the profile of a plan, a new one at its first use.
func (e *Async) profileOf(g *plan.Graph) *profile {
	p := e.profiles[g]
	if p == nil {
		if len(e.profiles) >= profilesMax {
			e.forgetProfiles()
		}
		p = newProfile(g)
		e.profiles[g] = p
	}
	return p
}

// forgetProfiles forgets the plans that no request in flight and no orphan uses. The engine's counts stay.
func (e *Async) forgetProfiles() {
	for _, p := range e.profiles {
		if p.live == 0 {
			e.forget(p)
		}
	}
}

// forget forgets a plan, and keeps its counts.
func (e *Async) forget(p *profile) {
	name := p.graph.Name
	if e.forgotten[name] == nil {
		if len(e.forgotten) >= profilesMax {
			name = ""
		}
		if e.forgotten[name] == nil {
			e.forgotten[name] = new(tally)
		}
	}
	e.forgotten[name].add(&p.tally)
	p.addOps(e.forgottenOps)
	delete(e.profiles, p.graph)
}

// endLive counts the end of a request or of an orphan.
func (e *Async) endLive(p *profile) {
	if p.live--; p.retired && p.live == 0 {
		e.forget(p)
		e.disconnect()
	}
}

func newProfile(g *plan.Graph) *profile {
	p := &profile{graph: g, nodes: make([]nodeProfile, len(g.Nodes)), forgets: true}
	for i, node := range g.Nodes {
		spec := tasks.SpecOf(node)
		n := &p.nodes[i]
		n.spec = spec
		p.forgets = p.forgets && spec.Forgets
		permitted := node.Inline == nil || *node.Inline
		n.expensive = spec.Expensive || spec.ExpensiveNode != nil && spec.ExpensiveNode(node)
		n.reads = spec.Make != nil
		n.mayInline = permitted && (spec.Inline || spec.Cheap || n.reads) && !n.expensive
		n.limit = tasks.Limit(g, node)
		if spec.Cost != nil {
			n.makes = int(min(spec.Cost(node), task.MaxRowsLimit))
		}
		n.there = place(spec, n.makes)
	}
	p.findChains(g)
	return p
}

// firstRowsMax bounds the rows of a node that runs inline before it was measured, without a hint in its plan.
const firstRowsMax = 256

// predict returns how long a node will take for inputs of so many rows. False means that there is no prediction.
func (n *nodeProfile) predict(node *plan.Node, rows int) (time.Duration, bool) {
	rows += n.makes
	switch {
	case n.cost.knows(rows):
		return n.cost.predict(rows), true
	case n.cost.runs > 0:
		return 0, false
	case node.CostHint > 0:
		return node.CostHint, true
	default:
		return 0, n.spec.Cheap && rows <= firstRowsMax
	}
}

// learn records how long the node ran for inputs of so many rows. A failure counts only if it took longer than
// expected, because most failures end early.
func (n *nodeProfile) learn(rows int, took time.Duration, err error) {
	rows += n.makes
	if err == nil || took > n.cost.predict(rows) {
		n.cost.learn(rows, took)
	}
}

// costModel predicts how long a node of a plan computes, from what it took before:
//
//	time = fixed + perRow × rows
//
// The rows are the active ones of its inputs, and those that it makes besides. Each measurement moves the prediction
// for its number of rows half-way to the measured time. So the model notices after one run that a node has become
// expensive, and after some ten that it has become cheap. The number of rows decides which part learns: up to some
// dozens the fixed part, beyond that the part per row. The zero value has measured nothing. Loop only.
type costModel struct {
	fixed   float64 // ns
	perRow  float64 // ns
	runs    uint32  // measured
	rowsMax int32   // the largest input measured
}

// costRate is how far one measurement moves the prediction.
const costRate = 0.5

// costRows is the size of an input from which on the part per row learns more than the fixed part.
const costRows = 64

// learn takes a measurement in: a run over so many rows took that long.
func (m *costModel) learn(rows int, took time.Duration) {
	rate := costRate
	if m.runs == 0 {
		rate = 1 // nothing to keep of no measurement
	}
	m.runs++
	m.rowsMax = max(m.rowsMax, int32(rows))
	x := float64(rows) / costRows
	off := rate * (float64(took) - m.ns(rows)) / (1 + x*x)
	m.fixed = max(0, m.fixed+off)
	m.perRow = max(0, m.perRow+off*x/costRows)
}

// predict returns how long a run over so many rows will take. Before the first measurement it
// is zero.
func (m *costModel) predict(rows int) time.Duration { return time.Duration(m.ns(rows)) }

func (m *costModel) ns(rows int) float64 { return m.fixed + m.perRow*float64(rows) }

// costReach is how many times larger than all before it an input may be for its prediction to be
// believed.
const costReach = 8

// knows reports whether the prediction for so many rows rests on measurements of inputs of about
// that size.
func (m *costModel) knows(rows int) bool {
	return m.runs > 0 && rows <= costReach*max(int(m.rowsMax), costRows)
}
