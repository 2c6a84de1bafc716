package plan

import (
	"fmt"
	"math"
	"slices"

	"github.com/rankd/rankd/registry"
)

// Unbounded stands for a number of rows without a known limit.
const Unbounded = math.MaxInt64

// LateLookup says that a lookup reads columns too early: a later node keeps only some of the rows, and no node before
// it reads the columns. A lookup is a node of an op with AsksOf. Immutable; any goroutine.
type LateLookup struct {
	Node    *Node           // the lookup
	After   *Node           // the node behind which it could be: among the possible ones, the one with the fewest rows
	Columns []*registry.Key // that could be read there, in the order of Schema.Writes
	Rows    int64           // for which the lookup reads, at most; Unbounded: there is no known limit
	Kept    int64           // of After, at most
	Fewer   int64           // commands that a request saves, at most; negative: it costs that many more; Unbounded: there is no known limit
	Drops   bool            // the lookup may drop rows, which would then happen behind After
}

// LateLookups returns the lookups that could read some columns later, in the plan's order. It relies on what the
// schemas say of reads, writes and rows.
func (g *Graph) LateLookups() (all []LateLookup) {
	rows := g.rowsMax(nil)
	for _, n := range g.Nodes {
		if n.Schema.AsksOf == nil || n.Schema.Writes == nil || len(n.Inputs) != 1 || n.readsOneKey() {
			continue
		}
		best := LateLookup{Node: n, Rows: rows[n.Inputs[0]], Drops: !n.keepsRows()}
		for _, index := range g.Order { // In this order the earliest of those with the fewest rows is the best.
			if rows[index] >= best.Rows || best.After != nil && rows[index] >= best.Kept {
				continue
			}
			if columns := g.unreadBefore(n, g.Nodes[index]); len(columns) > 0 {
				best.After, best.Columns, best.Kept = g.Nodes[index], columns, rows[index]
			}
		}
		if best.After != nil {
			switch {
			case len(best.Columns) < len(n.Schema.Writes(n, g.Registry)), g.sharesCommands(n):
				best.Fewer = -best.Kept
			case best.Rows == Unbounded:
				best.Fewer = Unbounded
			default:
				best.Fewer = best.Rows - best.Kept
			}
			all = append(all, best)
		}
	}
	return all
}

// readsOneKey reports whether a node reads the same key for all rows, so that fewer rows cost no less.
func (n *Node) readsOneKey() bool {
	reads, perRow := false, false
	n.Params.each("", func(v *paramValue, _ string) {
		if t, ok := v.object.(*KeyTemplate); ok {
			reads, perRow = true, perRow || t.PerRow()
		}
	})
	return reads && !perRow
}

// sharesCommands reports whether one command for each row reads for a node and for others.
func (g *Graph) sharesCommands(n *Node) bool {
	return slices.ContainsFunc(g.Nodes, func(head *Node) bool {
		group := append([]*Node{head}, head.Ahead...)
		return slices.Contains(group, n) && slices.ContainsFunc(group, func(other *Node) bool { return other != n && other.shares(n) == together })
	})
}

// rowsMax returns the most rows that each node makes, or Unbounded if unknown, if the nodes that read from this endpoint
// fail; nil: none does.
func (g *Graph) rowsMax(down *registry.Endpoint) []int64 {
	rows := make([]int64, len(g.Nodes))
	for _, index := range g.Order {
		n := g.Nodes[index]
		in := int64(0)
		for _, i := range n.Inputs {
			in = AddRows(in, rows[i])
		}
		if n.Schema.Inherits == InheritsAll {
			for _, i := range n.Refs {
				in = AddRows(in, rows[i])
			}
		}
		if rows[index] = in; n.Schema.RowsMax != nil {
			rows[index] = n.Schema.RowsMax(n, in)
		}
		if n.asks(down) {
			if rows[index] = 0; len(n.Inputs) > 0 && (n.OnError == OnErrorSkip || n.OnError == OnErrorNull || n.failsOpen()) {
				rows[index] = rows[n.Inputs[0]]
			}
		}
		for failed := n.StandsFor; failed != nil; failed = failed.StandsFor {
			rows[failed.Index] = max(rows[failed.Index], rows[index])
		}
	}
	return rows
}

// takesMost refuses nodes to which more rows may come than they take.
func (c *compiler) takesMost() {
	var rows []int64
	for i, n := range c.graph.Nodes {
		if n.Schema.TakesMost == nil {
			continue
		}
		most, why := n.Schema.TakesMost(n)
		if most == 0 {
			continue
		}
		if rows == nil {
			rows = c.graph.rowsMax(nil)
		}
		in, many := int64(0), "any number of"
		for _, input := range n.Inputs {
			in = AddRows(in, rows[input])
		}
		if in < Unbounded {
			many = fmt.Sprint(in)
		}
		if in > most {
			c.report(c.refuse(n.ID, member(element("nodes", i), "inputs"), fault{FaultRange, fmt.Sprintf(
				"may have %s rows, and at most %d are taken: %s. A take before the node is the way out", many, most, why)}))
		}
	}
}

// AddRows returns a+b, or Unbounded if that is too much. Neither is negative.
func AddRows(a, b int64) int64 {
	if a > Unbounded-b {
		return Unbounded
	}
	return a + b
}

// MulRows returns a*b, or Unbounded if that is too much. Neither is negative.
func MulRows(a, b int64) int64 {
	if b > 0 && a > Unbounded/b {
		return Unbounded
	}
	return a * b
}

// unreadBefore returns the columns of a lookup that no node needs before the result of a later node. All rows of the
// lookup go through that node, and all rows of that node come from the lookup.
func (g *Graph) unreadBefore(lookup, later *Node) (keys []*registry.Key) {
	between := map[int]bool{lookup.Index: true}
	for _, index := range g.Order {
		n := g.Nodes[index]
		if !slices.ContainsFunc(slices.Concat(n.Inputs, n.Refs), func(i int) bool { return between[i] }) {
			continue
		}
		rowsOf := n.Inputs
		if n.Schema.Inherits == InheritsAll {
			rowsOf = slices.Concat(n.Inputs, n.Refs)
		}
		passes := n.Schema.Inherits != InheritsNothing && !n.Lenient() && n.StandsFor == nil &&
			!slices.ContainsFunc(rowsOf, func(i int) bool { return !between[i] })
		if n == later {
			return g.unread(lookup, between, later, passes)
		}
		if !passes || n.IsOutput {
			return nil
		}
		between[index] = true
	}
	return nil
}

// unread returns the columns of a lookup that neither a later node, nor a node between them, reads or replaces. There
// are none if the later node is not the only way on, or if the lookup would read other values behind it.
func (g *Graph) unread(lookup *Node, between map[int]bool, later *Node, passes bool) (keys []*registry.Key) {
	if !passes || lookup.IsOutput {
		return nil
	}
	touched := make(map[registry.KeyID]bool)
	var reads []registry.KeyID
	if lookup.Schema.Reads != nil {
		reads = lookup.Schema.Reads(lookup, g.Registry)
	}
	between[later.Index] = true
	for index := range between {
		n := g.Nodes[index]
		if n != lookup && n.writesAny(reads, g.Registry) {
			return nil
		}
		for _, columns := range [...]ColumnsOf{n.Schema.Reads, n.Schema.RefReads, n.Schema.Writes} {
			if columns != nil && n != lookup {
				for _, key := range columns(n, g.Registry) {
					touched[key] = true
				}
			}
		}
		for _, next := range n.Succs {
			if n != later && !between[next] {
				return nil // another way on
			}
		}
	}
	for _, id := range lookup.Schema.Writes(lookup, g.Registry) {
		if key, ok := g.Registry.Key(id); ok && !touched[id] {
			keys = append(keys, key)
		}
	}
	return keys
}

// Unread returns the columns of a lookup that nobody reads: no node, and not the answer, whose columns the plan names. Without them the
// lookup keeps the same rows.
func (g *Graph) Unread(lookup *Node) (keys []*registry.Key) {
	if g.Returns == nil || lookup.Schema.AsksOf == nil || lookup.Schema.Writes == nil || !lookup.keepsRows() {
		return nil
	}
	var read []registry.KeyID
	for _, n := range g.Nodes {
		for _, reads := range []ColumnsOf{n.Schema.Reads, n.Schema.RefReads} {
			if reads != nil {
				read = append(read, reads(n, g.Registry)...)
			}
		}
	}
	for _, id := range lookup.Schema.Writes(lookup, g.Registry) {
		key, ok := g.Registry.Key(id)
		if ok && !slices.Contains(read, id) && !slices.Contains(g.Returns, key) && key != lookup.Params.Key("timestamp") {
			keys = append(keys, key)
		}
	}
	return keys
}

// ShownInputs returns the columns that lookups read, that other nodes compute with, and that are in the answer only
// because the plan does not say which columns are. They are in the registry's order.
func (g *Graph) ShownInputs() (keys []*registry.Key) {
	if g.Returns != nil {
		return nil
	}
	var looked, used []registry.KeyID
	columns := make([]columnSet, len(g.Nodes))
	for _, index := range g.Order {
		n := g.Nodes[index]
		columns[index] = n.result(gather(columns, n.Inputs), gather(columns, n.Refs), g.Registry)
		if n.Schema.AsksOf != nil && n.Schema.Writes != nil {
			looked = append(looked, n.Schema.Writes(n, g.Registry)...)
		}
		for _, reads := range []ColumnsOf{n.Schema.Reads, n.Schema.RefReads} {
			if reads != nil {
				used = append(used, reads(n, g.Registry)...)
			}
		}
	}
	for _, key := range g.Registry.Keys() {
		out := slices.ContainsFunc(g.Outputs, func(node int) bool { _, ok := columns[node][key.ID]; return ok })
		if out && slices.Contains(looked, key.ID) && slices.Contains(used, key.ID) {
			keys = append(keys, key)
		}
	}
	return keys
}
