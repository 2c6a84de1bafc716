package plan

import (
	"slices"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/registry"
)

// Log says what the log of served rows has of a run. Immutable once built; any goroutine.
type Log struct {
	// At is the node whose rows have the values: the one that the plan names, or else the input of the last node that
	// scores, or else of the last that cuts, or else the first output.
	At *Node
	// Columns are the columns of a line; nil: all but private ones and vectors.
	Columns []*registry.Key
	// Others is how many rows of At that no output shows are drawn; 0: none.
	Others int
	// Behind are the columns that nodes behind At write, in the order of nodes.
	Behind []registry.KeyID
	// Filled are the columns in which nodes that are not behind At put the default of the key where a value is missing.
	Filled []registry.KeyID
	// Through says that all rows of the outputs come through At, unless a node makes rows of its own.
	Through bool
}

// Has reports whether a line may have a column.
func (l *Log) Has(id registry.KeyID) bool {
	return l.Columns == nil || slices.ContainsFunc(l.Columns, func(k *registry.Key) bool { return k.ID == id })
}

// othersMost bounds Log.Others.
const othersMost = 1000

// logDocument is what an artifact says of its log.
type logDocument struct {
	columns []*registry.Key
	at      string // id or label of a node; empty: the default
	others  int
}

// log reads what the plan says of the log of served rows.
func (r *reader) log(root *jsondoc.Value, d *document) {
	v := r.capable(root, d, "log", LogCapability)
	if v == nil {
		return
	}
	r.report(r.members(v, "", "log", "columns", "at", "others"))
	for i := range v.Members {
		switch m := &v.Members[i]; m.Name {
		case "columns":
			d.log.columns = r.keys(&m.Value, "log.columns")
		case "at":
			var bad *Error
			d.log.at, bad = r.text(v, "", "log", "at")
			r.report(bad)
		case "others":
			d.log.others = int(r.within(&m.Value, "", "log.others", 1, othersMost))
		}
	}
}

// logged makes Graph.Log. The graph has no cycle.
func (c *compiler) logged() {
	g, doc := c.graph, &c.doc.log
	l := &Log{Columns: doc.columns, Others: doc.others}
	if doc.at != "" {
		for _, n := range g.Nodes {
			if n.ID == doc.at || n.Trace != "" && n.Trace == doc.at {
				if l.At != nil {
					c.report(c.fail("", "log.at", "%s names several nodes", errtext.Quote(doc.at)))
				}
				l.At = n
			}
		}
		if l.At == nil {
			c.report(c.fail("", "log.at", "there is no node with the id or label %s", errtext.Quote(doc.at)))
			return
		}
	} else if l.At = g.scored(); l.At == nil {
		return
	}
	behind, through := make([]bool, len(g.Nodes)), make([]bool, len(g.Nodes))
	other := func(i int) bool { return !through[i] }
	for _, i := range g.Order {
		n := g.Nodes[i]
		inputs := slices.Concat(n.Inputs, n.Refs)
		through[i] = i == l.At.Index || len(inputs) > 0 && n.Fallback == nil && !slices.ContainsFunc(inputs, other)
		for _, before := range inputs {
			behind[i] = behind[i] || before == l.At.Index || behind[before]
		}
		into := &l.Behind
		if !behind[i] {
			into = &l.Filled
		}
		if n.Schema.Writes != nil && (behind[i] || n.Missing() == MissingDefault) {
			for _, key := range n.Schema.Writes(n, g.Registry) {
				if !slices.Contains(*into, key) {
					*into = append(*into, key)
				}
			}
		}
	}
	l.Through = !slices.ContainsFunc(g.Outputs, other)
	g.Log = l
}

// What may become of a value that a node does not find.
const (
	MissingDefault = "default" // it is the default of its key
	MissingFail    = "fail"    // the node fails
)

// Missing returns what becomes of a value that the node does not find: its parameter with IsMissing. It is "" if the op has none.
func (n *Node) Missing() string {
	for _, p := range n.Schema.Params {
		if p.IsMissing {
			return n.Params.String(p.Name)
		}
	}
	return ""
}

// scored returns the node whose rows the plan has scored, or cut, or shown; nil: it has no output.
func (g *Graph) scored() *Node {
	var scored, cut *Node
	for _, i := range g.Order {
		switch n := g.Nodes[i]; {
		case n.OnDemand || len(n.Inputs) == 0:
		case n.Schema.Scores:
			scored = g.Nodes[n.Inputs[0]]
		case n.Schema.Cuts:
			cut = g.Nodes[n.Inputs[0]]
		}
	}
	switch {
	case scored != nil:
		return scored
	case cut != nil:
		return cut
	case len(g.Outputs) > 0:
		return g.Nodes[g.Outputs[0]]
	}
	return nil
}
