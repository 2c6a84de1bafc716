package scheduler

import (
	"slices"

	"github.com/rankd/rankd/internal/rowcache"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
)

// NodeRows are the rows that one node took in and gave out in a run. Immutable once the run is over; any goroutine.
type NodeRows struct {
	Ran          bool // the node has a result
	StoodIn      bool // it is not the node's own: the node has failed, and Node.OnError says where the result is from
	Inputs, Refs []rowset.RowSet
	Out          rowset.RowSet
	Cached       rowcache.Use // which of the values that it read were in memory
}

// Served is what a run leaves for the log of served rows. Its owner makes it empty, and the engine fills it in before it calls
// done with a result without an error. One goroutine at a time.
type Served struct {
	Node    *plan.Node      // whose rows are kept; nil: of none
	Whole   bool            // the node makes all its rows, whatever the plan cuts behind it
	Rows    rowset.RowSet   // the result of Node, or its stand-in; zero: it has none
	Copied  bool            // Outputs have the values of Rows, too, and those of Rows are gone: they say only which columns it has
	Outputs []rowset.RowSet // those of the plan, with all columns
	Cached  []rowcache.Use  // by node, what it had from memory; empty: no node had anything
	Texts   *rowset.IDTexts // the ids that are texts; nil: none are

	memory rowset.Loans // of Rows and Outputs, unless Copied
}

// begin makes s ready for a run of a plan.
func (s *Served) begin(g *plan.Graph) {
	s.Release()
	if g.Log != nil {
		s.Node, s.Whole = g.Log.At, g.Log.Others > 0
	}
}

// Release forgets the rows, and gives their memory back to the engine.
func (s *Served) Release() {
	clear(s.Outputs)
	s.memory.TakeBack()
	*s = Served{Outputs: s.Outputs[:0], Cached: s.Cached[:0], memory: s.memory}
}

// serve fills in what the run of x leaves. Usually the request has none.
func (r *Run) serve() {
	x, s := r.Req.Served, &r.State
	if x.Node != nil {
		switch n := &s.nodes[x.Node.Index]; {
		case n.status == failed:
			x.Rows = s.notes.stoodIn
		case n.status == done:
			x.Rows = s.notes.served
		}
	}
	for i := range s.graph.Outputs {
		x.Outputs = append(x.Outputs, s.Output(i))
	}
	x.Cached = append(x.Cached, s.cached...)
	if s.ids != nil {
		x.Texts = s.ids.Texts()
	}
}

// copied notes whether a copy of the answer's outputs has all that a line needs, as it usually does, so that the memory of the run is free.
// The log would have it for long, and read little of it.
func (s *Served) copied(log *plan.Log, outputs []rowset.RowSet) bool {
	for i, out := range s.Outputs {
		if out.Batch != outputs[i].Batch || s.Whole {
			return false
		}
		if s.Rows.Batch == nil || out.N == 0 {
			continue
		}
		if !log.Through || len(s.Rows.Batch.IDs) != len(out.Batch.IDs) || &s.Rows.Batch.IDs[0] != &out.Batch.IDs[0] {
			return false
		}
		has := out.Batch.Columns() // in the same order
		for _, column := range s.Rows.Batch.Columns() {
			if at := slices.Index(has, column); at >= 0 {
				has = has[at+1:]
			} else if log.Has(column.KeyID()) {
				return false
			}
		}
	}
	s.Copied = true
	return true
}

// notes are what a request wants to know about each of its nodes. The goroutine that runs a node writes the entry of
// that node. An orphan may still do so when its request has ended; then nobody uses the notes again.
type notes struct {
	deltas []rowset.SchemaDelta // by node; nil unless the request asks for them
	rows   []NodeRows           // by node; nil unless the request asks for them
	node   *plan.Node           // whose result served is; nil: of none
	served rowset.RowSet
	// stoodIn is its stand-in. The goroutine of the State writes it.
	stoodIn rowset.RowSet
	failed  []CapturedNode // by node, of those that failed; nil unless the request is captured. The goroutine of the State writes it
}

// notesFor returns the notes for a request, made of n, or nil if it wants to know nothing, as usual.
func notesFor(n *notes, e *Execution) *notes {
	if !e.Deltas && !e.KeepRows && e.Served == nil && e.Capture == nil {
		return nil
	}
	*n = notes{}
	if e.Served != nil {
		n.node = e.Served.Node
	}
	if e.Deltas {
		n.deltas = make([]rowset.SchemaDelta, len(e.Graph.Nodes))
	}
	if e.Capture != nil {
		n.failed = make([]CapturedNode, len(e.Graph.Nodes))
	}
	if e.KeepRows || e.Capture != nil {
		n.rows = make([]NodeRows, len(e.Graph.Nodes))
	}
	return n
}

// take notes the outcome of a node, and which values it had from memory. It copies both lists of rows.
func (n *notes) take(node *plan.Node, inputs, refs []rowset.RowSet, out rowset.RowSet, cached rowcache.Use) {
	if node == n.node {
		n.served = out
	}
	n.takeRows(node, inputs, refs, out, cached)
}

func (n *notes) takeRows(node *plan.Node, inputs, refs []rowset.RowSet, out rowset.RowSet, cached rowcache.Use) {
	if n.deltas != nil {
		n.deltas[node.Index] = rowset.NewSchemaDelta(node.ID, inputs, refs, out)
	}
	if n.rows != nil {
		n.rows[node.Index] = NodeRows{Ran: true, Inputs: append([]rowset.RowSet(nil), inputs...), Refs: append([]rowset.RowSet(nil), refs...), Out: out, Cached: cached}
	}
}

// standIn notes the result of a node that is not its own.
func (n *notes) standIn(node *plan.Node, inputs, refs []rowset.RowSet, out rowset.RowSet) {
	n.takeRows(node, inputs, refs, out, rowcache.Use{})
	if n.rows != nil {
		n.rows[node.Index].StoodIn = true
	}
	if n.failed != nil {
		n.failed[node.Index].NodeRows = n.rows[node.Index]
	}
}
