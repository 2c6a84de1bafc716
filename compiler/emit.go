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

// id returns the id of a tree. If the tree is new, id stores it, with its place in the source.
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

// emit writes the artifact. Equal plans have equal bytes: nodes are numbered in the order of inWaves, and keys are
// sorted. If there are errors, or nodes that no output needs, it also writes a draft with all nodes. The definition
// is nil if there is none.
func (u *unit) emit(d *definition) {
	w := artifactWriter{unit: u, exprs: newTable("e"), preds: newTable("p"), places: make(map[string]place), nodes: []any{}}
	if d != nil {
		for _, output := range d.outputs {
			need(output)
		}
		u.warnUnused()
		for _, n := range inWaves(u.host.nodes) {
			w.node(n)
		}
		if len(u.answer.Errors) == 0 {
			u.answer.Artifact = w.bytes(d)
		}
		if size := len(u.answer.Artifact); size > plan.MaxArtifactBytes {
			u.failAt(d.at, "too-large", fmt.Sprintf("the artifact has %d bytes, more than %d", size, plan.MaxArtifactBytes), "shorten the lists of .in")
			return
		}
	}
	if whole := len(w.nodes); len(u.host.nodes) <= nodesMax {
		for _, n := range u.host.nodes {
			if n.id == "" { // which no output needs; it only comes after what it reads
				w.node(n)
			}
		}
		if len(u.answer.Errors) > 0 || len(w.nodes) > whole {
			u.answer.Draft = w.bytes(&definition{})
		}
	}
	u.answer.Places = marshal(w.places)
}

// artifactWriter writes an artifact. One goroutine at a time.
type artifactWriter struct {
	unit         *unit
	exprs, preds *table
	nodes        []any
	lenient      bool             // some node says what happens if it fails
	shares       bool             // some node has a share of the time
	places       map[string]place // of values in the artifact, by path
	trees        []string         // places of the expressions and predicates of the last node
}

// place says where and how the source writes a value of the artifact, or a node. Immutable once built.
type place struct {
	File   string     `json:"file,omitempty"` // in the folder
	Line   int        `json:"line,omitempty"` // 0: use the line of the object or list around the value
	Column int        `json:"column,omitempty"`
	Name   string     `json:"name,omitempty"`   // "rules[0].then"; of a node its method; "": that which follows from the parameter's
	Word   *plan.Word `json:"word,omitempty"`   // nil: the source writes the value as the artifact does
	Broken bool       `json:"broken,omitempty"` // a fault has been reported; faults that follow from it are not
}

// placed returns the place of an offset of the bundle.
func (u *unit) placed(at int, name string) place {
	file, line, column := u.place(at)
	return place{File: file, Line: line, Column: column, Name: name}
}

// node adds a node.
func (w *artifactWriter) node(n *node) {
	path := fmt.Sprintf("nodes[%d]", len(w.nodes))
	n.id = fmt.Sprintf("n%d", len(w.nodes))
	w.places[path] = w.unit.placed(n.at, n.call)
	for in, p := range n.places {
		w.places[path+"."+in] = p
		w.unit.answer.Foreign = w.unit.answer.Foreign || p.Word != nil && p.Word.Foreign
	}
	w.trees = nil
	object := w.value(n.fields).(map[string]any)
	if hints, isObject := n.fields[schedulingField].(map[string]any); isObject && len(hints) == 0 {
		delete(object, schedulingField)
	}
	if object[optionalField] == false {
		delete(object, optionalField) // so that the plan needs no capability
	}
	inputs := []any{}
	if n.input != nil {
		inputs = append(inputs, n.input.id)
	}
	with, given := object[inputsField]
	if list, ok := with.([]any); ok || !given {
		with = append(inputs, list...)
	}
	object["node_id"], object["op"], object[inputsField], object["source_span"] = n.id, n.method.Op, with, w.unit.span(n.at)
	object["params"] = w.value(n.params)
	if len(w.trees) == 1 {
		object["expr_span"] = w.trees[0]
	}
	w.lenient = w.lenient || object[onErrorField] != nil || object[optionalField] != nil
	w.shares = w.shares || object[shareField] != nil
	w.nodes = append(w.nodes, object)
}

// givenCapabilities are what the members of definition.given need.
var givenCapabilities = map[string]string{
	"returns": plan.ReturnsCapability, "lenient": plan.LenientCapability, "min_rows": plan.MinRowsCapability,
	"below": plan.MinRowsCapability, "log": plan.LogCapability,
}

// bytes returns the artifact with the nodes so far.
func (w *artifactWriter) bytes(d *definition) []byte {
	u := w.unit
	outputs := make([]string, len(d.outputs))
	for i, n := range d.outputs {
		outputs[i] = n.id
	}
	capabilities := []string{}
	if w.exprs.typed || w.preds.typed {
		capabilities = append(capabilities, expr.Capability)
	}
	if w.lenient {
		capabilities = append(capabilities, plan.OnErrorCapability)
	}
	if w.shares {
		capabilities = append(capabilities, plan.LenientCapability)
	}
	for name := range d.given {
		capabilities = append(capabilities, givenCapabilities[name])
	}
	if d.names != nil {
		capabilities = append(capabilities, plan.OutputNamesCapability)
	}
	slices.Sort(capabilities)
	digest, _ := u.folder.digest()
	artifact := map[string]any{
		"schema_version":        1,
		"plan_name":             d.plan,
		"nodes":                 w.nodes,
		"outputs":               outputs,
		"expr_table":            w.exprs.entries,
		"pred_table":            w.preds.entries,
		"capabilities_required": slices.Compact(capabilities),
		"extensions":            map[string]any{},
		"built_by":              map[string]any{"tool": "rankd", "tool_version": Version, "source_digest": digest},
	}
	maps.Copy(artifact, d.given)
	maps.Copy(w.places, d.places)
	if d.names != nil {
		artifact["output_names"] = d.names
		for i := range d.names {
			w.places[fmt.Sprintf("output_names[%d]", i)] = u.placed(d.at, "the name of an output")
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(artifact); err != nil {
		panic(err) // plain data
	}
	return out.Bytes()
}

// inWaves returns the needed nodes in an order in which they can run, with nodes that can run side by side next to
// each other. Sources come first, and after each node come those for which it was the last input. (This is the order
// of the original specification: n1 and n2 are the two branches of complex_dag.)
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

// before returns the nodes that precede n in the artifact: those that it reads, and its fallback, which plan code
// makes first.
func (n *node) before() []*node {
	if n.input == nil {
		return n.refs
	}
	return append(slices.Clip(n.refs), n.input)
}

// need marks a node and what it depends on. A chain may be long, so it does not recurse along it.
func need(n *node) {
	for ; n != nil && !n.needed; n = n.input {
		n.needed = true
		for _, ref := range n.refs {
			need(ref)
		}
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

// value returns a parameter as the artifact has it.
func (w *artifactWriter) value(v any) any {
	switch v := v.(type) {
	case *node:
		return v.id
	case placedTree:
		where := w.unit.span(v.at)
		w.trees = append(w.trees, where)
		table, name := w.exprs, "expr_table."
		if v.pred {
			table, name = w.preds, "pred_table."
		}
		id := table.id(v.tree, where)
		w.places[name+id] = w.unit.placed(v.at, v.want.String())
		return id
	case []any:
		items := make([]any, len(v))
		for i := range v {
			items[i] = w.value(v[i])
		}
		return items
	case map[string]any:
		object := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) { // the order gives expressions their ids
			object[name] = w.value(v[name])
		}
		return object
	default:
		return v
	}
}
