package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"math"

	"github.com/rankd/rankd/internal/excerpt"
	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/registry"
)

// MaxArtifactBytes bounds the size of an artifact. The largest real artifacts have long
// lists in predicates and stay far below.
const MaxArtifactBytes = 64 << 20

// schemaVersion is the only version of the plan format.
const schemaVersion = 1

// Load parses, checks and compiles one artifact. file names the artifact in errors.
// The error is an *Error. Any goroutine.
func Load(file string, artifact []byte, ops Ops, reg *registry.Registry) (*Graph, error) {
	r := reader{file}
	doc, bad := r.read(artifact)
	if bad != nil {
		return nil, bad
	}
	c := compiler{reader: r, doc: doc, ops: ops, registry: reg}
	graph, bad := c.compile()
	if bad != nil {
		return nil, bad
	}
	digest := sha256.Sum256(artifact)
	graph.Digest = hex.EncodeToString(digest[:])
	return graph, nil
}

// compiler resolves the names of a document. One goroutine at a time.
type compiler struct {
	reader
	doc      *document
	ops      Ops
	registry *registry.Registry

	byID  map[string]int // node id to index
	graph *Graph
}

func (c *compiler) compile() (*Graph, *Error) {
	if v, _ := integer(c.doc.schemaVersion); v != schemaVersion {
		return nil, c.fail("", "schema_version", "must be %d", schemaVersion)
	}
	for i, name := range c.doc.capabilities {
		if !supported(name) {
			return nil, c.fail("", element("capabilities_required", i), "capability %s is not supported", excerpt.Quote(name))
		}
	}
	c.byID = make(map[string]int, len(c.doc.nodes))
	for i := range c.doc.nodes {
		id := c.doc.nodes[i].id
		if first, taken := c.byID[id]; taken {
			return nil, c.fail(id, member(element("nodes", i), "node_id"), "%s is taken by nodes[%d]", excerpt.Quote(id), first)
		}
		c.byID[id] = i
	}

	c.graph = &Graph{Name: c.doc.name, Registry: c.registry, Nodes: make([]*Node, len(c.doc.nodes))}
	for i := range c.doc.nodes {
		n, bad := c.node(i)
		if bad != nil {
			return nil, bad
		}
		c.graph.Nodes[i] = n
	}
	if bad := c.outputs(); bad != nil {
		return nil, bad
	}
	c.link()
	if bad := c.onErrors(); bad != nil {
		return nil, bad
	}
	c.sources()
	if bad := c.acyclic(); bad != nil {
		return nil, bad
	}
	if bad := c.optionals(); bad != nil {
		return nil, bad
	}
	return c.graph, nil
}

// node resolves one node except its successors.
func (c *compiler) node(index int) (*Node, *Error) {
	doc, path := &c.doc.nodes[index], element("nodes", index)
	n := &Node{
		Index: index, ID: doc.id,
		Timeout: doc.timeout, Inline: doc.inline, CostHint: doc.costHint,
		SourceSpan: doc.sourceSpan, ExprSpan: doc.exprSpan,
	}
	var known bool
	if n.Schema, known = c.ops.OpSchema(doc.op); !known {
		return nil, c.fail(n.ID, member(path, "op"), "unknown op %s", excerpt.Quote(doc.op))
	}
	n.Op = n.Schema.Op

	n.Inputs = make([]int, len(doc.inputs))
	for i, id := range doc.inputs {
		input, ok := c.byID[id]
		if !ok {
			return nil, c.fail(n.ID, element(member(path, "inputs"), i), "there is no node %s", excerpt.Quote(id))
		}
		n.Inputs[i] = input
	}
	path = member(path, "params")
	if bad := c.params(n, doc.params, path); bad != nil {
		return nil, bad
	}
	if bad := c.references(n, path); bad != nil {
		return nil, bad
	}
	n.Deps = len(n.Inputs) + len(n.Refs)
	return n, nil
}

// params checks the parameters of n against the op's schema and fills in defaults.
func (c *compiler) params(n *Node, v *jsondoc.Value, path string) *Error {
	if v == nil || v.Kind == jsondoc.Null {
		v = &jsondoc.Value{Kind: jsondoc.Object}
	}
	if v.Kind != jsondoc.Object {
		return c.wrongKind(n.ID, path, "an object", v)
	}
	for i := range v.Members {
		if name := v.Members[i].Name; name != "trace" && !n.Schema.has(name) {
			return c.fail(n.ID, member(path, name), "%s has no such parameter", n.Op)
		}
	}
	if trace := v.Get("trace"); trace != nil && trace.Kind != jsondoc.Null {
		if trace.Kind != jsondoc.String {
			return c.wrongKind(n.ID, member(path, "trace"), "a string or null", trace)
		}
		n.Trace = trace.Str
	}
	n.Params.values = make([]paramValue, len(n.Schema.Params))
	for i := range n.Schema.Params {
		schema := &n.Schema.Params[i]
		value, bad := c.param(n, schema, v.Get(schema.Name), member(path, schema.Name))
		if bad != nil {
			return bad
		}
		n.Params.values[i] = value
	}
	return nil
}

func (s *OpSchema) has(name string) bool {
	for i := range s.Params {
		if s.Params[i].Name == name {
			return true
		}
	}
	return false
}

// param checks one parameter; v is nil if it is absent.
func (c *compiler) param(n *Node, schema *ParamSchema, v *jsondoc.Value, path string) (paramValue, *Error) {
	value := paramValue{name: schema.Name, i: schema.IntValue, s: schema.StrValue}
	value.given = v != nil && v.Kind != jsondoc.Null || schema.StrValue != ""
	if v == nil || v.Kind == jsondoc.Null {
		if schema.Required {
			return value, c.wrongKind(n.ID, path, schema.Type.describe(), v)
		}
		return value, nil
	}
	switch schema.Type {
	case Int:
		i, ok := integer(v)
		if !ok {
			return value, c.wrongKind(n.ID, path, schema.Type.describe(), v)
		}
		if schema.IsKey && i > math.MaxUint32 {
			return value, c.fail(n.ID, path, "must be a key id, and those end at %d", uint32(math.MaxUint32))
		}
		value.i = i
	case Bool:
		if v.Kind != jsondoc.Bool {
			return value, c.wrongKind(n.ID, path, schema.Type.describe(), v)
		}
		value.b = v.Bool
	default:
		if v.Kind != jsondoc.String {
			return value, c.wrongKind(n.ID, path, schema.Type.describe(), v)
		}
		value.s = v.Str
	}
	return value, nil
}

// describe says what a parameter of this type must be.
func (t ParamType) describe() string {
	switch t {
	case Int:
		return "an integer of 64 bits"
	case Bool:
		return "true or false"
	case Endpoint:
		return "an endpoint id"
	case ExprID:
		return "an id in expr_table"
	case PredID:
		return "an id in pred_table"
	case NodeRef:
		return "a node id"
	default:
		return "a string"
	}
}

// references resolves the references in the parameters of n: first those inside the
// plan, then endpoints. It skips an optional reference that is not given.
func (c *compiler) references(n *Node, path string) *Error {
	for i := range n.Params.values {
		value := &n.Params.values[i]
		if !value.given {
			continue
		}
		missing := func(where string) *Error {
			return c.fail(n.ID, member(path, value.name), "%s %s", where, excerpt.Quote(value.s))
		}
		switch n.Schema.Params[i].Type {
		case ExprID:
			e, ok := c.doc.exprs[value.s]
			if !ok {
				return missing("expr_table has no entry")
			}
			if value.s != "" { // the entry "" loads but cannot run, as in the original engine
				n.Expr = e
			}
		case PredID:
			p, ok := c.doc.preds[value.s]
			if !ok {
				return missing("pred_table has no entry")
			}
			if value.s != "" {
				n.Pred = p
			}
		case NodeRef:
			ref, ok := c.byID[value.s]
			if !ok {
				return missing("there is no node")
			}
			n.Refs = append(n.Refs, ref)
		}
	}
	for i := range n.Params.values {
		value := &n.Params.values[i]
		if n.Schema.Params[i].Type != Endpoint || !value.given {
			continue
		}
		endpoint, ok := c.registry.Endpoint(value.s)
		switch {
		case !ok:
			return c.fail(n.ID, member(path, value.name), "there is no endpoint %s", excerpt.Quote(value.s))
		case endpoint.Kind != registry.Redis:
			return c.fail(n.ID, member(path, value.name), "endpoint %s has kind %s, must be %s",
				endpoint.ID, endpoint.Kind, registry.Redis)
		}
		n.Endpoint = endpoint
	}
	return nil
}

func (c *compiler) outputs() *Error {
	c.graph.Outputs = make([]int, len(c.doc.outputs))
	for i, id := range c.doc.outputs {
		index, ok := c.byID[id]
		if !ok {
			return c.fail("", element("outputs", i), "there is no node %s", excerpt.Quote(id))
		}
		c.graph.Outputs[i] = index
		c.graph.Nodes[index].IsOutput = true
	}
	return nil
}

// link records each edge at its source.
func (c *compiler) link() {
	for _, n := range c.graph.Nodes {
		for _, input := range n.Inputs {
			c.graph.Nodes[input].Succs = append(c.graph.Nodes[input].Succs, n.Index)
		}
		for _, ref := range n.Refs {
			c.graph.Nodes[ref].Succs = append(c.graph.Nodes[ref].Succs, n.Index)
		}
	}
}

// sources lists the nodes that are ready when a request begins.
func (c *compiler) sources() {
	for _, n := range c.graph.Nodes {
		if n.Deps == 0 && !n.OnDemand {
			c.graph.Sources = append(c.graph.Sources, n.Index)
		}
	}
}
