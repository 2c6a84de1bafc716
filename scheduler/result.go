package scheduler

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/rankd/rankd/internal/outcome"
	"github.com/rankd/rankd/internal/rowcache"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// Result is the outcome of a request. It belongs to the receiver.
type Result struct {
	Outputs    []rowset.RowSet  // one per output of the plan, in order; nil on error
	QueueDelay time.Duration    // how long the request waited for admission, perhaps in vain
	Err        error            // nil, or a *NodeError, or an error of no node
	Recording  *trace.Recording // valid until done returns; nil unless asked for, or if the request never began
	Cost       Cost
	remarks    *remarks // nil: none, as usual
}

// Cost is what a request has cost until its result was there, without the bodies that it has given up. It is zero with the
// blocking engines. A copy; any goroutine.
type Cost struct {
	Commands   uint64 // to Redis that it got replies to, those that it shared with other requests among them
	ReplyBytes uint64 // of these replies
	// Compute is how long its computing nodes ran, on the loop or on workers: their processor time, unless more threads want to run
	// than there are cores.
	Compute time.Duration
}

// remarks are what a Result says about its nodes. Immutable.
type remarks struct {
	deltas       []rowset.SchemaDelta
	rows         []NodeRows
	completeness []Completeness
	ids          []*rowset.IDTexts // see Result.IDTexts
	names        []string          // see Result.OutputNames
	short        []plan.Short      // see Result.Short
	instead      *Instead          // see Result.Instead
	services     map[string]string // see Result.Services

	failedFallback *Instead // see Result.FailedFallback
}

// said returns the remarks of r, none of them for a nil r.
func (r *Result) said() remarks {
	if r == nil || r.remarks == nil {
		return remarks{}
	}
	return *r.remarks
}

// Deltas says which columns each node that was due took in and gave out, in the plan's order. It is nil unless asked for, and
// on error.
func (r *Result) Deltas() []rowset.SchemaDelta { return r.said().deltas }

// IDTexts returns, for each output, the texts of the ids by the numbers that its rows have in their place: see
// plan.Node.Entity. The texts of an output are nil if its ids are integers. IDTexts is nil if all ids are.
func (r *Result) IDTexts() []*rowset.IDTexts { return r.said().ids }

// OutputNames returns the names of Outputs, in order; nil: they have none.
func (r *Result) OutputNames() []string { return r.said().names }

// Short returns the outputs with fewer rows than the plan wants, in order.
func (r *Result) Short() []plan.Short { return r.said().short }

// Services has the versions that services have said of themselves, by the id of the node that has asked; nil: none has.
func (r *Result) Services() map[string]string { return r.said().services }

// Instead says that another plan has run than the request asked for; nil: none has.
func (r *Result) Instead() *Instead { return r.said().instead }

// FailedFallback says that the plan has answered with too few rows because its fallback has failed; nil: it has not.
func (r *Result) FailedFallback() *Instead { return r.said().failedFallback }

// Rows returns the rows of each node, in the plan's order. It is nil unless asked for, and on error.
func (r *Result) Rows() []NodeRows { return r.said().rows }

// Completeness says what each settled lenient node contributed, and any other node with a shortfall, in the plan's
// order. It is nil if there are none.
func (r *Result) Completeness() []Completeness { return r.said().completeness }

// Degraded reports whether something is missing in the answer.
func (r *Result) Degraded() bool {
	return slices.ContainsFunc(r.Completeness(), func(c Completeness) bool { return c.Status != outcome.NodeOK })
}

// Completeness says what one node contributed to an answer. Immutable; any goroutine.
type Completeness struct {
	Node    *plan.Node
	Status  outcome.NodeStatus
	Dropped int   // rows left out because their keys failed
	Err     error // why the node, or the first key, failed; nil if Status is outcome.NodeOK
	// Malformed says which ids or values the node could not read; nil: none. It does not affect the status.
	Malformed *task.MalformedIDs
	Cached    rowcache.Use // which of what the node read was in memory
}

// Result returns the answer of a finished request: its outputs and remarks, or its first error.
func (s *State) Result() *Result {
	if node, err := s.Err(); err != nil {
		if node >= 0 {
			n := s.graph.Nodes[node]
			err = &NodeError{Node: n.ID, Op: n.Op, Err: err}
		}
		return &Result{Err: err, remarks: s.remarks()}
	}
	r := newResult(len(s.graph.Outputs))
	r.remarks = s.remarks()
	for i := range r.Outputs {
		r.Outputs[i] = s.Output(i)
		if s.graph.Returns != nil {
			r.Outputs[i].Batch = rowset.Project(r.Outputs[i].Batch, s.graph.Returns, false)
		}
	}
	return r
}

// newResult returns a result with that many outputs.
func newResult(outputs int) *Result {
	if outputs != 1 {
		return &Result{Outputs: make([]rowset.RowSet, outputs)}
	}
	// One allocation for the result and its only output.
	one := new(struct {
		Result
		output [1]rowset.RowSet
	})
	one.Outputs = one.output[:]
	return &one.Result
}

// remarks returns what there is to say about the nodes. For a failed request that is only its completeness.
func (s *State) remarks() *remarks {
	m := remarks{completeness: s.completeness(), names: s.graph.OutputNames, services: maps.Clone(s.services)}
	if s.notes != nil && s.err == nil {
		m.deltas, m.rows = s.dueDeltas(), s.notes.rows
	}
	if s.ids != nil {
		m.ids = s.idTexts(s.ids.Texts())
	}
	if m.deltas == nil && m.rows == nil && m.completeness == nil && m.ids == nil && m.names == nil && m.services == nil {
		return nil
	}
	return new(m)
}

// dueDeltas returns the deltas of the nodes that were due.
func (s *State) dueDeltas() []rowset.SchemaDelta {
	if s.notes.deltas == nil || s.due == len(s.nodes) {
		return s.notes.deltas
	}
	due := s.notes.deltas[:0]
	for i, delta := range s.notes.deltas {
		if s.nodes[i].status != onDemand {
			due = append(due, delta)
		}
	}
	return due
}

// idTexts returns, for each output, texts if its ids are texts, and nil otherwise.
func (s *State) idTexts(texts *rowset.IDTexts) []*rowset.IDTexts {
	all := make([]*rowset.IDTexts, len(s.graph.Outputs))
	for i, node := range s.graph.Outputs {
		if s.graph.Nodes[node].Entity.TextIDs() {
			all[i] = texts
		}
	}
	return all
}

// completeness returns the contributions of the lenient nodes that ran, and of other nodes with a shortfall, in the
// plan's order. It is nil if the plan has no lenient node and nothing is missing.
func (s *State) completeness() []Completeness {
	if !s.graph.Lenient && len(s.incomplete) == 0 {
		return nil
	}
	incomplete := s.incomplete
	slices.SortFunc(incomplete, func(a, b Completeness) int { return cmp.Compare(a.Node.Index, b.Node.Index) })
	all := make([]Completeness, 0, len(incomplete))
	for i, n := range s.graph.Nodes {
		switch {
		case len(incomplete) > 0 && incomplete[0].Node == n:
			all = append(all, incomplete[0])
			incomplete = incomplete[1:]
		case n.Lenient() && s.nodes[i].status == done:
			all = append(all, Completeness{Node: n, Status: outcome.NodeOK})
		default:
			continue
		}
		if len(s.cached) > 0 {
			all[len(all)-1].Cached = s.cached[i]
		}
	}
	return all
}
