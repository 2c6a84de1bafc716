package request

import (
	"fmt"
	"math"
	"strconv"

	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
)

// AppendParams appends the values of all parameters as a JSON object, by name: what ReadParams reads.
func AppendParams(dst []byte, p *expr.Params, reg *registry.Registry) []byte {
	dst = append(dst, '{')
	n := 0
	for _, param := range reg.Params() {
		if !p.Has(param.ID) {
			continue
		}
		dst = jsondoc.AppendName(dst, n, param.Name)
		n++
		switch param.Type {
		case registry.Float:
			v, _ := p.Float(param.ID)
			dst = jsondoc.AppendFloat(dst, v)
		case registry.Int:
			v, _ := p.Int(param.ID)
			dst = strconv.AppendInt(dst, v, 10)
		case registry.Bool:
			v, _ := p.Bool(param.ID)
			dst = strconv.AppendBool(dst, v)
		case registry.String:
			v, _ := p.String(param.ID)
			dst = jsondoc.AppendString(dst, v)
		case registry.IntList:
			v, _ := p.IntList(param.ID)
			dst = jsondoc.AppendInts(dst, v)
		case registry.StringList:
			v, _ := p.StringList(param.ID)
			dst = jsondoc.AppendStrings(dst, v)
		case registry.FloatList:
			v, _ := p.FloatList(param.ID)
			dst = appendFloats(dst, v)
		case registry.Vector:
			v, _ := p.Vector(param.ID)
			wide := make([]float64, len(v))
			for i, x := range v {
				wide[i] = float64(x)
			}
			dst = appendFloats(dst, wide)
		}
	}
	return append(dst, '}')
}

// appendFloats appends a list in which NaN stands for null.
func appendFloats(dst []byte, list []float64) []byte {
	dst = append(dst, '[')
	for i, v := range list {
		if dst = jsondoc.AppendComma(dst, i); math.IsNaN(v) {
			dst = append(dst, "null"...)
		} else {
			dst = jsondoc.AppendFloat(dst, v)
		}
	}
	return append(dst, ']')
}

// byRecord sets the parameters of a recorded request, whoever had set them.
var byRecord = setter{member: "params", noun: "recorded parameter", code: CodeInvalid, allows: func(*registry.Param) bool { return true }}

// ReadParams returns the parameters of a recorded request: all that have a value.
func ReadParams(doc []byte, reg *registry.Registry) (p expr.Params, err error) {
	v, err := jsondoc.Parse(doc)
	if err == nil && v.Kind != jsondoc.Object {
		err = fmt.Errorf("the recorded parameters are %s, not an object", v.Describe())
	}
	if err != nil {
		return expr.Params{}, err
	}
	for i := range v.Members {
		m := &v.Members[i]
		param, err := byRecord.param(reg, m.Name)
		if err == nil {
			err = byRecord.set(&p, param, &m.Value)
		}
		if err != nil {
			return expr.Params{}, err
		}
	}
	return p, nil
}

// SetParams gives r all its parameters, as if a document had set them.
func (r *Request) SetParams(p expr.Params) { r.parsed = p }
