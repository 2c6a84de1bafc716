package plan

import (
	"cmp"
	"slices"

	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
)

// Outage says what becomes of a request if an endpoint is down, or too slow. Immutable; any goroutine.
type Outage struct {
	Endpoint *registry.Endpoint // nil: also if none is
	Fatal    []*Node            // that would fail the request, in the plan's order
	Short    []Short            // the outputs that could not have the rows that they should have, by the limits of what remains; none if the request fails
}

// Outages returns what becomes of requests for each endpoint without which they would fail, or have too few rows.
func (g *Graph) Outages() (all []Outage) {
	var always []Short // whatever is up
	for _, ep := range append([]*registry.Endpoint{nil}, g.Registry.Endpoints()...) {
		o := Outage{Endpoint: ep, Fatal: g.fatal(ep)}
		if o.Fatal == nil && g.MinRows != nil {
			rows := g.rowsMax(ep)
			o.Short = g.Short(new(expr.Params), func(node int) int { return int(rows[node]) })
			o.Short = slices.DeleteFunc(o.Short, func(s Short) bool {
				return slices.ContainsFunc(always, func(a Short) bool { return a.Index == s.Index })
			})
		}
		if ep == nil {
			always = o.Short
		}
		if o.Fatal != nil || len(o.Short) > 0 {
			all = append(all, o)
		}
	}
	return all
}

// fatal returns the nodes that fail the request without the endpoint, of those that are due or that a fallback needs then.
func (g *Graph) fatal(down *registry.Endpoint) (all []*Node) {
	needed, queue := make([]bool, len(g.Nodes)), []*Node(nil)
	need := func(i int) {
		if !needed[i] {
			needed[i], queue = true, append(queue, g.Nodes[i])
		}
	}
	for i, n := range g.Nodes {
		if !n.OnDemand {
			need(i)
		}
	}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for _, before := range slices.Concat(n.Inputs, n.Refs) {
			need(before)
		}
		switch {
		case !n.asks(down) || n.failsOpen():
		case n.Fallback != nil:
			need(n.Fallback.Index)
		case !n.Lenient():
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b *Node) int { return cmp.Compare(a.Index, b.Index) })
	return all
}

// asks reports whether a node waits for the endpoint.
func (n *Node) asks(ep *registry.Endpoint) bool {
	return ep != nil && n.Schema.Outside && n.Endpoint != nil && n.Endpoint.ID == ep.ID
}

// failsOpen reports whether the node's own parameter lets its rows pass if it fails.
func (n *Node) failsOpen() bool {
	has := func(p ParamSchema) bool { return p.Name == "fail_open" && p.Type == Bool && !p.List }
	return slices.ContainsFunc(n.Schema.Params, has) && n.Params.Bool("fail_open")
}
