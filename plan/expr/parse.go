package expr

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/registry"
)

// MaxDepth bounds the nesting of the objects of a tree; the root is level 1. The plan format requires at least 256.
// The bound limits recursion, and the registers that a deep tree needs.
const MaxDepth = 1000

// Capability is what an artifact lists in capabilities_required to have typed trees. In typed trees, keys and
// parameters have the types of the registry, and the operators marked as Typed exist. In the trees of any other
// artifact all values are doubles, as before.
const Capability = "cap.rankd.expressions.v1"

// ParseError says what is wrong with a tree, and where. Immutable; any goroutine.
type ParseError struct {
	Path string // from the root of the tree: "a.b.x", "list[3]"; "" is the root itself
	Msg  string
}

// Error implements error: one line.
func (e *ParseError) Error() string {
	if e.Path == "" {
		return e.Msg
	}
	return e.Path + ": " + e.Msg
}

// Language says what trees mean. The zero value stands for an artifact without Capability and a registry
// without keys. Immutable; any goroutine.
type Language struct {
	Typed    bool               // the artifact lists Capability
	Registry *registry.Registry // has the types and names of keys and parameters; required if Typed
}

// ParseExpr parses and compiles the tree of an ExprIR, which in typed trees may be a string or a predicate, too. It ignores members that
// the format does not know. The error is a *ParseError.
func (l Language) ParseExpr(v *jsondoc.Value) (*Expr, error) {
	p := parser{language: l}
	sort := expression
	if op := v.Get("op"); l.Typed && op != nil && op.Kind == jsondoc.String {
		if o := operatorNamed(op.Str); o != nil && o.Makes == Predicate {
			sort = predicate
			p.inIf++ // An expression cannot fail.
		}
	}
	tree, err := p.tree(v, sort)
	if err != nil {
		return nil, err
	}
	if err := p.wants(tree, TakesValue); err != nil {
		return nil, err
	}
	var c compiler
	e := &Expr{typ: Number, typed: l.Typed}
	switch {
	case tree.typ == Predicate:
		e.typ, e.root = Predicate, c.pred(tree, false)
	case tree.typ == String:
		e.typ, e.root = String, c.leaf(tree, String)
	default:
		e.root = c.number(tree)
		if tree.typ == Int {
			e.typ, e.exact = Int, c.leaf(tree, Int)
		}
	}
	e.code, e.source = c.code, p.source(tree)
	return e, nil
}

// ParsePred parses and compiles the tree of a PredIR. It ignores members that the
// format does not know. A bad literal pattern is an error only in typed trees. In others Filter fails
// when a row reaches it. The error is a *ParseError.
func (l Language) ParsePred(v *jsondoc.Value) (*Pred, error) {
	p := parser{language: l}
	tree, err := p.tree(v, predicate)
	if err != nil {
		return nil, err
	}
	var c compiler
	root := c.pred(tree, false)
	return &Pred{code: c.code, root: root, source: p.source(tree)}, nil
}

// A node is a parsed operation, as the artifact has it.
type node struct {
	op   *Operator
	args []*node // in the order of op.Operands; of a regex the key
	typ  Type

	number  float64          // const_number
	whole   int64            // const_number: the same, if typ is Int
	truth   bool             // const_bool
	text    string           // const_string
	zone    *time.Location   // const_string: that it names, as an operand of hour_of or day_of_week
	key     registry.KeyID   // key_ref, regex
	textID  bool             // key_ref: the id, which is read as a text
	param   registry.ParamID // param_ref
	list    *list            // in
	entries *entries         // table
	pattern *pattern         // regex
	path    string           // in and regex, whose errors name it
}

// A list is the list of an in. At most one of its parts is not empty.
type list struct {
	numbers []float64
	wholes  []int64 // the integral ones among numbers, exactly
	texts   map[string]struct{}
	fails   bool // strings, but lhs cannot be one: fails once a row reaches it
}

// A parser walks one tree.
type parser struct {
	language Language
	path     []string // to the current place
	inIf     int      // how many conditions of if the place is in
	keys     []registry.KeyID
	params   []registry.ParamID
	ids      int // references to the id
	textIDs  int // of these references, those that read it as a text
}

// source returns what the tree that has been parsed is compiled from.
func (p *parser) source(tree *node) *source {
	s := &source{tree: tree, registry: p.language.Registry, keys: sortedSet(p.keys), params: sortedSet(p.params), textIDs: p.textIDs > 0}
	if s.textIDs && p.textIDs == p.ids {
		s.keys = slices.DeleteFunc(s.keys, func(key registry.KeyID) bool { return key == registry.IDKey })
	}
	return s
}

// The two sorts of trees, as errors name them.
const (
	expression = "expression"
	predicate  = "predicate"
)

// tree parses an expression or a predicate.
func (p *parser) tree(v *jsondoc.Value, sort string) (*node, error) {
	o, err := p.operator(v, sort)
	if err != nil {
		return nil, err
	}
	n := &node{op: o, typ: o.Makes}
	switch o.code {
	case opConst:
		return n, p.number(v, n)
	case opText:
		n.text, err = p.text(v, "value")
		return n, err
	case opTruth:
		return n, p.truth(v, n)
	case opKey:
		return n, p.keyRef(v, n)
	case opParam:
		return n, p.paramRef(v, n)
	case opCmp:
		if n.op, err = p.comparison(v); err != nil {
			return nil, err
		}
	case opRegex:
		return n, p.regex(v, n)
	}
	if err := p.operands(v, n); err != nil {
		return nil, err
	}
	switch o.code {
	case opIn:
		return n, p.in(v, n)
	case opTable:
		return n, p.entries(v, n)
	}
	return n, nil
}

// operator checks that v is an object, not nested too deep, and returns its operator.
func (p *parser) operator(v *jsondoc.Value, sort string) (*Operator, error) {
	if len(p.path) >= MaxDepth {
		return nil, p.fail("nested deeper than %d levels", MaxDepth)
	}
	if v == nil || v.Kind != jsondoc.Object {
		return nil, p.fail("want an object, the %s; have %s", sort, v.Describe())
	}
	name, err := p.text(v, "op")
	if err != nil {
		return nil, err
	}
	o := operatorNamed(name)
	if o == nil || (o.Makes == Predicate) != (sort == predicate) {
		article := "a"
		if sort == expression {
			article = "an"
		}
		return nil, p.fail("unknown op %s of %s %s", errtext.Quote(name), article, sort)
	}
	if o.Typed && !p.language.Typed {
		return nil, p.fail("op %s needs %q in capabilities_required", errtext.Quote(name), Capability)
	}
	return o, nil
}

// operands parses the operands of n and checks their types.
func (p *parser) operands(v *jsondoc.Value, n *node) error {
	for _, operand := range n.op.Operands {
		child, err := p.field(v, operand.Member)
		if err != nil {
			return err
		}
		sort := expression
		if operand.Takes == TakesPredicate {
			sort = predicate
		}
		p.path = append(p.path, operand.Member)
		if n.op.code == opIf && sort == predicate {
			p.inIf++
		}
		arg, err := p.tree(child, sort)
		if err == nil {
			err = p.wants(arg, operand.Takes)
		}
		if err != nil {
			return err
		}
		if n.op.code == opIf && sort == predicate {
			p.inIf--
		}
		p.up()
		n.args = append(n.args, arg)
	}
	return p.agree(n)
}

// wants checks the type of an operand, at its place. Trees that are not typed have numbers only.
func (p *parser) wants(n *node, takes Takes) error {
	if !p.language.Typed {
		return nil
	}
	switch takes {
	case TakesNumber, TakesOrdered:
		if !n.typ.isNumber() {
			return p.fail("want a number, have %s", p.describe(n))
		}
	case TakesValue:
		if !n.typ.isNumber() && n.typ != String && n.typ != Predicate {
			return p.fail("want a number, a string or a predicate, have %s", p.describe(n))
		}
	case TakesEqual, TakesElement, TakesNullable:
		if !n.typ.isNumber() && n.typ != String {
			return p.fail("want a number or a string, have %s", p.describe(n))
		}
	case TakesText:
		if n.typ != String {
			return p.fail("want a string, have %s", p.describe(n))
		}
	case TakesVector:
		if n.typ != Vector {
			return p.fail("want a vector, have %s", p.describe(n))
		}
	case TakesSet:
		if n.typ != Ints && n.typ != Strings {
			return p.fail("want a set of strings or a list, have %s", p.describe(n))
		}
	}
	return nil
}

// agree checks the types of operands against each other.
func (p *parser) agree(n *node) error {
	if n.op.code == opHash && len(n.args) == 1 { // random hashes the row's id.
		id := &node{op: operatorNamed("key_ref"), typ: Int, key: registry.IDKey}
		p.keys = append(p.keys, id.key)
		p.ids++
		n.args = []*node{id, n.args[0]}
	}
	if !p.language.Typed {
		return nil
	}
	switch n.op.code {
	case opHash:
		for _, x := range n.args {
			p.idAs(x, String)
		}
	case opConcat:
		for _, x := range n.args {
			p.idAs(x, String)
			if p.isTruth(x) {
				return p.fail("want a number or a string, have %s", p.describe(x))
			}
		}
	case opIf, opCoalesce:
		a, b := n.args[len(n.args)-2], n.args[len(n.args)-1]
		p.idAs(a, b.typ)
		p.idAs(b, a.typ)
		if a.typ == String || b.typ == String {
			n.typ = String
			if a.typ != b.typ && a.typ != Null && b.typ != Null {
				return p.fail("cannot choose between %s and %s", p.describe(a), p.describe(b))
			}
		}
	case opClock:
		return p.zone(n.args[1])
	case opVectors:
		if x, y := p.dims(n.args[0]), p.dims(n.args[len(n.args)-1]); x != y {
			return p.fail("%s has %d numbers, and %s has %d", p.describe(n.args[0]), x, p.describe(n.args[1]), y)
		}
	case opCmp:
		a, b := n.args[0], n.args[1]
		p.idAs(a, b.typ)
		p.idAs(b, a.typ)
		if (a.typ == String) != (b.typ == String) && a.typ != Null && b.typ != Null {
			return p.fail("cannot compare %s with %s", p.describe(a), p.describe(b))
		}
	case opMember:
		x, set := n.args[0], n.args[1]
		if set.typ == Strings {
			p.idAs(x, String)
		}
		if (x.typ == String) != (set.typ == Strings) && x.typ != Null {
			return p.fail("%s has no element like %s", p.describe(set), p.describe(x))
		}
	}
	return nil
}

// isTruth reports whether a node is a key or a parameter of type bool.
func (p *parser) isTruth(n *node) bool {
	key, _ := p.language.Registry.Key(n.key)
	param, _ := p.language.Registry.Param(n.param)
	return n.op.code == opKey && key.Type == registry.Bool || n.op.code == opParam && param.Type == registry.Bool
}

// dims returns how many numbers the vectors of a key have.
func (p *parser) dims(n *node) int {
	if n.op.code == opParam {
		param, _ := p.language.Registry.Param(n.param)
		return param.Dims
	}
	key, _ := p.language.Registry.Key(n.key)
	return key.Dims
}

// zone looks up the time zone that a literal names. It must be a literal: a zone from a request would be read from
// disk while the request runs.
func (p *parser) zone(n *node) (err error) {
	if n.op.code != opText {
		return p.fail("zone: want a literal such as \"Europe/Berlin\", have %s; for a zone of the request, add its offset in seconds to x", p.describe(n))
	}
	if n.zone, err = time.LoadLocation(n.text); err != nil || n.text == "" || n.text == "Local" {
		return p.fail("zone: %s is not a time zone of the IANA database, such as \"Europe/Berlin\"", errtext.Quote(n.text))
	}
	return nil
}

// idAs makes a reference to the id read it as a text, if it is compared with a text and ids may be texts.
func (p *parser) idAs(n *node, typ Type) {
	if typ == String && n.op.code == opKey && n.key == registry.IDKey && p.language.Registry.TextIDs() {
		n.typ, n.textID = String, true
		p.textIDs++
	}
}

// describe names a node in errors: "the string key country", "a number".
func (p *parser) describe(n *node) string {
	switch n.op.code {
	case opKey:
		if key, ok := p.language.Registry.Key(n.key); ok {
			return fmt.Sprintf("key %s of type %s", key.Name, key.Type)
		}
	case opParam:
		if param, ok := p.language.Registry.Param(n.param); ok {
			return fmt.Sprintf("parameter %s of type %s", param.Name, param.Type)
		}
	}
	return n.typ.String()
}

// number parses a constant. An integral one is an integer, too.
func (p *parser) number(v *jsondoc.Value, n *node) error {
	value, err := p.field(v, "value")
	if err != nil {
		return err
	}
	if !value.IsNumber() {
		return p.fail("value: want a number, have %s", value.Describe())
	}
	n.number = value.Float
	if whole, ok := integer(value); ok && p.language.Typed {
		n.typ, n.whole = Int, whole
	}
	return nil
}

// integer returns the value of a number that is an integer of 64 bits. Minus zero is not one.
func integer(v *jsondoc.Value) (int64, bool) {
	switch f := v.Float; {
	case f == 0 && math.Signbit(f):
		return 0, false
	case v.Kind == jsondoc.Uint:
		return int64(v.Uint), v.Uint <= math.MaxInt64
	case v.Kind == jsondoc.Int:
		return v.Int, true
	default:
		return int64(f), f == math.Trunc(f) && f >= -1<<63 && f < 1<<63
	}
}

func (p *parser) truth(v *jsondoc.Value, n *node) error {
	value, err := p.field(v, "value")
	if err != nil {
		return err
	}
	if value.Kind != jsondoc.Bool {
		return p.fail("value: want true or false, have %s", value.Describe())
	}
	n.truth = value.Bool
	return nil
}

// keyRef parses a reference to a column. In trees that are not typed the registry need not have the key: it
// then reads as null.
func (p *parser) keyRef(v *jsondoc.Value, n *node) (err error) {
	if n.key, err = p.key(v); err != nil || !p.language.Typed {
		return err
	}
	key, ok := p.language.Registry.Key(n.key)
	if !ok {
		return p.fail("key_id: %d is not a registered key", n.key)
	}
	if n.typ, ok = keyTypes[key.Type]; !ok {
		return p.fail("key_id: expressions cannot read key %s of type %s", key.Name, key.Type)
	}
	return nil
}

// paramRef parses a reference to a parameter, as keyRef does to a column.
func (p *parser) paramRef(v *jsondoc.Value, n *node) (err error) {
	if n.param, err = p.param(v); err != nil || !p.language.Typed {
		return err
	}
	param, ok := p.language.Registry.Param(n.param)
	if !ok {
		return p.fail("param_id: %d is not a registered parameter", n.param)
	}
	if n.typ, ok = keyTypes[param.Type]; !ok {
		return p.fail("param_id: expressions cannot read parameter %s of type %s", param.Name, param.Type)
	}
	return nil
}

// keyTypes are the types of the registry that expressions read.
var keyTypes = map[registry.Type]Type{
	registry.Int: Int, registry.Float: Number, registry.Bool: Number, registry.String: String,
	registry.StringSet: Strings, registry.StringList: Strings, registry.IntList: Ints, registry.Vector: Vector,
}

func (p *parser) comparison(v *jsondoc.Value) (*Operator, error) {
	name, err := p.field(v, "cmp")
	if err != nil {
		return nil, err
	}
	if name.Kind == jsondoc.String {
		if o := comparison(name.Str); o != nil {
			return o, nil
		}
	}
	return nil, p.fail("cmp: want one of == != < <= > >=, have %s", name.Describe())
}

// in parses the list of an in.
func (p *parser) in(v *jsondoc.Value, n *node) error {
	items, err := p.field(v, "list")
	if err != nil {
		return err
	}
	if items.Kind != jsondoc.Array {
		return p.fail("list: want an array, have %s", items.Describe())
	}
	n.list, n.path = &list{texts: make(map[string]struct{})}, p.where()
	for i := range items.Items {
		item := &items.Items[i]
		switch {
		case item.IsNumber():
			n.list.numbers = append(n.list.numbers, item.Float)
			if whole, ok := integer(item); ok {
				n.list.wholes = append(n.list.wholes, whole)
			} else if item.Float == 0 { // minus zero
				n.list.wholes = append(n.list.wholes, 0)
			}
		case item.Kind == jsondoc.String:
			n.list.texts[item.Str] = struct{}{}
		default:
			return p.fail("list[%d]: want a number or a string, have %s", i, item.Describe())
		}
		if len(n.list.numbers) > 0 && len(n.list.texts) > 0 {
			return p.fail("list[%d]: numbers and strings are mixed", i)
		}
	}
	if p.language.Typed && len(n.list.texts) > 0 {
		p.idAs(n.args[0], String)
	}
	n.list.fails = len(n.list.texts) > 0 && n.args[0].op.code != opKey && !p.language.Typed
	if lhs := n.args[0]; p.language.Typed && len(items.Items) > 0 && lhs.typ != Null && (lhs.typ == String) != (len(n.list.texts) > 0) {
		return p.fail("list: %s cannot be one of %s", p.describe(lhs), items.Items[0].Describe())
	}
	return nil
}

func (p *parser) regex(v *jsondoc.Value, n *node) (err error) {
	if n.key, err = p.key(v); err != nil {
		return err
	}
	if p.language.Typed {
		switch key, ok := p.language.Registry.Key(n.key); {
		case !ok:
			return p.fail("key_id: %d is not a registered key", n.key)
		case key.Type != registry.String:
			return p.fail("key_id: want a key of type string, have key %s of type %s", key.Name, key.Type)
		}
	}
	ignoreCase := false
	if flags := v.Get("flags"); flags != nil {
		if flags.Kind != jsondoc.String || flags.Str != "" && flags.Str != "i" {
			return p.fail(`flags: want "" or "i", have %s`, flags.Describe())
		}
		ignoreCase = flags.Str == "i"
	}
	source, err := p.field(v, "pattern")
	if err != nil {
		return err
	}
	n.args, n.path = []*node{{op: operatorNamed("key_ref"), typ: String, key: n.key}}, p.where()
	n.pattern, err = p.pattern(source, ignoreCase)
	return err
}

func (p *parser) pattern(v *jsondoc.Value, ignoreCase bool) (*pattern, error) {
	p.path = append(p.path, "pattern")
	defer p.up()
	if v.Kind != jsondoc.Object {
		return nil, p.fail("want an object, have %s", v.Describe())
	}
	kind, err := p.field(v, "kind")
	if err != nil {
		return nil, err
	}
	switch {
	case kind.Kind == jsondoc.String && kind.Str == "literal":
		text, err := p.text(v, "value")
		if err != nil {
			return nil, err
		}
		literal := newLiteralPattern(text, ignoreCase)
		if err := literal.literal.err; err != nil && p.language.Typed {
			return nil, p.fail("value: %v", err)
		}
		return literal, nil
	case kind.Kind == jsondoc.String && kind.Str == "param":
		if p.inIf > 0 {
			return nil, p.fail("an expression, and the condition of an if, takes a literal pattern, because an expression cannot fail")
		}
		id, err := p.param(v)
		if err != nil {
			return nil, err
		}
		if id == 0 {
			return nil, p.fail("param_id: 0 is not a parameter")
		}
		if p.language.Typed {
			switch param, ok := p.language.Registry.Param(id); {
			case !ok:
				return nil, p.fail("param_id: %d is not a registered parameter", id)
			case param.Type != registry.String:
				return nil, p.fail("param_id: want a parameter of type string, have parameter %s of type %s", param.Name, param.Type)
			}
		}
		return newParamPattern(id, ignoreCase), nil
	}
	return nil, p.fail(`kind: want "literal" or "param", have %s`, kind.Describe())
}

func (p *parser) up() { p.path = p.path[:len(p.path)-1] }

func (p *parser) field(v *jsondoc.Value, name string) (*jsondoc.Value, error) {
	f := v.Get(name)
	if f == nil {
		return nil, p.fail("%s is missing", name)
	}
	return f, nil
}

// text reads a string.
func (p *parser) text(v *jsondoc.Value, name string) (string, error) {
	f, err := p.field(v, name)
	if err != nil {
		return "", err
	}
	if f.Kind != jsondoc.String {
		return "", p.fail("%s: want a string, have %s", name, f.Describe())
	}
	return f.Str, nil
}

func (p *parser) key(v *jsondoc.Value) (registry.KeyID, error) {
	id, err := p.id(v, "key_id")
	p.keys = append(p.keys, registry.KeyID(id))
	if registry.KeyID(id) == registry.IDKey {
		p.ids++
	}
	return registry.KeyID(id), err
}

func (p *parser) param(v *jsondoc.Value) (registry.ParamID, error) {
	id, err := p.id(v, "param_id")
	p.params = append(p.params, registry.ParamID(id))
	return registry.ParamID(id), err
}

// id reads an id, an integer literal without sign.
func (p *parser) id(v *jsondoc.Value, name string) (uint32, error) {
	id, err := p.field(v, name)
	if err != nil {
		return 0, err
	}
	if id.Kind != jsondoc.Uint {
		return 0, p.fail("%s: want an integer without sign, have %s", name, id.Describe())
	}
	if id.Uint > math.MaxUint32 {
		return 0, p.fail("%s: %d is more than %d", name, id.Uint, uint32(math.MaxUint32))
	}
	return uint32(id.Uint), nil
}

func (p *parser) fail(format string, args ...any) error {
	return &ParseError{Path: p.where(), Msg: fmt.Sprintf(format, args...)}
}

// where returns the path to the current place. It leaves out the middle of a deep path.
func (p *parser) where() string {
	const ends = 16
	if n := len(p.path); n > 3*ends {
		return strings.Join(p.path[:ends], ".") + ".…." + strings.Join(p.path[n-ends:], ".")
	}
	return strings.Join(p.path, ".")
}

func sortedSet[T registry.KeyID | registry.ParamID](ids []T) []T {
	slices.Sort(ids)
	return slices.Compact(ids)
}
