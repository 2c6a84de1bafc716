package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
)

// MaxArtifactBytes bounds the size of an artifact. The largest real artifacts have long
// lists in predicates and stay far below.
const MaxArtifactBytes = 64 << 20

// schemaVersion is the only version of the plan format.
const schemaVersion = 1

// Load parses, checks and compiles one artifact. file names the artifact in errors. The error is an *Error: the first
// fault, with the others. If the shape of the artifact has faults, the error has only those, at most one for each
// value. Otherwise it has the faults of its contents. A fault of the plan as a whole, such as a cycle, shows only
// when each node is sound. Any goroutine.
func Load(file string, artifact []byte, ops Ops, reg *registry.Registry) (*Graph, error) {
	return load(reader{file: file, registry: reg}, artifact, ops)
}

// Check returns what Load refuses in an artifact that was compiled from a source, in the words of the source. It
// applies SourceRule to all ops. Any goroutine.
func Check(file string, artifact []byte, source *Source, ops Ops, reg *registry.Registry) error {
	_, err := load(reader{file: file, registry: reg, source: source}, artifact, ops)
	return err
}

func load(r reader, artifact []byte, ops Ops) (*Graph, error) {
	doc := r.read(artifact)
	if bad := r.fault(); bad != nil {
		return nil, bad
	}
	c := compiler{reader: r, doc: doc, ops: ops}
	c.compile()
	if bad := c.fault(); bad != nil {
		for _, each := range c.faults {
			each.SourceSpan = c.sourceSpan(each.Node)
		}
		return nil, bad
	}
	c.graph.Digest = Digest(artifact)
	return c.graph, nil
}

// Digest returns the Graph.Digest of an artifact.
func Digest(artifact []byte) string {
	digest := sha256.Sum256(artifact)
	return hex.EncodeToString(digest[:])
}

// compiler resolves the names of a document. One goroutine at a time.
type compiler struct {
	reader
	doc *document
	ops Ops

	byID  map[string]int // node id to index
	graph *Graph
}

// compile makes the graph, which is sound unless there are faults.
func (c *compiler) compile() {
	if v, _ := integer(c.doc.schemaVersion); v != schemaVersion {
		c.report(c.fail("", "schema_version", "must be %d", schemaVersion))
	}
	for i, name := range c.doc.capabilities {
		if !supported(name) {
			c.report(c.fail("", element("capabilities_required", i), "capability %s is not supported", errtext.Quote(name)))
		}
	}
	if len(c.faults) > 0 {
		return // The rest may mean something else there.
	}
	c.byID = make(map[string]int, len(c.doc.nodes))
	for i := range c.doc.nodes {
		id := c.doc.nodes[i].id
		if first, taken := c.byID[id]; taken {
			c.report(c.fail(id, member(element("nodes", i), "node_id"), "%s is taken by nodes[%d]", errtext.Quote(id), first))
			continue
		}
		c.byID[id] = i
	}

	c.graph = &Graph{
		Name: c.doc.name, Registry: c.registry, Nodes: make([]*Node, len(c.doc.nodes)),
		Typed: slices.Contains(c.doc.capabilities, expr.Capability),
	}
	for i := range c.doc.nodes {
		c.graph.Nodes[i] = c.node(i)
	}
	c.outputs()
	if len(c.faults) > 0 || c.source != nil && c.source.Draft {
		return // The edges are not all known.
	}
	c.link()
	if c.onErrors(); len(c.faults) > 0 {
		return
	}
	if bad := c.acyclic(); bad != nil {
		c.report(bad)
		return
	}
	c.applyPolicy()
	c.takesMost()
	c.counts()
	c.begin()
	c.logged()
	c.entities()
	c.residents()
	c.report(c.optionals())
	c.readAhead()
	if strict := c.checksColumns(); strict || c.graph.Lenient {
		for _, bad := range c.graph.columnFaults(c.file, strict) {
			c.report(bad)
		}
	}
}

// checksColumns reports whether Load refuses the plan if it reads a column that nothing writes. It
// takes older plans as the original engine does.
func (c *compiler) checksColumns() bool {
	return c.graph.Typed || slices.ContainsFunc(c.graph.Nodes, func(n *Node) bool { return n.Schema.Strict })
}

// sourceSpan returns the place in the source of the node with that id, or "".
func (c *compiler) sourceSpan(node string) string {
	for i := range c.doc.nodes {
		if c.doc.nodes[i].id == node {
			return c.doc.nodes[i].sourceSpan
		}
	}
	return ""
}

// node resolves one node except its successors. The node is sound unless it has faults.
func (c *compiler) node(index int) *Node {
	before := len(c.faults)
	doc, path := &c.doc.nodes[index], element("nodes", index)
	n := &Node{
		Index: index, ID: doc.id,
		Timeout: doc.timeout, Share: doc.share, Inline: doc.inline, CostHint: doc.costHint,
		SourceSpan: doc.sourceSpan, ExprSpan: doc.exprSpan,
	}
	var known bool
	if n.Schema, known = c.ops.OpSchema(doc.op); known {
		n.Op = n.Schema.Op
	} else {
		c.report(c.fail(n.ID, member(path, "op"), "unknown op %s", errtext.Quote(doc.op)))
	}

	n.Inputs = make([]int, len(doc.inputs))
	for i, id := range doc.inputs {
		input, ok := c.byID[id]
		if !ok {
			c.report(c.fail(n.ID, element(member(path, "inputs"), i), "there is no node %s", errtext.Quote(id)))
		}
		n.Inputs[i] = input
	}
	if !known {
		return n
	}
	c.report(c.inputCount(n, path))
	params := member(path, "params")
	read := len(c.faults)
	if c.params(n, doc.params, params); len(c.faults) == read {
		c.references(n, params)
	}
	if n.Deps = len(n.Inputs) + len(n.Refs); len(c.faults) == before {
		c.report(c.prepare(n, path))
	}
	return n
}

// inputCount checks the number of inputs of a node of a strict op.
func (c *compiler) inputCount(n *Node, path string) *Error {
	least, most, count := n.Schema.InputsMin, n.Schema.InputsMax, len(n.Inputs)
	if c.source != nil && count > 0 { // A source does not list the first input, whose method the node is.
		least, most, count = max(0, least-1), most-1, count-1
	}
	switch {
	case c.source == nil && !n.Schema.Strict || least <= count && count <= most:
		return nil
	case least == most:
		return c.refuse(n.ID, member(path, "inputs"), fault{FaultRange, fmt.Sprintf("must list %d nodes, not %d", least, count)})
	default:
		return c.refuse(n.ID, member(path, "inputs"), fault{FaultRange, fmt.Sprintf("must list %d to %d nodes, not %d", least, most, count)})
	}
}

// prepare calls the op's own check of a node.
func (c *compiler) prepare(n *Node, path string) *Error {
	prepared, err := any(nil), error(nil)
	if n.Schema.Prepare != nil {
		prepared, err = n.Schema.Prepare(n, c.registry)
	}
	var param *ParamError
	switch {
	case errors.As(err, &param):
		return c.fail(n.ID, path+".params."+param.Param, "%s", param.Msg)
	case err != nil:
		return c.fail(n.ID, path, "%v", err)
	}
	if rule, ok := prepared.(RequestRule); ok {
		c.graph.RequestRules = append(c.graph.RequestRules, rule)
	}
	if n.Prepared = prepared; n.Schema.Writes != nil {
		n.Writes = len(n.Schema.Writes(n, c.registry))
	}
	return nil
}

func (c *compiler) outputs() {
	c.graph.Outputs, c.graph.OutputNames, c.graph.Returns = make([]int, len(c.doc.outputs)), c.doc.outputNames, c.doc.returns
	for i, id := range c.doc.outputs {
		index, ok := c.byID[id]
		if !ok {
			c.report(c.fail("", element("outputs", i), "there is no node %s", errtext.Quote(id)))
			continue
		}
		c.graph.Outputs[i] = index
		c.graph.Nodes[index].IsOutput = true
	}
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

// begin notes what the state machine of a run starts from: the nodes that are ready, what each waits for, and who
// needs its result.
func (c *compiler) begin() {
	c.graph.Due = len(c.graph.Nodes)
	for _, n := range c.graph.Nodes {
		n.Waits = n.Deps
		n.Readers += len(n.Succs)
		if n.IsOutput {
			n.Readers++
		}
		if n.Counted {
			n.Readers++
		}
		if n.OnDemand {
			n.Waits++
			c.graph.Due--
		}
		if n.Lenient() {
			n.Holds = slices.Concat(n.Inputs, n.Refs)
		}
		for _, i := range n.Holds {
			c.graph.Nodes[i].Readers++
		}
		if n.Waits == 0 {
			c.graph.Sources = append(c.graph.Sources, n.Index)
		}
	}
}
