package scheduler

import (
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

// notes are what a request wants to know about each of its nodes. The goroutine that runs a node writes the entry of
// that node.
type notes struct {
	deltas []rowset.SchemaDelta // by node; nil unless the request asks for them
	rows   []NodeRows           // by node; nil unless the request asks for them
}

// notesFor returns empty notes for a request, or nil if it wants to know nothing, as usual.
func notesFor(e *Execution) *notes {
	if !e.Deltas && !e.KeepRows {
		return nil
	}
	n := new(notes)
	if e.Deltas {
		n.deltas = make([]rowset.SchemaDelta, len(e.Graph.Nodes))
	}
	if e.KeepRows {
		n.rows = make([]NodeRows, len(e.Graph.Nodes))
	}
	return n
}

// take notes the outcome of a node, and which values it had from memory. It copies both lists of rows.
func (n *notes) take(node *plan.Node, inputs, refs []rowset.RowSet, out rowset.RowSet, cached rowcache.Use) {
	if n.deltas != nil {
		n.deltas[node.Index] = rowset.NewSchemaDelta(node.ID, inputs, refs, out)
	}
	if n.rows != nil {
		n.rows[node.Index] = NodeRows{Ran: true, Inputs: append([]rowset.RowSet(nil), inputs...), Refs: append([]rowset.RowSet(nil), refs...), Out: out, Cached: cached}
	}
}

// standIn notes the result of a node that is not its own.
func (n *notes) standIn(node *plan.Node, inputs, refs []rowset.RowSet, out rowset.RowSet) {
	n.take(node, inputs, refs, out, rowcache.Use{})
	if n.rows != nil {
		n.rows[node.Index].StoodIn = true
	}
}
