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
	kind   bindKind
	at     int32   // bindCompute: the instruction that computes it
	value  float64 // bindScalar
	column *rowset.FloatColumn
	ints   *rowset.IntColumn
	bools  *rowset.BoolColumn
}

// neverNull reports whether no row can be null.
func (b *binding) neverNull() bool {
	switch b.kind {
	case bindScalar, bindIDs:
		return true
	case bindInts:
		return b.ints.Valid == nil
	case bindBools:
		return b.bools.Valid == nil
	case bindColumn:
		return b.column.Valid == nil
	}
	return false
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
			*out = bindKey(in.key, batch)
		case opParam:
			*out = bindParam(in.param, params)
		case opNow:
			*out = scalarOrNull(params.Now())
		case opIf:
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

// bindParam binds a number, or a truth value as 0 or 1.
func bindParam(id registry.ParamID, params *Params) binding {
	if truth, ok := params.Bool(id); ok {
		return binding{kind: bindScalar, value: float64(bit(truth))}
	}
	return scalarOrNull(params.Float(id))
}

func scalarOrNull(value float64, ok bool) binding {
	if !ok {
		return binding{kind: bindNull}
	}
	return binding{kind: bindScalar, value: value}
}

// bindOperation binds an operation that is null if one of its operands is.
func bindOperation(in *instruction, at int32, bound []binding) binding {
	operands, values, scalars := [...]int32{in.a, in.b, in.c}, [3]float64{}, true
	for i := range in.of.Operands {
		switch b := &bound[operands[i]]; b.kind {
		case bindNull:
			return binding{kind: bindNull}
		case bindScalar:
			values[i] = b.value
		default:
			scalars = false
		}
	}
	if !scalars {
		return binding{kind: bindCompute, at: at}
	}
	value := in.of.row(values[0], values[1], values[2])
	return scalarOrNull(value, !in.checked || isFinite(value))
}

// bindKey binds a column of numbers. A string or a set is null.
func bindKey(key registry.KeyID, batch *rowset.Batch) binding {
	if key == registry.IDKey {
		return binding{kind: bindIDs}
	}
	if c := batch.Float(key); c != nil {
		return binding{kind: bindColumn, column: c}
	}
	if c := batch.Int(key); c != nil {
		return binding{kind: bindInts, ints: c}
	}
	if c := batch.Bool(key); c != nil {
		return binding{kind: bindBools, bools: c}
	}
	return binding{kind: bindNull}
}
