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
	bindCompute                 // to be computed row by row
)

// A binding is the value of an instruction for one batch and one request.
type binding struct {
	kind   bindKind
	at     int32   // bindCompute: the instruction that computes it
	value  float64 // bindScalar
	column *rowset.FloatColumn
}

// neverNull reports whether no row can be null.
func (b *binding) neverNull() bool {
	switch b.kind {
	case bindScalar, bindIDs:
		return true
	case bindColumn:
		return b.column.Valid == nil
	}
	return false
}

// bind evaluates every instruction as far as possible without looking at rows.
func bind(p program, bound []binding, batch *rowset.Batch, params *Params) {
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
			if v, ok := params.Float(in.param); ok {
				*out = binding{kind: bindScalar, value: v}
			} else {
				*out = binding{kind: bindNull}
			}
		case opNeg:
			*out = binding{kind: bindCompute, at: int32(i)}
			switch a := &bound[in.a]; a.kind {
			case bindNull:
				*out = *a
			case bindScalar:
				*out = binding{kind: bindScalar, value: -a.value}
			}
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
			a, b := &bound[in.a], &bound[in.b]
			switch {
			case a.kind == bindNull || b.kind == bindNull:
				*out = binding{kind: bindNull}
			case a.kind == bindScalar && b.kind == bindScalar:
				*out = binding{kind: bindScalar, value: arithmetic(in.op, a.value, b.value)}
			default:
				*out = binding{kind: bindCompute, at: int32(i)}
			}
		}
	}
}

func bindKey(key registry.KeyID, batch *rowset.Batch) binding {
	if key == registry.IDKey {
		return binding{kind: bindIDs}
	}
	if c := batch.Float(key); c != nil {
		return binding{kind: bindColumn, column: c}
	}
	return binding{kind: bindNull}
}
