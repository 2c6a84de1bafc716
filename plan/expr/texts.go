package expr

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// TextMax is the longest string that an expression makes, in bytes. A longer one is null.
const TextMax = 16 << 10

// isText reports whether an operator makes a string of others.
func (n *node) isText() bool {
	switch n.op.code {
	case opConcat, opLower:
		return true
	case opIf, opCoalesce:
		return n.typ == String
	}
	return false
}

// text appends the leaf of an operator that makes a string. A leaf is computed before any row is looked at, after those that it reads.
func (c *compiler) text(n *node) int32 {
	l := leaf{op: n.op.code, typ: String, computed: true}
	switch args := n.args; l.op {
	case opIf:
		l.test = c.pred(args[0], false)
		l.x, l.y = c.textOperand(args[1]), c.textOperand(args[2])
	case opLower:
		l.x = c.textOperand(args[0])
	default:
		l.x, l.y = c.textOperand(args[0]), c.textOperand(args[1])
	}
	l.tests = len(c.tests)
	return c.addLeaf(n, l)
}

// textOperand returns the leaf of a string, or of the text of a number.
func (c *compiler) textOperand(n *node) int32 {
	switch n.typ {
	case String:
		return c.leaf(n, String)
	case Int:
		l := leaf{op: opCompute, typ: String, computed: true, exact: true, x: c.leaf(n, Int), tests: len(c.tests)}
		return c.addLeaf(nil, l)
	}
	return c.addLeaf(nil, leaf{op: opCompute, typ: String, computed: true, x: c.number(n), tests: len(c.tests)})
}

// bindTexts computes the leaves that make strings, each for the active rows of in.
func (ev *evaluator) bindTexts(in rowset.RowSet) {
	for i := range ev.code.leaves {
		if l := &ev.code.leaves[i]; l.computed && ev.failed == nil {
			ev.bindTests(l.tests)
			ev.boundLeaves[i] = ev.computeText(l, in)
		}
	}
}

// computeText computes a leaf. Those that it reads are bound.
func (ev *evaluator) computeText(l *leaf, in rowset.RowSet) leafBinding {
	of := func(at int32) textInput {
		b := &ev.boundLeaves[at]
		if ev.code.leaves[at].text && ev.params.IDs() == nil { // The ids of this request are integers.
			digits := ev.textOfInts(&leafBinding{kind: bindIDs}, in)
			b = &digits
		}
		return textInput{leafBinding: b}
	}
	switch {
	case l.op == opCompute && !l.exact:
		return ev.textOfNumbers(l.x, in)
	case l.op == opIf:
		return ev.chooseText(l.test, of(l.x), of(l.y), in)
	case l.op == opCompute && ev.boundLeaves[l.x].kind == bindNull:
		return leafBinding{kind: bindNull}
	case l.op == opCompute:
		return ev.textOfInts(&ev.boundLeaves[l.x], in)
	}
	x := of(l.x)
	switch {
	case l.op == opCoalesce:
		y := of(l.y)
		if x.kind != bindColumn {
			if x.kind == bindNull {
				x = y
			}
			return *x.leafBinding
		}
		return ev.perRow(in, func(row int) (string, bool) {
			if s, ok := x.at(row); ok {
				return s, true
			}
			return y.at(row)
		})
	case x.kind == bindNull:
		return leafBinding{kind: bindNull}
	case l.op == opLower:
		lower := cases.Lower(language.Und)
		return ev.mapText(x, in, func(s string) string { return lowered(&lower, s) })
	}
	y := of(l.y)
	switch {
	case y.kind == bindNull:
		return leafBinding{kind: bindNull}
	case y.kind == bindScalar:
		return ev.mapText(x, in, func(s string) string { return s + y.value.text })
	case x.kind == bindScalar:
		return ev.mapText(y, in, func(s string) string { return x.value.text + s })
	}
	return ev.perRow(in, func(row int) (string, bool) {
		left, ok := x.at(row)
		right, also := y.at(row)
		if len(left)+len(right) > TextMax {
			return "", false
		}
		return left + right, ok && also
	})
}

// A textInput is a bound leaf of type String.
type textInput struct{ *leafBinding }

// at returns the string of a batch row, or false for null.
func (x textInput) at(row int) (string, bool) {
	switch x.kind {
	case bindScalar:
		return x.value.text, true
	case bindColumn:
		return x.strings.Value(row)
	}
	return "", false
}

// mapText binds what of makes of each string of x, which is not null. It looks at each distinct one of the active rows once.
func (ev *evaluator) mapText(x textInput, in rowset.RowSet, of func(string) string) leafBinding {
	if x.kind == bindScalar {
		return textScalar(of(x.value.text))
	}
	out := newTexts(in.Batch.Len())
	from, codes := x.strings, x.strings.Codes(nil, in)
	places := make([]int32, len(from.Dict.Values)) // in out by code, plus 1; 0: no row has asked
	ev.eachRow(in, func(row int) {
		code := rowset.CodeAt(codes, from.Places[row])
		if code < 0 {
			return
		}
		if places[code] == 0 {
			if text := of(from.Dict.Values[code]); len(text) <= TextMax {
				places[code] = out.place(text) + 1
			}
		}
		out.Places[row] = places[code] - 1
	})
	return out.binding()
}

// perRow binds a string for each active row.
func (ev *evaluator) perRow(in rowset.RowSet, of func(row int) (string, bool)) leafBinding {
	out := newTexts(in.Batch.Len())
	ev.eachRow(in, func(row int) {
		if s, ok := of(row); ok {
			out.Places[row] = out.place(s)
		}
	})
	return out.binding()
}

// eachRow calls do for each active row, until the evaluation is to stop.
func (ev *evaluator) eachRow(in rowset.RowSet, do func(row int)) {
	ev.eachChunk(in, func(c *chunk) {
		for pos := range c.n {
			do(int(c.row(pos)))
		}
	})
}

func (ev *evaluator) eachChunk(in rowset.RowSet, do func(*chunk)) {
	todo := chunks{in: in, stop: ev.stop}
	var c chunk
	for todo.advance(&c) && ev.failed == nil {
		do(&c)
	}
	if todo.stopped {
		ev.failed = rowset.ErrStopped
	}
}

// textOfInts binds the digits of integers, which are not null for all rows.
func (ev *evaluator) textOfInts(x *leafBinding, in rowset.RowSet) leafBinding {
	if x.kind == bindScalar {
		return textScalar(strconv.FormatInt(x.whole(), 10))
	}
	return ev.perRow(in, func(row int) (string, bool) {
		if x.kind == bindIDs {
			return strconv.FormatInt(in.Batch.IDs[row], 10), true
		}
		v, ok := x.ints.Value(row)
		return strconv.FormatInt(v, 10), ok
	})
}

// textOfNumbers binds the texts of the numbers of an instruction.
func (ev *evaluator) textOfNumbers(at int32, in rowset.RowSet) leafBinding {
	switch b := &ev.bound[at]; b.kind {
	case bindNull:
		return leafBinding{kind: bindNull}
	case bindScalar:
		if !isFinite(b.value) {
			return leafBinding{kind: bindNull}
		}
		return textScalar(string(appendNumber(nil, b.value)))
	}
	out := newTexts(in.Batch.Len())
	var text []byte
	ev.eachChunk(in, func(c *chunk) {
		v := ev.eval(at, c, ev.reg(0), 1)
		for pos, x := range v.vals {
			if (v.valid == nil || rowset.Bitmap(v.valid).Get(pos)) && isFinite(x) {
				text = appendNumber(text[:0], x)
				out.Places[c.row(pos)] = out.place(string(text))
			}
		}
	})
	return out.binding()
}

// chooseText binds x where a test is true, else y.
func (ev *evaluator) chooseText(test int32, x, y textInput, in rowset.RowSet) leafBinding {
	out := newTexts(in.Batch.Len())
	ev.eachChunk(in, func(c *chunk) {
		var cond mask
		all := fullMask(c.n)
		if err := ev.test(test, c, &all, &cond, 0); err != nil {
			ev.failed = err
			return
		}
		for pos := range c.n {
			of, row := y, c.row(pos)
			if cond[pos/64]>>(uint(pos)%64)&1 == 1 {
				of = x
			}
			if s, ok := of.at(int(row)); ok {
				out.Places[row] = out.place(s)
			}
		}
	})
	return out.binding()
}

// textColumn is a column of strings that grows: each has a place of its own. One goroutine at a time.
type textColumn struct{ rowset.StringColumn }

func newTexts(rows int) *textColumn {
	t := &textColumn{rowset.StringColumn{Places: make([]int32, rows), Dict: &rowset.Dict{}}}
	for i := range t.Places {
		t.Places[i] = rowset.NullCode
	}
	return t
}

// place returns the place of a string from now on.
func (t *textColumn) place(s string) int32 {
	t.Dict.Values = append(t.Dict.Values, s)
	return int32(len(t.Dict.Values)) - 1
}

func (t *textColumn) binding() leafBinding {
	return leafBinding{kind: bindColumn, strings: &t.StringColumn}
}

// textScalar binds a string that is the same for all rows.
func textScalar(s string) leafBinding {
	if len(s) > TextMax {
		return leafBinding{kind: bindNull}
	}
	return leafBinding{kind: bindScalar, value: &param{typ: registry.String, text: s}}
}

// appendNumber appends the text of a finite number, as JavaScript's String(x) gives it.
func appendNumber(dst []byte, x float64) []byte {
	if x == 0 {
		return append(dst, '0') // minus zero, too
	}
	if abs := max(x, -x); abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(dst, x, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, x, 'e', -1, 64)
	if n := len(dst); dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') { // 1e-07
		dst = append(dst[:n-2], dst[n-1])
	}
	return dst
}

// lowered returns s in lower case, as JavaScript's toLowerCase gives it: by Unicode, whatever the language. ASCII takes a shorter way.
func lowered(c *cases.Caser, s string) string {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return c.String(s)
		}
	}
	return strings.ToLower(s)
}

// units returns the length of s in UTF-16 units, as JavaScript counts it. A byte that is not UTF-8 counts as one.
func units(s string) (n int) {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			n = i
			for _, r := range s[i:] {
				n++
				if r > 0xFFFF {
					n++
				}
			}
			return n
		}
	}
	return len(s)
}

// lengths computes an opLength.
func (ev *evaluator) lengths(in *instruction, c *chunk, dst *register) vector {
	vals, valid := dst.vals[:c.n], dst.valid[:c.words()]
	x := textInput{leafBinding: &ev.boundLeaves[in.a]}
	clear(valid)
	for pos := range vals {
		s, ok := x.at(int(c.row(pos)))
		vals[pos] = float64(units(s))
		valid[pos/64] |= bit(ok) << (uint(pos) % 64)
	}
	return vector{vals, valid}
}
