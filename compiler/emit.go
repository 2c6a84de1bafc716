package compiler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
)

// table is expr_table or pred_table: equal trees are stored once.
type table struct {
	prefix  string
	entries map[string]any
	ids     map[string]string // by the tree's JSON
	typed   bool              // some tree needs expr.Capability
}

func newTable(prefix string) *table {
	return &table{prefix: prefix, entries: make(map[string]any), ids: make(map[string]string)}
}

// id returns the id of a tree and stores it if it is new, with where it is written.
func (t *table) id(tree *tree, where string) string {
	t.typed = t.typed || tree.typed
	object := tree.object()
	text := string(marshal(object))
	id, ok := t.ids[text]
	if !ok {
		id = fmt.Sprintf("%s%d", t.prefix, len(t.ids))
		t.ids[text] = id
		object["source_span"] = where
		t.entries[id] = object
	}
	return id
}

// emit writes the artifact. Equal plans have equal bytes: nodes are numbered in the order of inWaves,
// and keys are sorted.
func (u *unit) emit(d *definition) {
	for _, output := range d.outputs {
		need(output)
	}
	u.warnUnused()
	var nodes []any
	exprs, preds := newTable("e"), newTable("p")
	for i, n := range inWaves(u.host.nodes) {
		n.id = fmt.Sprintf("n%d", i)
		nodes = append(nodes, u.nodeObject(n, exprs, preds))
	}
	outputs := make([]string, len(d.outputs))
	for i, n := range d.outputs {
		outputs[i] = n.id
	}
	capabilities := []string{}
	if exprs.typed || preds.typed {
		capabilities = append(capabilities, expr.Capability)
	}
	if slices.ContainsFunc(u.host.nodes, func(n *node) bool { return n.needed && n.lenient() }) {
		capabilities = append(capabilities, plan.OnErrorCapability)
	}
	slices.Sort(capabilities)
	digest, _ := u.folder.digest()
	artifact := map[string]any{
		"schema_version":        1,
		"plan_name":             d.plan,
		"nodes":                 orEmpty(nodes),
		"outputs":               outputs,
		"expr_table":            exprs.entries,
		"pred_table":            preds.entries,
		"capabilities_required": capabilities,
		"extensions":            map[string]any{},
		"built_by":              map[string]any{"tool": "rankd", "tool_version": Version, "source_digest": digest},
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(artifact); err != nil {
		u.fail("internal", u.folder.entry, 1, 1, "the artifact cannot be written: "+err.Error(), internalHint)
		return
	}
	if out.Len() > plan.MaxArtifactBytes {
		u.failAt(d.at, "too-large", fmt.Sprintf("the artifact has %d bytes, more than %d", out.Len(), plan.MaxArtifactBytes), "shorten the lists of .in")
		return
	}
	u.answer.Artifact = out.Bytes()
}

func orEmpty(list []any) []any {
	if list == nil {
		return []any{}
	}
	return list
}

// inWaves returns the needed nodes in the order in which they can run, and side by side as far as
// possible: sources first, and behind each node those that waited for it last. (The order of the seeds: n1 and n2
// are the two branches of complex_dag.)
func inWaves(all []*node) []*node {
	var order []*node
	waits := make(map[*node]int)
	dependents := make(map[*node][]*node)
	for _, n := range all {
		if !n.needed {
			continue
		}
		before := n.before()
		for _, b := range before {
			dependents[b] = append(dependents[b], n)
		}
		if waits[n] = len(before); waits[n] == 0 {
			order = append(order, n)
		}
	}
	for i := 0; i < len(order); i++ {
		for _, n := range dependents[order[i]] {
			if waits[n]--; waits[n] == 0 {
				order = append(order, n)
			}
		}
	}
	return order
}

// before returns the nodes that stand before n in the artifact: those that it reads, and its fallback, which plan code makes first.
func (n *node) before() []*node {
	all := slices.Concat(n.inputs, n.refs)
	if n.fallback != nil {
		all = append(all, n.fallback)
	}
	return all
}

// need marks a node and what it depends on. A chain may be long, so it does not recurse along it.
func need(n *node) {
	for !n.needed {
		n.needed = true
		for _, ref := range n.refs {
			need(ref)
		}
		if n.fallback != nil {
			need(n.fallback)
		}
		if len(n.inputs) == 0 {
			return
		}
		for _, further := range n.inputs[1:] {
			need(further)
		}
		n = n.inputs[0]
	}
}

// warnUnused warns about the ends of the branches that no output needs.
func (u *unit) warnUnused() {
	inner := make(map[*node]bool)
	for _, n := range u.host.nodes {
		for _, before := range n.before() {
			inner[before] = true
		}
	}
	for _, n := range u.host.nodes {
		if n.needed || inner[n] {
			continue
		}
		file, line, column := u.place(n.at)
		u.add(&u.answer.Warnings, Warning, "unused", file, line, column,
			fmt.Sprintf("no output uses this %s, so it is left out", n.method.Names[0]), "return it from build, or remove it")
	}
}

func (u *unit) nodeObject(n *node, exprs, preds *table) map[string]any {
	e := emitter{unit: u, exprs: exprs, preds: preds}
	inputs := make([]string, len(n.inputs))
	for i, input := range n.inputs {
		inputs[i] = input.id
	}
	object := map[string]any{"node_id": n.id, "op": n.method.Op, "inputs": inputs, "params": e.value(n.params), "source_span": u.span(n.at)}
	if len(e.trees) == 1 {
		object["expr_span"] = e.trees[0]
	}
	if len(n.hints) > 0 {
		object["scheduling"] = n.hints
	}
	if n.limit > 0 {
		object["timeout_ms"] = n.limit
	}
	n.writeOnError(object)
	return object
}

// emitter writes the parameters of one node. One goroutine at a time.
type emitter struct {
	unit         *unit
	exprs, preds *table
	trees        []string // places of the expressions and predicates
}

// value returns a parameter as the artifact has it.
func (e *emitter) value(v any) any {
	switch v := v.(type) {
	case *node:
		return v.id
	case placedTree:
		where := e.unit.span(v.at)
		e.trees = append(e.trees, where)
		if v.want == predicate {
			return e.preds.id(v.tree, where)
		}
		return e.exprs.id(v.tree, where)
	case []any:
		items := make([]any, len(v))
		for i := range v {
			items[i] = e.value(v[i])
		}
		return items
	case map[string]any:
		object := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) { // the order gives expressions their ids
			object[name] = e.value(v[name])
		}
		return object
	default:
		return v
	}
}
