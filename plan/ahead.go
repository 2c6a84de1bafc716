package plan

import (
	"slices"

	"github.com/rankd/rankd/registry"
)

// sharing says how a node reads for a later one.
type sharing uint8

// The ways of sharing.
const (
	apart    sharing = iota // each node reads for itself
	beside                  // the commands of both leave together
	together                // one command for each row has what both read
)

// readAhead finds the nodes that read for later ones, too. A node reads for a later one if all its rows get there, in
// their order, with the columns that the later node reads: then it knows what the later node will ask for. The graph
// has no cycle.
func (c *compiler) readAhead() {
	head := make(map[*Node]*Node) // of each node, the one that reads for it, or itself
	for _, index := range c.graph.Order {
		n := c.graph.Nodes[index]
		if n.Schema.AsksOf == nil {
			continue
		}
		first := c.graph.headOf(n, head)
		if head[n] = first; first != n {
			first.Ahead = append(first.Ahead, n)
		}
	}
}

// headOf returns the node that reads for n, or n. It walks up the chain of nodes that pass all their rows on. A node
// that may drop rows is no obstacle if one command reads for it and for n: the reply says which rows it drops.
func (g *Graph) headOf(n *Node, head map[*Node]*Node) *Node {
	var reads []registry.KeyID
	if n.Schema.Reads != nil {
		reads = n.Schema.Reads(n, g.Registry)
	}
	var droppers []*Node
	for at := n; len(at.Inputs) == 1; {
		at = g.Nodes[at.Inputs[0]]
		if at.writesAny(reads, g.Registry) {
			return n
		}
		how := at.shares(n)
		if !at.keepsRows() {
			if how != together {
				return n
			}
			droppers = append(droppers, at)
		}
		elsewhere := func(dropper *Node) bool { return head[dropper] != at }
		if how != apart && head[at] == at && !slices.ContainsFunc(droppers, elsewhere) {
			return at
		}
	}
	return n
}

// writesAny reports whether a node adds or replaces one of these columns.
func (n *Node) writesAny(keys []registry.KeyID, reg *registry.Registry) bool {
	if n.Schema.Writes == nil || len(keys) == 0 {
		return false
	}
	return slices.ContainsFunc(n.Schema.Writes(n, reg), func(key registry.KeyID) bool { return slices.Contains(keys, key) })
}

// keepsRows reports whether the rows of a node that does not fail are those of its input, in their order.
func (n *Node) keepsRows() bool {
	return len(n.Inputs) == 1 && n.OnError != OnErrorPartial && n.Schema.KeepsRows != nil && n.Schema.KeepsRows(n)
}

// shares says how a node may read for a later one. The plan has to say the same about failures and time for both. Two keys
// in one call take longer than one, so a node with a timeout of its own does not share a call.
func (n *Node) shares(later *Node) sharing {
	if n.Schema.AsksOf == nil || n.Endpoint != later.Endpoint || n.OnError != later.OnError || n.Optional || later.Optional ||
		n.OnDemand != later.OnDemand || n.Timeout != later.Timeout || n.Share != later.Share || n.Granted != later.Granted {
		return apart
	}
	asks, next := n.Schema.AsksOf(n), later.Schema.AsksOf(later)
	switch {
	case asks.Command == "" || next.Command == "" || asks.MayRefuse && n.Lenient():
		return apart
	case asks.Command == next.Command:
		return together
	case n.Timeout == 0 && n.Share == 0:
		return beside
	}
	return apart
}
