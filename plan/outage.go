package plan

import (
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
		o := Outage{Endpoint: ep}
		for _, n := range g.Nodes {
			if !n.OnDemand {
				o.Fatal = g.fatal(o.Fatal, n, ep)
			}
		}
		if o.Fatal == nil && g.MinRows != nil {
			rows := g.rowsMax(ep)
			o.Short = g.Short(new(expr.Params), func(node int) int { return int(rows[node]) })
			o.Short = slices.DeleteFunc(o.Short, func(s Short) bool {
				return slices.ContainsFunc(always, func(a Short) bool { return a.Output == s.Output })
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

// fatal adds n to the nodes that fail the request without the endpoint, or those that its fallback needs.
func (g *Graph) fatal(all []*Node, n *Node, down *registry.Endpoint) []*Node {
	switch {
	case !n.asks(down) || n.failsOpen():
		return all
	case n.Fallback == nil && !n.Lenient():
		return append(all, n)
	case n.Fallback == nil:
		return all
	}
	needed := make([]bool, len(g.Nodes))
	needed[n.Fallback.Index] = true
	reach(n.Fallback.Index, func(i int) (before []int) {
		for _, b := range g.Before(g.Nodes[i]) {
			if b != n.Index && g.Nodes[b].OnDemand && g.Nodes[b].StandsFor == nil {
				before = append(before, b)
			}
		}
		return before
	}, needed)
	for i, needs := range needed {
		if needs {
			all = g.fatal(all, g.Nodes[i], down)
		}
	}
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
