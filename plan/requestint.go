package plan

import (
	"fmt"
	"math"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
)

// A RequestRule says what the values of a request must be for a node: a RequestInt, or what a task has prepared of a
// node. Immutable; any goroutine.
type RequestRule interface {
	// Check returns why the parameters of a request do not fit, or nil.
	Check(params *expr.Params) error
	// Parameter returns that on which the node depends.
	Parameter() *registry.Param
}

// Noun names a parameter as requests do.
func Noun(p *registry.Param) string {
	if p.Context {
		return "context member " + errtext.Quote(p.Name)
	}
	return "parameter " + errtext.Quote(p.Name)
}

// RequestInt is an Int parameter whose value comes with each request, within bounds that the plan states. Immutable;
// any goroutine.
type RequestInt struct {
	Param       *registry.Param // an int
	Least, Most int64           // the bounds of the value, both inclusive
	Default     int64           // the value if the request gives none; only if HasDefault
	HasDefault  bool            // otherwise each request must give the value
}

// RequestIntFields are the members of the object that stands in place of the integer.
var RequestIntFields = []ParamSchema{
	{Name: "param_id", Type: Int, Required: true, IsParam: true,
		Source: SourceRule{ParamTypes: []registry.Type{registry.Int}}, Doc: "The id of the registry's parameter, an int, that gives the value."},
	{Name: "max", Type: Int, Required: true, Doc: "The highest value that a request may give."},
	{Name: "default", Type: Int, Doc: "The value of requests that give none. Without it each request must give one."},
}

// Of returns the value in a request with these parameters. The error names the parameter if the request lacks it, or
// if its value is out of bounds.
func (r *RequestInt) Of(params *expr.Params) (int64, error) {
	v, given := params.Int(r.Param.ID)
	switch {
	case !given && r.HasDefault:
		return r.Default, nil
	case !given:
		return 0, fmt.Errorf("%s must be %d to %d, and is missing", Noun(r.Param), r.Least, r.Most)
	case v < r.Least || v > r.Most:
		return 0, fmt.Errorf("%s must be %d to %d, got %d", Noun(r.Param), r.Least, r.Most, v)
	}
	return v, nil
}

// Check implements RequestRule.
func (r *RequestInt) Check(params *expr.Params) error {
	_, err := r.Of(params)
	return err
}

// Parameter implements RequestRule.
func (r *RequestInt) Parameter() *registry.Param { return r.Param }

// requestInt reads an Int whose value each request gives.
func (r *paramReader) requestInt(schema *ParamSchema, v *jsondoc.Value, path string) *RequestInt {
	before := len(r.faults)
	fields := r.object(RequestIntFields, v, path)
	if len(r.faults) > before {
		return nil
	}
	given := &RequestInt{Least: math.MinInt64, Most: fields.Int("max"), Default: fields.Int("default"), HasDefault: fields.Given("default")}
	given.Param, _ = r.registry.Param(registry.ParamID(fields.Int("param_id")))
	if schema.Source.Min != nil {
		given.Least = *schema.Source.Min
	}
	for _, name := range []string{"max", "default"} {
		most := schema.Source.Max
		if name == "default" {
			most = &given.Most
		}
		if at := member(path, name); fields.Given(name) {
			r.report(r.refuse(at, boundsFault(schema.Source.Min, most, fields.Int(name), fmt.Sprint(fields.Int(name)))))
		}
	}
	return given
}
