package plan

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
)

// document is an artifact of the right shape with parsed trees. Its names are not
// resolved yet.
type document struct {
	schemaVersion *jsondoc.Value // an integer literal
	name          string
	nodes         []nodeDocument
	outputs       []string
	outputNames   []string        // nil: the outputs have none
	returns       []*registry.Key // nil: all columns
	lenient       lenientPolicy
	minRows       []int // of each output; nil: the plan does not say
	below         Below
	log           logDocument
	exprs         map[string]*expr.Expr
	preds         map[string]*expr.Pred
	capabilities  []string // ascending, no duplicates
}

// nodeDocument is one element of "nodes".
type nodeDocument struct {
	id     string
	op     string
	inputs []string
	params *jsondoc.Value // nil if absent

	inline     *bool
	costHint   time.Duration
	timeout    time.Duration
	share      Percent
	sourceSpan string // "" if absent, or not a string; as is exprSpan
	exprSpan   string

	onErrorDocument
}

// reader reads one artifact, and collects what is wrong with it. Its methods return *Error, or report. One goroutine at a time.
type reader struct {
	file     string
	registry *registry.Registry // for the types in expressions
	source   *Source            // nil: the artifact has no other words for its values
	faults   []*Error
}

// faultsMax bounds the faults of an artifact that Load names.
const faultsMax = 100

// report notes a fault, if it is not nil.
func (r *reader) report(bad *Error) {
	if bad != nil && len(r.faults) < faultsMax {
		r.faults = append(r.faults, bad)
	}
}

// fault returns what has been reported, or nil.
func (r *reader) fault() *Error { return joined(r.faults) }

func (r *reader) fail(node, field, format string, args ...any) *Error {
	return &Error{File: r.file, Node: node, Field: field, Msg: fmt.Sprintf(format, args...)}
}

// wrongKind returns the error for a field that must be want. v is nil if the field is absent.
func (r *reader) wrongKind(node, field, want string, v *jsondoc.Value) *Error {
	if want = r.source.noun(want); v == nil {
		return r.refuse(node, field, fault{FaultMissing, fmt.Sprintf("is missing, must be %s", want)})
	}
	return r.refuse(node, field, fault{FaultType, fmt.Sprintf("must be %s, not %s", want, r.source.shown(field, v.Describe()))})
}

// wrongEnum is wrongKind for a text that is not one of several.
func (r *reader) wrongEnum(node, field, want string, v *jsondoc.Value) *Error {
	bad := r.wrongKind(node, field, want, v)
	bad.Code = FaultEnum
	return bad
}

// refuse returns the error for a fault of a value, or nil.
func (r *reader) refuse(node, field string, f fault) *Error {
	if f.text == "" {
		return nil
	}
	return &Error{File: r.file, Node: node, Field: field, Msg: f.text, Code: f.code}
}

// lineOf returns ", line 3" for a syntax error in the third line of artifact.
func lineOf(err error, artifact []byte) string {
	var syntax *jsondoc.SyntaxError
	if !errors.As(err, &syntax) {
		return ""
	}
	return fmt.Sprintf(", line %d", 1+bytes.Count(artifact[:syntax.Offset], []byte("\n")))
}

// read reads the artifact. The document is complete unless there are faults.
func (r *reader) read(artifact []byte) *document {
	d := new(document)
	if len(artifact) > MaxArtifactBytes {
		r.report(r.fail("", "", "larger than %d bytes", MaxArtifactBytes))
		return d
	}
	root, err := jsondoc.Parse(artifact)
	if err != nil {
		r.report(r.fail("", "", "invalid JSON: %v%s", err, lineOf(err, artifact)))
		return d
	}
	if root.Kind != jsondoc.Object {
		r.report(r.wrongKind("", "", "an object", &root))
		return d
	}
	var bad *Error
	d.schemaVersion = root.Get("schema_version")
	if v := d.schemaVersion; v == nil || v.Kind != jsondoc.Uint && v.Kind != jsondoc.Int {
		r.report(r.wrongKind("", "schema_version", "an integer literal", v))
	}
	d.name, bad = r.text(&root, "", "", "plan_name")
	r.report(bad)
	nodes := root.Get("nodes")
	if nodes == nil || nodes.Kind != jsondoc.Array {
		r.report(r.wrongKind("", "nodes", "an array", nodes))
		nodes = new(jsondoc.Value)
	}
	d.nodes = make([]nodeDocument, len(nodes.Items))
	for i := range nodes.Items {
		d.nodes[i] = r.node(&nodes.Items[i], element("nodes", i))
	}
	d.outputs, bad = r.texts(&root, "", "", "outputs", NodeRef.describe())
	r.report(bad)
	language := expr.Language{Typed: lists(&root, expr.Capability), Registry: r.registry}
	d.exprs = readTable(r, &root, "expr_table", language.ParseExpr)
	d.preds = readTable(r, &root, "pred_table", language.ParsePred)
	if bad := r.capabilities(&root, d); bad != nil { // Otherwise the extensions would be checked against a wrong list.
		r.report(bad)
		return d
	}
	r.outputNames(&root, d)
	r.returns(&root, d)
	r.lenient(&root, d)
	r.minRows(&root, d)
	r.log(&root, d)
	r.report(r.extensions(&root, "", "", d.capabilities))
	for i := range nodes.Items {
		r.report(r.extensions(&nodes.Items[i], d.nodes[i].id, element("nodes", i), d.capabilities))
	}
	return d
}

// capable returns a member of the plan that needs a capability, or nil if the plan lacks the member, or the capability.
func (r *reader) capable(root *jsondoc.Value, d *document, name, capability string) *jsondoc.Value {
	v := root.Get(name)
	if v != nil && !slices.Contains(d.capabilities, capability) {
		r.report(r.fail("", name, "needs %s in capabilities_required", errtext.Quote(capability)))
		return nil
	}
	return v
}

// OutputName is what the name of an output matches. It is also a name in TypeScript, where numbers would change the order.
const OutputName = `^[A-Za-z_][A-Za-z0-9_]{0,63}$`

var outputName = regexp.MustCompile(OutputName)

// outputNames reads the names of the outputs, if the plan names them.
func (r *reader) outputNames(root *jsondoc.Value, d *document) {
	const field = "output_names"
	if r.capable(root, d, field, OutputNamesCapability) == nil {
		return
	}
	names, bad := r.texts(root, "", "", field, "a string")
	r.report(bad)
	if bad == nil && len(names) != len(d.outputs) {
		r.report(r.fail("", field, "must name each of the %s, and has %s", errtext.Count(len(d.outputs), "output"), errtext.Count(len(names), "name")))
	}
	for i, name := range names {
		switch {
		case !outputName.MatchString(name):
			r.report(r.fail("", element(field, i), "%s must be 1 to 64 letters, digits and _, and begin with no digit", errtext.Quote(name)))
		case slices.Contains(names[:i], name):
			r.report(r.fail("", element(field, i), "%s is there twice", errtext.Quote(name)))
		}
	}
	d.outputNames = names
}

// returns reads which columns the answer has, if the plan says so.
func (r *reader) returns(root *jsondoc.Value, d *document) {
	if list := r.capable(root, d, "returns", ReturnsCapability); list != nil {
		d.returns = r.keys(list, "returns")
	}
}

// keys reads a list of columns, each once.
func (r *reader) keys(list *jsondoc.Value, field string) []*registry.Key {
	if list.Kind != jsondoc.Array {
		r.report(r.wrongKind("", field, "an array of key ids", list))
		return nil
	}
	keys := make([]*registry.Key, 0, len(list.Items))
	for i := range list.Items {
		item, path := &list.Items[i], element(field, i)
		if item.Kind != jsondoc.Uint || item.Uint > math.MaxUint32 {
			r.report(r.wrongKind("", path, "a key id", item))
			continue
		}
		switch key, ok := r.registry.Key(registry.KeyID(item.Uint)); {
		case item.Uint == uint64(registry.IDKey):
			r.report(r.fail("", path, "each row has its id: leave it out"))
		case !ok:
			r.report(r.fail("", path, "there is no key %d", item.Uint))
		case slices.Contains(keys, key):
			r.report(r.fail("", path, "key %d is there twice", key.ID))
		default:
			keys = append(keys, key)
		}
	}
	return keys
}

// text reads a required string.
func (r *reader) text(v *jsondoc.Value, node, path, name string) (string, *Error) {
	field := v.Get(name)
	if field == nil || field.Kind != jsondoc.String {
		return "", r.wrongKind(node, member(path, name), "a string", field)
	}
	return field.Str, nil
}

// texts reads a required array of strings. each says what an item must be.
func (r *reader) texts(v *jsondoc.Value, node, path, name, each string) ([]string, *Error) {
	field, path := v.Get(name), member(path, name)
	if field == nil || field.Kind != jsondoc.Array {
		return nil, r.wrongKind(node, path, "an array of strings", field)
	}
	list := make([]string, len(field.Items))
	for i := range field.Items {
		item := &field.Items[i]
		if item.Kind != jsondoc.String {
			return nil, r.wrongKind(node, element(path, i), each, item)
		}
		list[i] = item.Str
	}
	return list, nil
}

func (r *reader) node(v *jsondoc.Value, path string) (n nodeDocument) {
	if v.Kind != jsondoc.Object {
		r.report(r.wrongKind("", path, "an object", v))
		return n
	}
	var bad *Error
	n.id, bad = r.text(v, "", path, "node_id")
	r.report(bad)
	n.op, bad = r.text(v, n.id, path, "op")
	r.report(bad)
	n.inputs, bad = r.texts(v, n.id, path, "inputs", NodeRef.describe())
	r.report(bad)
	n.params = v.Get("params")

	n.timeout = r.duration(v, n.id, path, "timeout_ms", 1, time.Millisecond)
	n.share = r.percent(v, n.id, path, "timeout")
	r.report(r.scheduling(v, path, &n))
	n.onErrorDocument, bad = r.onError(v, n.id, path)
	r.report(bad)
	// Spans are for people and tools, so only the kind of the first is checked. Errors show strings.
	if span := v.Get("source_span"); span != nil {
		if span.Kind != jsondoc.Object && span.Kind != jsondoc.String {
			r.report(r.wrongKind(n.id, member(path, "source_span"), "an object or a string", span))
		}
		n.sourceSpan = span.Str
	}
	if span := v.Get("expr_span"); span != nil {
		n.exprSpan = span.Str
	}
	return n
}

func (r *reader) scheduling(v *jsondoc.Value, path string, n *nodeDocument) *Error {
	scheduling, path := v.Get("scheduling"), member(path, "scheduling")
	if scheduling == nil {
		return nil
	}
	if bad := r.members(scheduling, n.id, path, "inline", "cost_estimate_us"); bad != nil {
		return bad
	}
	if inline := scheduling.Get("inline"); inline != nil {
		if inline.Kind != jsondoc.Bool {
			return r.wrongKind(n.id, member(path, "inline"), "true or false", inline)
		}
		n.inline = &inline.Bool
	}
	n.costHint = r.duration(scheduling, n.id, path, "cost_estimate_us", 0, time.Microsecond)
	return nil
}

// duration reads an optional integer of at least lowest, in units.
func (r *reader) duration(v *jsondoc.Value, node, path, name string, lowest int64, unit time.Duration) time.Duration {
	field := v.Get(name)
	if field == nil {
		return 0
	}
	return time.Duration(r.within(field, node, member(path, name), lowest, math.MaxInt64/int64(unit))) * unit
}

// within reads an integer.
func (r *reader) within(v *jsondoc.Value, node, path string, lowest, highest int64) int64 {
	n, ok := integer(v)
	if !ok || v.Kind == jsondoc.Uint && v.Uint > uint64(highest) || n < lowest || n > highest {
		r.report(r.wrongKind(node, path, fmt.Sprintf("an integer from %d to %d", lowest, highest), v))
		return 0
	}
	return n
}

// members checks that a value is an object that has only some of these members.
func (r *reader) members(v *jsondoc.Value, node, path string, names ...string) *Error {
	if v.Kind != jsondoc.Object {
		return r.wrongKind(node, path, "an object", v)
	}
	for i := range v.Members {
		if name := v.Members[i].Name; !slices.Contains(names, name) {
			return r.fail(node, member(path, name), "unknown field")
		}
	}
	return nil
}

// readTable parses every entry of expr_table or pred_table, used or not. The last of
// several entries with the same name counts.
func readTable[T any](
	r *reader, root *jsondoc.Value, name string, parse func(*jsondoc.Value) (*T, error),
) map[string]*T {
	table := root.Get(name)
	if table == nil {
		return nil
	}
	if table.Kind != jsondoc.Object {
		r.report(r.wrongKind("", name, "an object", table))
		return nil
	}
	last := make(map[string]int, len(table.Members))
	for i := range table.Members {
		last[table.Members[i].Name] = i
	}
	parsed := make(map[string]*T, len(last))
	for i := range table.Members {
		entry := &table.Members[i]
		if last[entry.Name] != i {
			continue
		}
		tree, err := parse(&entry.Value)
		if err != nil {
			r.report(r.treeError(member(name, entry.Name), err))
		}
		parsed[entry.Name] = tree
	}
	return parsed
}

// treeError appends the path inside a tree to the path of its entry.
func (r *reader) treeError(path string, err error) *Error {
	var inTree *expr.ParseError
	switch {
	case !errors.As(err, &inTree):
		return r.fail("", path, "%v", err)
	case inTree.Path == "":
		return r.fail("", path, "%s", inTree.Msg)
	default:
		return r.fail("", path+"."+inTree.Path, "%s", inTree.Msg)
	}
}

// lists reports whether the artifact lists a capability. The list itself may still be malformed.
func lists(root *jsondoc.Value, capability string) bool {
	list := root.Get("capabilities_required")
	return list != nil && list.Kind == jsondoc.Array && slices.ContainsFunc(list.Items, func(v jsondoc.Value) bool {
		return v.Kind == jsondoc.String && v.Str == capability
	})
}

func (r *reader) capabilities(root *jsondoc.Value, d *document) (bad *Error) {
	const field = "capabilities_required"
	if root.Get(field) == nil {
		return nil
	}
	if d.capabilities, bad = r.texts(root, "", "", field, String.describe()); bad != nil {
		return bad
	}
	for i := 1; i < len(d.capabilities); i++ {
		switch a, b := d.capabilities[i-1], d.capabilities[i]; {
		case a == b:
			return r.fail("", element(field, i), "%s is listed twice", errtext.Quote(b))
		case a > b:
			return r.fail("", element(field, i), "must be sorted, but %s comes after %s", errtext.Quote(b), errtext.Quote(a))
		}
	}
	return nil
}

// extensions checks the extensions of the plan or of a node.
func (r *reader) extensions(v *jsondoc.Value, node, path string, capabilities []string) *Error {
	ext, path := v.Get("extensions"), member(path, "extensions")
	if ext == nil {
		return nil
	}
	if ext.Kind != jsondoc.Object {
		return r.wrongKind(node, path, "an object", ext)
	}
	for i := range ext.Members {
		name := ext.Members[i].Name
		path := member(path, name)
		if _, ok := slices.BinarySearch(capabilities, name); !ok {
			return r.fail(node, path, "is not among the plan's capabilities_required")
		}
		if !supported(name) {
			continue // compile refuses it, whatever its payload
		}
		payload := ext.Get(name)
		if payload.Kind != jsondoc.Object {
			return r.wrongKind(node, path, "an empty object", payload)
		}
		if len(payload.Members) > 0 {
			return r.fail(node, path, "must be empty, but has a field %s", errtext.Quote(payload.Members[0].Name))
		}
	}
	return nil
}

// integer reads an integer literal, or a float literal with an integral value inside
// int64. Integer literals above int64 wrap around to negative, as in the original
// engine, so that its plans load unchanged.
func integer(v *jsondoc.Value) (int64, bool) {
	switch v.Kind {
	case jsondoc.Uint:
		return int64(v.Uint), true
	case jsondoc.Int:
		return v.Int, true
	case jsondoc.Float:
		// Both bounds are exact as doubles; the upper one is outside.
		if f := v.Float; f == math.Trunc(f) && f >= -1<<63 && f < 1<<63 {
			return int64(f), true
		}
	}
	return 0, false
}
