package expr

import (
	"errors"
	"sync"

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
	Fault string           // why this part, or one below it, has no value
}

// Culprit returns the smallest part of a false predicate that by itself made it false.
func (t *Term) Culprit() *Term {
	for t.Op == "and" {
		t = &t.Terms[len(t.Terms)-1] // the one before is true
	}
	return t
}

// A source is what an expression or a predicate was compiled from. Immutable, except code with probes that the first
// explanation compiles. Any goroutine.
type source struct {
	tree     *node // as the artifact has it
	registry *registry.Registry
	keys     []registry.KeyID
	params   []registry.ParamID
	textIDs  bool // it compares the id with texts

	once   sync.Once
	probed compiler // the tree compiled as it stands, with a probe after each part
	root   int32
}

// A part is the place of a tree's node in the code. Immutable; any goroutine.
type part struct {
	leaf bool
	at   int32 // the leaf, the instruction or the test
	note int32 // else: which note the probe takes
}

// A note is what a probe saw: the value of its part for the one row. One goroutine at a time.
type note struct {
	reached bool
	null    bool
	number  float64 // of an expression
	truth   bool    // of a predicate
	err     error   // of a predicate
}

// part records the place of a node in the code, and returns the number of its note.
func (c *compiler) part(n *node, at int32) int32 {
	number := int32(len(c.parts)) // leaves have a number, too, and no note
	c.parts[n] = part{at: at, note: number}
	return number
}

// TextIDs reports whether the code compares the id with texts.
func (s *source) TextIDs() bool { return s.textIDs }

// Keys returns the keys that the code reads, ascending. registry.IDKey stands for the id, unless the code only compares it with texts.
// Callers must not change the slice.
func (s *source) Keys() []registry.KeyID { return s.keys }

// Params returns the parameters that the code reads, ascending. Callers must not change the slice.
func (s *source) Params() []registry.ParamID { return s.params }

// Explain returns the value for an active row of in, or true or false for a predicate, and how it was computed. pos
// is the row's position. It runs the code, with probes, only for this row, so it is not for many rows.
func (s *source) Explain(in rowset.RowSet, pos int, params *Params) Term {
	s.once.Do(func() {
		s.probed.parts = make(map[*node]part)
		switch {
		case s.tree.op.Makes == Predicate:
			s.root = s.probed.pred(s.tree, false)
		case s.tree.typ == String:
			s.root = s.probed.leaf(s.tree, String)
		default:
			s.root = s.probed.number(s.tree)
		}
	})
	x := explanation{source: s, evaluator: newEvaluator(s.probed.code), row: int(in.Row(pos))}
	x.notes = make([]note, len(s.probed.parts))
	x.begin(nil, rowset.RowSet{Batch: in.Batch, Rows: []int32{int32(x.row)}, N: 1}, params)
	one := chunk{n: 1, rows: []int32{int32(x.row)}}
	switch {
	case s.tree.op.Makes == Predicate:
		all, out := fullMask(1), mask{}
		_ = x.test(s.root, &one, &all, &out, 0) // the probes have noted it
	case s.tree.typ != String: // that is a leaf
		x.eval(s.root, &one, x.reg(0), 1)
	}
	t, _ := x.term(s.tree)
	return t
}

// An explanation reads the notes of a run. One goroutine at a time.
type explanation struct {
	evaluator
	source *source
	row    int // of the batch
}

// term returns the value of a node, and false if the run has skipped it.
func (x *explanation) term(n *node) (Term, bool) {
	t := Term{Op: n.op.Name, Name: n.op.Cmp, Key: n.key, Param: n.param}
	if reg := x.source.registry; reg != nil && n.op.code == opKey {
		key, _ := reg.Key(n.key)
		t.Name = key.Name
	} else if reg != nil && n.op.code == opParam {
		param, _ := reg.Param(n.param)
		t.Name = param.Name
	}
	part, compiled := x.source.probed.parts[n]
	switch {
	case !compiled: // the literal null, with which something is compared, or the name of a zone
		if n.op.code == opText {
			t.Value = n.text
		}
		return t, true
	case part.leaf:
		t.Value = x.leafValue(&x.boundLeaves[part.at])
		if n.isText() {
			t.Terms = x.textTerms(n)
		}
		return t, true
	}
	seen := &x.notes[part.note]
	if !seen.reached {
		return t, false
	}
	args := n.args
	if n.op.code == opHash {
		args = args[len(args)-len(n.op.Operands):] // without the id of random
	}
	for _, arg := range args {
		if operand, ok := x.term(arg); ok {
			t.Terms = append(t.Terms, operand)
		}
	}
	var failed *EvalError
	switch {
	case errors.As(seen.err, &failed):
		t.Fault = failed.Err.Error()
	case n.op.Makes == Predicate:
		t.Value = seen.truth
	case !seen.null:
		t.Value = x.value(n, part.at, &t, seen.number)
	}
	return t, true
}

// textTerms returns the operands of an operator that makes a string, without those that it ignores.
func (x *explanation) textTerms(n *node) (terms []Term) {
	for i, arg := range n.args {
		switch {
		case n.op.code == opCoalesce && i == 1 && terms[0].Value != nil,
			n.op.code == opIf && (i == 1 && terms[0].Value == false || i == 2 && terms[0].Value == true):
			continue
		}
		if operand, ok := x.term(arg); ok {
			terms = append(terms, operand)
		}
	}
	return terms
}

// value returns a number as it is in a column, in the request or in the tree, even if the code reads it as a double.
func (x *explanation) value(n *node, at int32, t *Term, number float64) any {
	switch n.op.code {
	case opConst:
		if n.typ == Int {
			return n.whole
		}
	case opKey:
		switch x.bound[at].kind {
		case bindIDs:
			return x.rows.Batch.IDs[x.row]
		case bindInts:
			return x.rows.Batch.Int(n.key).Values[x.row]
		case bindBools:
			return x.rows.Batch.Bool(n.key).Values.Get(x.row)
		}
	case opParam:
		if truth, ok := x.params.Bool(n.param); ok {
			return truth
		}
		if whole, ok := x.params.Int(n.param); ok && n.typ == Int {
			return whole
		}
	case opCoalesce, opIf: // what they choose comes last
		return t.Terms[len(t.Terms)-1].Value
	}
	return number
}

// leafValue returns the value of a leaf.
func (x *explanation) leafValue(b *leafBinding) any {
	switch {
	case b.kind == bindScalar:
		return b.value.value()
	case b.kind == bindIDs:
		return x.rows.Batch.IDs[x.row]
	case b.kind == bindInts && b.ints.Valid.Get(x.row):
		return b.ints.Values[x.row]
	case b.strings != nil:
		if s, ok := b.strings.Value(x.row); ok {
			return s
		}
	case b.vectors != nil:
		if v, ok := b.vectors.Value(x.row); ok {
			return vectorText(v)
		}
	case b.sets != nil:
		if members, ok := b.sets.AppendValues([]string{}, x.row); ok {
			return members
		}
	}
	return nil
}
