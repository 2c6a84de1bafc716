package plan

import (
	"slices"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/jsondoc"
)

// OnError says what the readers of a node see when the node fails. Immutable; any goroutine.
type OnError uint8

// The values of on_error.
const (
	// OnErrorFail: the request fails.
	OnErrorFail OnError = iota
	// OnErrorEmpty: the readers see no rows.
	OnErrorEmpty
	// OnErrorSkip: the readers see the node's first input.
	OnErrorSkip
	// OnErrorPartial: the task leaves out the rows whose keys failed. If all fails, the readers see no rows.
	OnErrorPartial
	// OnErrorNull: the readers see the node's first input, with nulls in the columns that the node writes.
	OnErrorNull
	// OnErrorFallback: the readers see the result of another node, which runs only then.
	OnErrorFallback
)

var onErrorNames = [...]string{"fail", "empty", "skip", "partial", "null", "fallback"}

// String returns the name of the value, as artifacts write it.
func (o OnError) String() string { return onErrorNames[o] }

// Lenient reports whether the plan goes on without the node if the node fails.
func (n *Node) Lenient() bool { return n.OnError != OnErrorFail }

// onErrorDocument is what an artifact says of a node that fails.
type onErrorDocument struct {
	onError  *OnError // nil if absent
	fallback string   // of OnErrorFallback
	optional *bool    // nil if absent
}

// onError reads on_error and optional.
func (r *reader) onError(v *jsondoc.Value, node, path string) (doc onErrorDocument, bad *Error) {
	if field := v.Get("on_error"); field != nil {
		doc.onError, doc.fallback, bad = r.onErrorValue(field, node, member(path, "on_error"))
		if bad != nil {
			return doc, bad
		}
	}
	if field := v.Get("optional"); field != nil {
		if field.Kind != jsondoc.Bool {
			return doc, r.wrongKind(node, member(path, "optional"), "true or false", field)
		}
		doc.optional = &field.Bool
	}
	return doc, nil
}

// onErrorWant says what on_error must be.
const onErrorWant = `"fail", "empty", "skip", "partial", "null" or {"fallback": node id}`

func (r *reader) onErrorValue(v *jsondoc.Value, node, path string) (value *OnError, fallback string, bad *Error) {
	switch v.Kind {
	case jsondoc.String:
		if i := slices.Index(onErrorNames[:OnErrorFallback], v.Str); i >= 0 {
			return new(OnError(i)), "", nil
		}
	case jsondoc.Object:
		if bad = r.members(v, node, path, "fallback"); bad == nil {
			fallback, bad = r.text(v, node, path, "fallback")
		}
		return new(OnErrorFallback), fallback, bad
	}
	return nil, "", r.wrongEnum(node, path, onErrorWant, v)
}

// onErrors resolves on_error and optional of all nodes, and finds the nodes on demand. The nodes are linked.
func (c *compiler) onErrors() {
	for i, n := range c.graph.Nodes {
		c.report(c.onError(n, &c.doc.nodes[i]))
	}
	for _, n := range c.graph.Nodes {
		if n.Fallback != nil {
			c.report(c.fallback(n))
		}
	}
	if !c.graph.Lenient || len(c.faults) > 0 {
		return
	}
	c.onDemand()
	c.report(c.fallbackDepth())
}

// onError resolves what the artifact says of one node.
func (c *compiler) onError(n *Node, doc *nodeDocument) *Error {
	path := element("nodes", n.Index)
	for _, field := range [...]struct {
		name, capability string
		given            bool
	}{
		{"on_error", OnErrorCapability, doc.onError != nil}, {"optional", OnErrorCapability, doc.optional != nil},
		{"timeout", LenientCapability, doc.share != 0},
	} {
		if field.given && !slices.Contains(c.doc.capabilities, field.capability) {
			return c.fail(n.ID, member(path, field.name), "needs %s in capabilities_required", errtext.Quote(field.capability))
		}
	}
	n.Optional = doc.optional != nil && *doc.optional
	path = member(path, "on_error")
	switch {
	case doc.onError == nil && n.Optional:
		n.OnError = OnErrorEmpty
	case doc.onError == nil:
	case *doc.onError == OnErrorFail && n.Optional:
		return c.fail(n.ID, path, "must not be \"fail\": the node is optional")
	case *doc.onError == OnErrorSkip && len(n.Inputs) == 0:
		return c.fail(n.ID, path, "must not be \"skip\": the node has no input to pass on")
	case *doc.onError == OnErrorPartial && !n.Schema.Partial:
		return c.fail(n.ID, path, "must not be \"partial\": %s asks for no keys that could fail one by one", n.Op)
	case *doc.onError == OnErrorNull:
		if bad := c.nullable(n, path); bad != nil {
			return bad
		}
		n.OnError = OnErrorNull
	default:
		n.OnError = *doc.onError
	}
	if n.OnError == OnErrorFallback {
		fallback, ok := c.byID[doc.fallback]
		if !ok {
			return c.fail(n.ID, member(path, "fallback"), "there is no node %s", errtext.Quote(doc.fallback))
		}
		n.Fallback = c.graph.Nodes[fallback]
	}
	c.graph.Lenient = c.graph.Lenient || n.Lenient()
	return nil
}

// nullable checks that n could have returned the rows of its input with nulls in the columns that it writes.
func (c *compiler) nullable(n *Node, path string) *Error {
	if !n.Schema.AddsColumns || len(n.Inputs) == 0 {
		return c.fail(n.ID, path, "must not be \"null\": %s does not add columns to the rows of its input", n.Op)
	}
	for _, id := range n.Schema.Writes(n, c.registry) {
		if key, ok := c.registry.Key(id); ok && !key.Nullable {
			return c.fail(n.ID, path, "must not be \"null\": key %s is not nullable", key.Name)
		}
	}
	return nil
}

// fallback checks that only the readers of n see the result of its fallback.
func (c *compiler) fallback(n *Node) *Error {
	f := n.Fallback
	path := member(member(element("nodes", n.Index), "on_error"), "fallback")
	switch {
	case f == n:
		return c.fail(n.ID, path, "must be another node")
	case f.StandsFor != nil:
		return c.fail(n.ID, path, "%s is the fallback of %s already", f.label(), f.StandsFor.label())
	case f.IsOutput:
		return c.fail(n.ID, path, "%s is an output, so it cannot be a fallback", f.label())
	case len(f.Succs) > 0:
		return c.fail(n.ID, path, "%s is read by %s, so it cannot be a fallback", f.label(), c.graph.Nodes[f.Succs[0]].label())
	}
	f.StandsFor = n
	return nil
}

// fallbackDepthMax bounds the length of a chain of fallbacks: each reader of the first node waits for all of them.
const fallbackDepthMax = 8

func (c *compiler) fallbackDepth() *Error {
	for _, n := range c.graph.Nodes {
		depth := 0
		for f := n.Fallback; f != nil && f != n; f = f.Fallback { // A circle is for acyclic to refuse.
			if depth++; depth > fallbackDepthMax {
				path := member(member(element("nodes", n.Index), "on_error"), "fallback")
				return c.fail(n.ID, path, "more than %d fallbacks stand in for each other", fallbackDepthMax)
			}
		}
	}
	return nil
}

// onDemand marks the nodes that run only if a fallback needs them: the fallbacks, and the nodes that only such nodes read.
func (c *compiler) onDemand() {
	nodes := c.graph.Nodes
	readers := make([]int, len(nodes)) // that are on demand
	var marked []*Node
	mark := func(n *Node) {
		n.OnDemand = true
		marked = append(marked, n)
	}
	for _, n := range nodes {
		if n.StandsFor != nil {
			mark(n)
		}
	}
	for k := 0; k < len(marked); k++ {
		for _, deps := range [...][]int{marked[k].Inputs, marked[k].Refs} {
			for _, dep := range deps {
				d := nodes[dep]
				if readers[dep]++; readers[dep] == len(d.Succs) && !d.IsOutput && !d.OnDemand {
					mark(d)
				}
			}
		}
	}
}

// Before returns the nodes that settle before n starts: its inputs and node references, their fallbacks and so on,
// and the node whose fallback n is. The graph of these edges has no cycle.
func (g *Graph) Before(n *Node) []int {
	before := make([]int, 0, n.Deps+1)
	for _, deps := range [...][]int{n.Inputs, n.Refs} {
		for _, dep := range deps {
			before = append(before, dep)
			for fallback := g.Nodes[dep].Fallback; fallback != nil && fallback.Index != dep; fallback = fallback.Fallback {
				before = append(before, fallback.Index)
			}
		}
	}
	if n.StandsFor != nil {
		before = append(before, n.StandsFor.Index)
	}
	return before
}

// optionalMax bounds the optional nodes of a plan: the plan is walked once for each.
const optionalMax = 256

// optionals refuses an optional node beside which no required node can run: the plan would never wait for it.
// The graph has no cycle.
func (c *compiler) optionals() *Error {
	if !c.graph.Lenient {
		return nil
	}
	after := c.graph.after()
	before := func(n int) []int { return c.graph.Before(c.graph.Nodes[n]) }
	seen := 0
	for _, n := range c.graph.Nodes {
		if !n.Optional {
			continue
		}
		path := member(element("nodes", n.Index), "optional")
		if seen++; seen > optionalMax {
			return c.fail(n.ID, path, "more than %d nodes are optional", optionalMax)
		}
		bound := make([]bool, len(c.graph.Nodes)) // to run before n or after it
		bound[n.Index] = true
		reach(n.Index, before, bound)
		reach(n.Index, func(n int) []int { return after[n] }, bound)
		if !slices.ContainsFunc(c.graph.Nodes, func(o *Node) bool { return !bound[o.Index] && !o.Optional && !o.OnDemand }) {
			return c.fail(n.ID, path, "no required node can run beside this one, so the plan would never wait for it")
		}
	}
	return nil
}

// after returns, for each node, the nodes that come after it.
func (g *Graph) after() [][]int {
	after := make([][]int, len(g.Nodes))
	for _, n := range g.Nodes {
		for _, before := range g.Before(n) {
			after[before] = append(after[before], n.Index)
		}
	}
	return after
}

// reach marks all nodes to which edges lead from a node.
func reach(from int, edges func(int) []int, marks []bool) {
	queue := []int{from}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		for _, to := range edges(next) {
			if !marks[to] {
				marks[to] = true
				queue = append(queue, to)
			}
		}
	}
}
