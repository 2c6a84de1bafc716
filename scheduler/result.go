package scheduler

import (
	"slices"
	"time"

	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/trace"
)

// Result is the outcome of a request. It belongs to the receiver.
type Result struct {
	Outputs    []rowset.RowSet  // one per output of the plan, in order; nil on error
	QueueDelay time.Duration    // how long the request waited for admission, perhaps in vain
	Err        error            // nil, or a *NodeError, or an error of no node
	Recording  *trace.Recording // valid until done returns; nil unless asked for, or if the request never began
	remarks    *remarks         // nil: none, as usual
}

// remarks are what a Result says about its nodes. Immutable.
type remarks struct {
	deltas       []rowset.SchemaDelta
	rows         []NodeRows
	completeness []Completeness
	ids          [][]string // see Result.IDTexts
	names        []string   // see Result.OutputNames
}

// Deltas says which columns each node that was due took in and gave out, in the plan's order. It is nil unless asked for, and
// on error.
func (r *Result) Deltas() []rowset.SchemaDelta {
	if r.remarks == nil {
		return nil
	}
	return r.remarks.deltas
}

// IDTexts returns, for each output, the texts of the ids by the numbers that its rows have in their place: see
// plan.Node.Entity. The texts of an output are nil if its ids are integers. IDTexts is nil if all ids are.
func (r *Result) IDTexts() [][]string {
	if r == nil || r.remarks == nil {
		return nil
	}
	return r.remarks.ids
}

// OutputNames returns the names of Outputs, in order; nil: they have none.
func (r *Result) OutputNames() []string {
	if r == nil || r.remarks == nil {
		return nil
	}
	return r.remarks.names
}

// Rows returns the rows of each node, in the plan's order. It is nil unless asked for, and on error.
func (r *Result) Rows() []NodeRows {
	if r.remarks == nil {
		return nil
	}
	return r.remarks.rows
}

// Completeness says what each settled lenient node contributed, and any other node with a shortfall, in the plan's
// order. It is nil if there are none.
func (r *Result) Completeness() []Completeness {
	if r.remarks == nil {
		return nil
	}
	return r.remarks.completeness
}

// Degraded reports whether something is missing in the answer.
func (r *Result) Degraded() bool {
	return slices.ContainsFunc(r.Completeness(), func(c Completeness) bool { return c.Status != NodeOK })
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
	if s.notes == nil && !s.graph.Lenient && len(s.incomplete) == 0 && s.ids == nil && s.graph.OutputNames == nil {
		return nil
	}
	var deltas []rowset.SchemaDelta
	var rows []NodeRows
	if s.notes != nil && s.err == nil {
		deltas, rows = s.dueDeltas(), s.notes.rows
	}
	completeness := s.completeness()
	if deltas == nil && rows == nil && completeness == nil && s.ids == nil && s.graph.OutputNames == nil {
		return nil
	}
	m := &remarks{deltas: deltas, rows: rows, completeness: completeness, names: s.graph.OutputNames}
	if s.ids != nil {
		m.ids = s.idTexts(s.ids.Texts())
	}
	return m
}

// idTexts returns, for each output, texts if its ids are texts, and nil otherwise.
func (s *State) idTexts(texts []string) [][]string {
	all := make([][]string, len(s.graph.Outputs))
	for i, node := range s.graph.Outputs {
		if s.graph.Nodes[node].Entity.TextIDs() {
			all[i] = texts
		}
	}
	return all
}
