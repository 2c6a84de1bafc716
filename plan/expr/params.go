package expr

import (
	"math"
	"slices"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// Params are the parameter values of one request: those of its context and those of param_overrides. Immutable once
// built; any goroutine. A zero or nil Params has no values: all parameters read as null. An explicit null is the same
// as unset. They also have what keys and expressions need of the request itself: its arrival, the user's text id, and
// the text ids of its rows.
type Params struct {
	values []param
	now    float64 // seconds since 1970; only if hasNow
	hasNow bool
	user   string // "": an integer names the user
	ids    *rowset.IDDict
}

// param is the value of one parameter.
type param struct {
	id      registry.ParamID
	typ     registry.Type
	bits    uint64    // of an Int, a Float or a Bool
	text    string    // of a String
	ints    []int64   // of an IntList
	floats  []float64 // of a FloatList
	strings []string  // of a StringList
	vector  []float32
}

// value returns the value of an integer, a string or a list, or the text of a vector.
func (p *param) value() any {
	switch p.typ {
	case registry.Int:
		return int64(p.bits)
	case registry.String:
		return p.text
	case registry.IntList:
		return p.ints
	case registry.FloatList:
		return p.floats
	case registry.Vector:
		return vectorText(p.vector)
	default:
		return p.strings
	}
}

// SetFloat sets a parameter while the Params are being built. Setting it again
// replaces the value, as with all that follow.
func (p *Params) SetFloat(id registry.ParamID, v float64) {
	p.set(param{id: id, typ: registry.Float, bits: math.Float64bits(v)})
}

// SetInt sets a parameter while the Params are being built.
func (p *Params) SetInt(id registry.ParamID, v int64) {
	p.set(param{id: id, typ: registry.Int, bits: uint64(v)})
}

// SetBool sets a parameter while the Params are being built.
func (p *Params) SetBool(id registry.ParamID, v bool) {
	bits := uint64(0)
	if v {
		bits = 1
	}
	p.set(param{id: id, typ: registry.Bool, bits: bits})
}

// SetString sets a parameter while the Params are being built.
func (p *Params) SetString(id registry.ParamID, v string) {
	p.set(param{id: id, typ: registry.String, text: v})
}

// SetIntList sets a parameter while the Params are being built. The list belongs to them from now on.
func (p *Params) SetIntList(id registry.ParamID, v []int64) {
	p.set(param{id: id, typ: registry.IntList, ints: v})
}

// SetFloatList sets a parameter while the Params are being built. NaN stands for null. The list belongs to them from now on.
func (p *Params) SetFloatList(id registry.ParamID, v []float64) {
	p.set(param{id: id, typ: registry.FloatList, floats: v})
}

// SetStringList sets a parameter while the Params are being built. The list belongs to them from now on.
func (p *Params) SetStringList(id registry.ParamID, v []string) {
	p.set(param{id: id, typ: registry.StringList, strings: v})
}

// SetVector sets a parameter while the Params are being built. The vector belongs to them from now on.
func (p *Params) SetVector(id registry.ParamID, v []float32) {
	p.set(param{id: id, typ: registry.Vector, vector: v})
}

func (p *Params) set(v param) {
	p.Unset(v.id)
	p.values = append(p.values, v)
}

// Any reports whether some parameter has a value.
func (p *Params) Any() bool { return len(p.values) > 0 }

// Clone returns a copy that can be changed without changing p. They share the lists, which never change.
func (p Params) Clone() Params {
	p.values = slices.Clone(p.values)
	return p
}

// Unset makes a parameter null again, while the Params are being built.
func (p *Params) Unset(id registry.ParamID) {
	p.values = slices.DeleteFunc(p.values, func(v param) bool { return v.id == id })
}

// get returns the value of a parameter if it has that type, or nil.
func (p *Params) get(id registry.ParamID, t registry.Type) *param {
	if p == nil {
		return nil
	}
	for i := range p.values {
		if v := &p.values[i]; v.id == id && v.typ == t {
			return v
		}
	}
	return nil
}

// Has reports whether a parameter has a value.
func (p *Params) Has(id registry.ParamID) bool {
	return p != nil && slices.ContainsFunc(p.values, func(v param) bool { return v.id == id })
}

// number returns the value of a parameter that expressions compute with: of a float, of an int as a double, or of a bool
// as 0 or 1. It returns false if the parameter is null or of another type.
func (p *Params) number(id registry.ParamID) (float64, bool) {
	if p == nil {
		return 0, false
	}
	for i := range p.values {
		v := &p.values[i]
		if v.id != id {
			continue
		}
		switch v.typ {
		case registry.Float:
			return math.Float64frombits(v.bits), true
		case registry.Int:
			return float64(int64(v.bits)), true
		case registry.Bool:
			return float64(v.bits), true
		}
		return 0, false
	}
	return 0, false
}

// Float returns the value of a float parameter, or of an int parameter as a double. It returns false if the
// parameter is null or of another type.
func (p *Params) Float(id registry.ParamID) (float64, bool) {
	if v := p.get(id, registry.Float); v != nil {
		return math.Float64frombits(v.bits), true
	}
	i, ok := p.Int(id)
	return float64(i), ok
}

// Int returns the value of an int parameter. It returns false if the parameter is null or of another type.
func (p *Params) Int(id registry.ParamID) (int64, bool) {
	if v := p.get(id, registry.Int); v != nil {
		return int64(v.bits), true
	}
	return 0, false
}

// Bool returns the value of a bool parameter. It returns false as ok if the parameter is null or of another type.
func (p *Params) Bool(id registry.ParamID) (value, ok bool) {
	if v := p.get(id, registry.Bool); v != nil {
		return v.bits != 0, true
	}
	return false, false
}

// String returns the value of a string parameter. It returns false if the
// parameter is null or of another type.
func (p *Params) String(id registry.ParamID) (string, bool) {
	if v := p.get(id, registry.String); v != nil {
		return v.text, true
	}
	return "", false
}

// IntList returns the value of an int_list parameter, in the request's order, which callers must not change. It
// returns false if the parameter is null or of another type.
func (p *Params) IntList(id registry.ParamID) ([]int64, bool) {
	if v := p.get(id, registry.IntList); v != nil {
		return v.ints, true
	}
	return nil, false
}

// FloatList returns the value of a float_list parameter, in the request's order, which callers must not change. NaN
// stands for null. It returns false if the parameter is null or of another type.
func (p *Params) FloatList(id registry.ParamID) ([]float64, bool) {
	if v := p.get(id, registry.FloatList); v != nil {
		return v.floats, true
	}
	return nil, false
}

// StringList returns the value of a string_list parameter, in the request's order, which callers must not
// change. It returns false if the parameter is null or of another type.
func (p *Params) StringList(id registry.ParamID) ([]string, bool) {
	if v := p.get(id, registry.StringList); v != nil {
		return v.strings, true
	}
	return nil, false
}

// Vector returns the value of a vector parameter, which callers must not change. It returns false if the parameter is null or of another type.
func (p *Params) Vector(id registry.ParamID) ([]float32, bool) {
	if v := p.get(id, registry.Vector); v != nil {
		return v.vector, true
	}
	return nil, false
}

// SetUser sets the id of the request's user, if that is a text, while the Params are being built.
func (p *Params) SetUser(id string) { p.user = id }

// User returns the id of the request's user, "" if that is an integer.
func (p *Params) User() string {
	if p == nil {
		return ""
	}
	return p.user
}

// SetIDs sets the dictionary of the ids of the request's rows that are texts, while the Params are being built.
func (p *Params) SetIDs(ids *rowset.IDDict) { p.ids = ids }

// IDs returns the dictionary of the ids that are texts; nil: there are none.
func (p *Params) IDs() *rowset.IDDict {
	if p == nil {
		return nil
	}
	return p.ids
}

// SetNow sets the request's arrival, in seconds since 1970-01-01 00:00 UTC, while the Params are being built.
func (p *Params) SetNow(seconds float64) { p.now, p.hasNow = seconds, true }

// Now returns the request's arrival, in seconds since 1970-01-01 00:00 UTC. It returns false if it was not set.
func (p *Params) Now() (float64, bool) {
	if p == nil {
		return 0, false
	}
	return p.now, p.hasNow
}
