package expr

import (
	"slices"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// A Term is the value of a part of an expression or a predicate for one row, and the parts that it was computed
// from, as the artifact has them. Immutable once built; any goroutine.
type Term struct {
	Op    string           // as in the table of operators: "mul", "key_ref", "cmp"
	Name  string           // of the key or parameter, or the comparison: "<"; "" for other operators
	Key   registry.KeyID   // of key_ref and regex
	Param registry.ParamID // of param_ref
	Value any              // nil (null), bool, int64, float64, string, []int64 or []string
	Terms []Term           // the operands that were evaluated, in order: and, or, coalesce and if skip some
	Fault string           // why the part, or a part of it, has no value
}

// Explain returns the value of e for an active row of in and how it came about. pos is the row's position. It
// computes by the row, so it is not for many rows.
func (e *Expr) Explain(in rowset.RowSet, pos int, params *Params) Term {
	x := explainer{batch: in.Batch, row: int(in.Row(pos)), params: params, registry: e.registry}
	return x.term(e.tree)
}

// Explain returns whether p is true for an active row of in, and why. pos is the row's position. It computes by
// the row, so it is not for many rows.
func (p *Pred) Explain(in rowset.RowSet, pos int, params *Params) Term {
	x := explainer{batch: in.Batch, row: int(in.Row(pos)), params: params, registry: p.registry}
	return x.term(p.tree)
}

// Culprit returns the smallest part of a predicate that is false that alone made it false.
func (t *Term) Culprit() *Term {
	for t.Op == "and" {
		t = &t.Terms[len(t.Terms)-1] // the one before is true
	}
	return t
}

// An explainer evaluates trees for one row. One goroutine at a time.
type explainer struct {
	batch    *rowset.Batch
	row      int
	params   *Params
	registry *registry.Registry // nil: names are not known
}

func (x *explainer) term(n *node) Term {
	t := Term{Op: n.op.Name, Name: n.op.Cmp}
	switch n.op.code {
	case opConst:
		t.Value = n.number
		if n.typ == Int {
			t.Value = n.whole
		}
	case opNull:
	case opText:
		t.Value = n.text
	case opTruth:
		t.Value = n.truth
	case opKey:
		x.key(n, &t)
	case opParam:
		x.param(n, &t)
	case opNow:
		if now, ok := x.params.Now(); ok {
			t.Value = now
		}
	case opAnd, opOr:
		if x.part(&t, n.args[0]); t.Fault == "" && t.Terms[0].Value == (n.op.code == opAnd) {
			x.part(&t, n.args[1])
		}
		t.setValue(t.Terms[len(t.Terms)-1].Value)
	case opCoalesce:
		if x.part(&t, n.args[0]); t.Terms[0].Value == nil {
			x.part(&t, n.args[1])
		}
		t.setValue(t.Terms[len(t.Terms)-1].Value)
	case opIf:
		if x.part(&t, n.args[0]); t.Terms[0].Value == true {
			x.part(&t, n.args[1])
		} else {
			x.part(&t, n.args[2])
		}
		t.setValue(t.Terms[1].Value)
	case opIn:
		x.in(n, &t)
	case opRegex:
		x.regex(n, &t)
	default:
		for _, arg := range n.args {
			x.part(&t, arg)
		}
		if t.Fault == "" {
			t.Value = x.operation(n, t.Terms)
		}
	}
	return t
}

// part appends an operand. A fault of it is a fault of t.
func (x *explainer) part(t *Term, n *node) {
	part := x.term(n)
	t.Terms = append(t.Terms, part)
	t.Fault = part.Fault
}

// setValue sets the value unless a part has a fault.
func (t *Term) setValue(v any) {
	if t.Fault == "" {
		t.Value = v
	}
}

// operation returns the value of an operator all of whose operands were evaluated.
func (x *explainer) operation(n *node, parts []Term) any {
	switch n.op.code {
	case opIsNull:
		return parts[0].Value == nil
	case opNotNull:
		return parts[0].Value != nil
	case opNot:
		return parts[0].Value == false
	case opCmp:
		return x.comparison(n, parts[0].Value, parts[1].Value)
	case opMember:
		return isMember(n, parts[0].Value, parts[1].Value)
	}
	var values [3]float64
	for i := range parts {
		value, ok := asNumber(parts[i].Value)
		if !ok {
			return nil
		}
		values[i] = value
	}
	if n.op.code == opAge {
		now, ok := x.params.Now()
		if age := now - values[0]; ok && isFinite(age) {
			return age
		}
		return nil
	}
	if value, ok := n.op.apply(values); ok {
		return value
	}
	return nil
}

// asNumber returns a value as arithmetic sees it.
func asNumber(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	case bool:
		return float64(bit(v)), true
	}
	return 0, false
}

func (x *explainer) comparison(n *node, a, b any) bool {
	op := cmpOf(n.op.Cmp)
	if n.args[0].op.code == opNull || n.args[1].op.code == opNull {
		return op == cmpEq && a == nil && b == nil || op == cmpNe && (a == nil) != (b == nil)
	}
	if a == nil || b == nil {
		return false
	}
	if n.args[0].typ == Int && n.args[1].typ == Int {
		return holds(op, a.(int64), b.(int64))
	}
	if s, ok := a.(string); ok {
		return (s == b.(string)) == (op == cmpEq)
	}
	left, _ := asNumber(a)
	right, _ := asNumber(b)
	return holds(op, left, right)
}

func isMember(n *node, v, of any) bool {
	switch list := of.(type) {
	case []string:
		s, ok := v.(string)
		return ok && slices.Contains(list, s)
	case []int64:
		if whole, ok := v.(int64); ok && n.args[0].typ == Int {
			return slices.Contains(list, whole)
		}
		number, ok := asNumber(v)
		return ok && slices.ContainsFunc(list, func(i int64) bool { return float64(i) == number })
	}
	return false
}

// key looks the row up in a column. Trees without types read strings as null.
func (x *explainer) key(n *node, t *Term) {
	t.Key, t.Name = n.key, x.keyName(n.key)
	switch n.typ {
	case String:
		if c := x.batch.String(n.key); c != nil {
			if s, ok := c.Value(x.row); ok {
				t.Value = s
			}
		}
		return
	case Strings:
		if c := x.batch.Set(n.key); c != nil {
			if list, ok := c.AppendValues([]string{}, x.row); ok {
				t.Value = list
			}
		}
		return
	}
	if n.key == registry.IDKey {
		t.Value = x.batch.IDs[x.row]
		return
	}
	if c := x.batch.Float(n.key); c != nil && n.typ != Int {
		if c.Valid.Get(x.row) {
			t.Value = c.Values[x.row]
		}
	} else if c := x.batch.Int(n.key); c != nil {
		if c.Valid.Get(x.row) {
			t.Value = c.Values[x.row]
		}
	} else if c := x.batch.Bool(n.key); c != nil && n.typ != Int && c.Valid.Get(x.row) {
		t.Value = c.Values.Get(x.row)
	}
}

func (x *explainer) keyName(id registry.KeyID) string {
	if x.registry != nil {
		if key, ok := x.registry.Key(id); ok {
			return key.Name
		}
	}
	return ""
}

// param looks a parameter up. Trees without types read strings as null.
func (x *explainer) param(n *node, t *Term) {
	t.Param = n.param
	if x.registry != nil {
		if param, ok := x.registry.Param(n.param); ok {
			t.Name = param.Name
		}
	}
	var v any
	ok := false
	switch n.typ {
	case Int:
		v, ok = x.params.Int(n.param)
	case String:
		v, ok = x.params.String(n.param)
	case Ints:
		v, ok = x.params.IntList(n.param)
	case Strings:
		v, ok = x.params.StringList(n.param)
	default:
		if v, ok = x.params.Bool(n.param); !ok {
			v, ok = x.params.Float(n.param)
		}
	}
	if ok {
		t.Value = v
	}
}

func (x *explainer) in(n *node, t *Term) {
	lhs := *n.args[0]
	if len(n.list.texts) > 0 && lhs.op.code == opKey {
		lhs.typ = String
	}
	x.part(t, &lhs)
	v := t.Terms[0].Value
	switch s, isString := v.(string); {
	case n.list.fails:
		t.Fault = ErrListOperand.Error()
	case isString:
		_, t.Value = n.list.texts[s]
	case v == nil || len(n.list.numbers) == 0:
		t.Value = false
	case lhs.typ == Int:
		t.Value = slices.Contains(n.list.wholes, v.(int64))
	default:
		number, _ := asNumber(v)
		t.Value = slices.Contains(n.list.numbers, number)
	}
}

func (x *explainer) regex(n *node, t *Term) {
	column := Term{Op: "key_ref"}
	x.key(&node{key: n.key, typ: String}, &column)
	t.Key, t.Terms, t.Value = n.key, []Term{column}, false
	s, ok := column.Value.(string)
	if !ok {
		return
	}
	m, err := n.pattern.matcher(x.params)
	if err != nil {
		t.Value, t.Fault = nil, err.Error()
		return
	}
	t.Value, _ = m.match(nil, s)
}
