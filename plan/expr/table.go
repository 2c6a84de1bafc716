package expr

import (
	"fmt"
	"strconv"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/jsondoc"
)

// EntriesMax is the most entries that the operator table takes.
const EntriesMax = 4096

// entries are the values of the operator table. Immutable once built; any goroutine.
type entries struct {
	texts     map[string]float64 // of an operand that is a string
	wholes    map[int64]float64  // of an integer; an operand that may be both has both
	otherwise float64
	orNull    bool // other values are null
}

// valueOf returns the value for an integer or a string, or false for null.
func valueOf[K comparable](e *entries, values map[K]float64, x K) (float64, bool) {
	if value, ok := values[x]; ok {
		return value, true
	}
	return e.otherwise, !e.orNull
}

// entries parses the entries of a table, whose operand has been parsed.
func (p *parser) entries(v *jsondoc.Value, n *node) error {
	x, given := n.args[0], v.Get("entries")
	switch {
	case given == nil:
		return p.fail("entries is missing")
	case given.Kind != jsondoc.Object:
		return p.fail("entries: want an object, have %s", given.Describe())
	case len(given.Members) > EntriesMax:
		return p.fail("entries: %d; the limit is %d", len(given.Members), EntriesMax)
	case x.typ != Int && x.typ != String:
		return p.fail("x: want an integer or a string, have %s", p.describe(x))
	}
	p.idAs(x, String)
	n.entries = &entries{texts: make(map[string]float64), wholes: make(map[int64]float64), orNull: true}
	for i := range given.Members {
		m := &given.Members[i]
		if !m.Value.IsNumber() {
			return p.fail("entries[%s]: want a number, have %s", errtext.Quote(m.Name), m.Value.Describe())
		}
		n.entries.texts[m.Name] = m.Value.Float
		whole, err := strconv.ParseInt(m.Name, 10, 64)
		switch {
		case err == nil && fmt.Sprint(whole) == m.Name:
			n.entries.wholes[whole] = m.Value.Float
		case x.typ == Int:
			return p.fail("entries[%s]: want an integer as the name, since x is one", errtext.Quote(m.Name))
		}
	}
	switch otherwise := v.Get("default"); {
	case otherwise == nil, otherwise.Kind == jsondoc.Null:
	case otherwise.IsNumber():
		n.entries.otherwise, n.entries.orNull = otherwise.Float, false
	default:
		return p.fail("default: want a number or null, have %s", otherwise.Describe())
	}
	return nil
}

// looked computes an opTable.
func (ev *evaluator) looked(in *instruction, c *chunk, dst *register) vector {
	vals, valid := dst.vals[:c.n], dst.valid[:c.words()]
	clear(valid)
	l, b := &ev.code.leaves[in.a], &ev.boundLeaves[in.a]
	set := func(pos int, value float64, ok bool) {
		vals[pos] = value
		valid[pos/64] |= bit(ok) << (uint(pos) % 64)
	}
	kind := b.kind
	if l.text && ev.params.IDs() == nil {
		kind = bindIDs // The ids of this request are integers.
	}
	for pos := range vals {
		row := c.row(pos)
		switch kind {
		case bindScalar:
			if l.typ == String {
				value, ok := valueOf(in.entries, in.entries.texts, b.value.text)
				set(pos, value, ok)
			} else {
				value, ok := valueOf(in.entries, in.entries.wholes, b.whole())
				set(pos, value, ok)
			}
		case bindIDs:
			value, ok := valueOf(in.entries, in.entries.wholes, ev.rows.Batch.IDs[row])
			set(pos, value, ok)
		case bindInts:
			x, there := b.ints.Value(int(row))
			value, ok := valueOf(in.entries, in.entries.wholes, x)
			set(pos, value, ok && there)
		case bindColumn:
			x, there := b.strings.Value(int(row))
			value, ok := valueOf(in.entries, in.entries.texts, x)
			set(pos, value, ok && there)
		default:
			vals[pos] = 0
		}
	}
	return vector{vals, valid}
}
