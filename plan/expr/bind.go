package expr

import (
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// bindKind says how an instruction gets its value for one batch and one request.
type bindKind uint8

const (
	bindNull    bindKind = iota // null for all rows
	bindScalar                  // the same value for all rows
	bindIDs                     // the ids
	bindColumn                  // a column as it stands
	bindInts                    // a column of integers
	bindBools                   // a column of truth values
	bindCompute                 // to be computed row by row
)

// A binding is the value of an instruction for one batch and one request.
type binding struct {
	kind bindKind
	null bool // bindColumn, bindInts, bindBools: some row may be null
	// at is the instruction that computes the value (bindCompute), or that names the column (bindInts, bindBools).
	// Such columns are looked up again for each chunk: they are rare, and a larger binding would cost every
	// expression.
	at     int32
	value  float64             // bindScalar
	column *rowset.FloatColumn // bindColumn
}

// neverNull reports whether no row can be null.
func (b *binding) neverNull() bool {
	switch b.kind {
	case bindNull, bindCompute:
		return false
	}
	return !b.null
}

// bind evaluates every instruction as far as possible without looking at rows.
func bind(p []instruction, bound []binding, batch *rowset.Batch, params *Params) {
	for i := range p {
		in := &p[i]
		out := &bound[i]
		switch in.op {
		case opConst:
			*out = binding{kind: bindScalar, value: in.value}
		case opNull:
			*out = binding{kind: bindNull}
		case opKey:
			*out = bindKey(in.key, int32(i), batch)
		case opParam:
			*out = scalarOrNull(params.number(in.param))
		case opNow:
			*out = scalarOrNull(params.Now())
		case opIf, opProbe, opHash, opVectors, opTable, opLength:
			*out = binding{kind: bindCompute, at: int32(i)}
		case opCoalesce:
			a, b := &bound[in.a], &bound[in.b]
			switch {
			case a.neverNull() || b.kind == bindNull:
				*out = *a
			case a.kind == bindNull:
				*out = *b
			default:
				*out = binding{kind: bindCompute, at: int32(i)}
			}
		default:
			*out = bindOperation(in, int32(i), bound)
		}
	}
}

func scalarOrNull(value float64, ok bool) binding {
	if !ok {
		return binding{kind: bindNull}
	}
	return binding{kind: bindScalar, value: value}
}

// bindOperation binds an operation that is null if one of its operands is.
func bindOperation(in *instruction, at int32, bound []binding) binding {
	operands, scalars := [...]int32{in.a, in.b, in.c, in.d}, true
	n := len(in.of.Operands)
	if in.op == opClock {
		n = 1 // The zone is part of the instruction.
	}
	for _, operand := range operands[:n] {
		switch bound[operand].kind {
		case bindNull:
			return binding{kind: bindNull}
		case bindScalar:
		default:
			scalars = false
		}
	}
	if !scalars {
		return binding{kind: bindCompute, at: at}
	}
	// A row function ignores operands that its operator does not have.
	a, b, c := bound[in.a].value, bound[in.b].value, bound[in.c].value
	var value float64
	switch {
	case in.op == opClock:
		value = in.of.at(a, in.zone)
	case in.of.four != nil:
		value = in.of.four(a, b, c, bound[in.d].value)
	default:
		value = in.of.row(a, b, c)
	}
	return scalarOrNull(value, !in.checked || isFinite(value))
}

// bindKey binds a column of numbers, which instruction at names. A string or a set is null.
func bindKey(key registry.KeyID, at int32, batch *rowset.Batch) binding {
	if key == registry.IDKey {
		return binding{kind: bindIDs}
	}
	if c := batch.Float(key); c != nil {
		return binding{kind: bindColumn, null: c.Valid != nil, column: c}
	}
	if c := batch.Int(key); c != nil {
		return binding{kind: bindInts, null: c.Valid != nil, at: at}
	}
	if c := batch.Bool(key); c != nil {
		return binding{kind: bindBools, null: c.Valid != nil, at: at}
	}
	return binding{kind: bindNull}
}
