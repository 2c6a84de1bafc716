package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
)

// CheckColumns refuses a plan with a node that reads a column which no node before it writes. Load
// calls it for plans with a strict op or typed expressions. The error is an *Error, with the faults of other nodes; file names the
// artifact in it.
func (g *Graph) CheckColumns(file string) error {
	if bad := joined(g.columnFaults(file, true)); bad != nil {
		return bad
	}
	return nil
}

// columnSet holds the keys of the columns that the rows of a node have. The value is a node whose failure makes the
// column disappear, because its stand-in does not have the column; nil if the column is always there. Immutable once
// built.
type columnSet map[registry.KeyID]*Node

// columnFaults returns a fault for each node that reads a column which is missing if some node fails. If strict, it
// also returns one for each node that reads a column which no earlier node writes. The graph has no cycle.
func (g *Graph) columnFaults(file string, strict bool) (all []*Error) {
	_, faults := g.columns(strict)
	for _, bad := range faults {
		if bad != nil {
			bad.File = file
			all = append(all, bad)
		}
	}
	return all
}

// Writes reports whether the rows of an output may have the column of a key in the answer: some earlier node writes
// it, and Returns has it.
func (g *Graph) Writes(output int, key registry.KeyID) bool {
	if g.Returns != nil && !slices.ContainsFunc(g.Returns, func(k *registry.Key) bool { return k.ID == key }) {
		return false
	}
	columns, _ := g.columns(false)
	_, ok := columns[g.Outputs[output]][key]
	return ok
}

// columns returns the columns of each node, and its fault as in columnFaults, or nil.
func (g *Graph) columns(strict bool) (columns []columnSet, faults []*Error) {
	columns, faults = make([]columnSet, len(g.Nodes)), make([]*Error, len(g.Nodes))
	for _, index := range g.Order {
		n := g.Nodes[index]
		inputs, refs := gather(columns, n.Inputs), gather(columns, n.Refs)
		if faults[index] = g.missing(n, n.Schema.Reads, inputs, strict); faults[index] == nil {
			faults[index] = g.missing(n, n.Schema.RefReads, refs, strict)
		}
		columns[index] = n.result(inputs, refs, g.Registry)
		if n.OnError == OnErrorSkip {
			columns[index] = columns[index].orElse(n, inputs[0])
		}
		for failed := n.StandsFor; failed != nil; failed = failed.StandsFor {
			columns[failed.Index] = columns[failed.Index].orElse(failed, columns[index])
		}
	}
	return columns, faults
}

// orElse returns the columns of a node whose stand-in may have other columns.
func (s columnSet) orElse(n *Node, other columnSet) columnSet {
	all := make(columnSet, len(s))
	for key, lacking := range s {
		if without, ok := other[key]; lacking == nil && ok {
			lacking = without
		} else if lacking == nil {
			lacking = n
		}
		all[key] = lacking
	}
	return all
}

// gather returns the sets of these nodes.
func gather(columns []columnSet, nodes []int) []columnSet {
	sets := make([]columnSet, len(nodes))
	for i, node := range nodes {
		sets[i] = columns[node]
	}
	return sets
}

// missing returns the fault of a node that reads a column which may be missing, or, if strict, a column that no set
// has.
func (g *Graph) missing(n *Node, reads ColumnsOf, sets []columnSet, strict bool) *Error {
	if reads == nil {
		return nil
	}
	for _, key := range reads(n, g.Registry) {
		found, lacking := lookUp(sets, key)
		if key == registry.IDKey || found && lacking == nil || !found && !strict {
			continue
		}
		why := "which no node before it writes"
		if found {
			why = fmt.Sprintf("which is missing if node %s fails", lacking.label())
		}
		return &Error{
			Node: n.ID, Field: n.whereRead(key), SourceSpan: n.SourceSpan,
			Msg: fmt.Sprintf("reads column %s, %s", g.label(key), why),
		}
	}
	return nil
}

// lookUp reports whether some set has a column. It also returns the node whose failure makes the column disappear
// from all sets, or nil.
func lookUp(sets []columnSet, key registry.KeyID) (found bool, lacking *Node) {
	for _, s := range sets {
		without, ok := s[key]
		if ok && without == nil {
			return true, nil
		}
		if ok {
			found, lacking = true, without
		}
	}
	return found, lacking
}

// label names a node, with its place in the source.
func (n *Node) label() string {
	if n.SourceSpan == "" {
		return errtext.Quote(n.ID)
	}
	return errtext.Quote(n.ID) + " at " + errtext.Cut(n.SourceSpan)
}

// label names a column.
func (g *Graph) label(id registry.KeyID) string {
	if key, ok := g.Registry.Key(id); ok {
		return fmt.Sprintf("%s (%d)", errtext.Quote(key.Name), id)
	}
	return fmt.Sprint(id)
}

// whereRead returns the path of the parameter through which a node reads a column, or of the node.
func (n *Node) whereRead(key registry.KeyID) string {
	node, found := element("nodes", n.Index), ""
	n.Params.each(member(node, "params"), func(v *paramValue, path string) {
		reads := v.schema.IsKey && v.i == int64(key)
		switch object := v.object.(type) {
		case *registry.Key:
			reads = object.ID == key
		case *KeyTemplate:
			reads = slices.Contains(object.Columns(), key)
		case *expr.Expr:
			reads = slices.Contains(object.Keys(), key)
		case *expr.Pred:
			reads = slices.Contains(object.Keys(), key)
		}
		if reads && !v.schema.Source.Writes && found == "" {
			found = path
		}
	})
	return cmp.Or(found, node)
}

// result returns the columns of the rows that a node makes from rows with these columns.
func (n *Node) result(inputs, refs []columnSet, reg *registry.Registry) columnSet {
	var from []columnSet
	switch n.Schema.Inherits {
	case InheritsInputs:
		from = inputs
	case InheritsAll:
		from = append(append(from, inputs...), refs...)
	}
	var writes []registry.KeyID
	if n.Schema.Writes != nil {
		writes = n.Schema.Writes(n, reg)
	}
	if len(from) == 1 && len(writes) == 0 {
		return from[0]
	}
	all := make(columnSet)
	for _, set := range from {
		for key := range set {
			_, all[key] = lookUp(from, key)
		}
	}
	for _, key := range writes {
		all[key] = nil
	}
	return all
}
