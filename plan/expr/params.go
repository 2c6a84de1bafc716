package expr

import (
	"slices"

	"github.com/rankd/rankd/registry"
)

// Params are the parameter values that one request sets. Immutable once
// built; any goroutine. A zero or nil Params has no values: all parameters read
// as null. An explicit null is the same as unset.
type Params struct {
	floats  []floatParam
	strings []stringParam
}

type floatParam struct {
	id    registry.ParamID
	value float64
}

type stringParam struct {
	id    registry.ParamID
	value string
}

// SetFloat sets a parameter while the Params are being built. Setting it again
// replaces the value.
func (p *Params) SetFloat(id registry.ParamID, v float64) {
	p.Unset(id)
	p.floats = append(p.floats, floatParam{id, v})
}

// SetString sets a parameter while the Params are being built. Setting it
// again replaces the value.
func (p *Params) SetString(id registry.ParamID, v string) {
	p.Unset(id)
	p.strings = append(p.strings, stringParam{id, v})
}

// Clone returns a copy that can be changed without changing p.
func (p Params) Clone() Params {
	return Params{floats: slices.Clone(p.floats), strings: slices.Clone(p.strings)}
}

// Unset makes a parameter null again while the Params are being built.
func (p *Params) Unset(id registry.ParamID) {
	p.floats = slices.DeleteFunc(p.floats, func(f floatParam) bool { return f.id == id })
	p.strings = slices.DeleteFunc(p.strings, func(s stringParam) bool { return s.id == id })
}

// Float returns the value of a float or int parameter. It returns false if the
// parameter is null or of another type.
func (p *Params) Float(id registry.ParamID) (float64, bool) {
	if p == nil {
		return 0, false
	}
	for i := range p.floats {
		if p.floats[i].id == id {
			return p.floats[i].value, true
		}
	}
	return 0, false
}

// String returns the value of a string parameter. It returns false if the
// parameter is null or of another type.
func (p *Params) String(id registry.ParamID) (string, bool) {
	if p == nil {
		return "", false
	}
	for i := range p.strings {
		if p.strings[i].id == id {
			return p.strings[i].value, true
		}
	}
	return "", false
}
