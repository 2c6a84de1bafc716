package request

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
)

// TextBytesMax bounds a string of the context, and the strings of one list together.
const TextBytesMax = 1 << 20

// A setter says who sets parameters: the context of a request or its param_overrides. Immutable.
type setter struct {
	member string // of the request
	noun   string // what the errors call one value
	code   string // of the errors
	allows func(p *registry.Param) bool
	// refusal says why the setter does not allow a parameter.
	refusal string
}

var (
	byContext = setter{
		member: "context", noun: "context member", code: CodeInvalid,
		allows:  func(p *registry.Param) bool { return p.Context },
		refusal: "is not for the context: param_overrides sets it",
	}
	byOverride = setter{
		member: "param_overrides", noun: "parameter", code: CodeInvalidParams,
		allows:  func(p *registry.Param) bool { return p.Override },
		refusal: "cannot be overridden: the context sets it",
	}
)

// param returns the parameter of that name. The error says that it may not be set, or that there is none.
func (s *setter) param(reg *registry.Registry, name string) (*registry.Param, error) {
	p, ok := reg.ParamByName(name)
	switch {
	case !ok:
		return nil, s.unknown(reg, name)
	case !s.allows(p):
		return p, fmt.Errorf("%s %s %s", s.noun, errtext.Quote(name), s.refusal)
	}
	return p, nil
}

// unknown returns the error for a name that no parameter has. It proposes a member of the context. Of the other parameters the
// caller may not know.
func (s *setter) unknown(reg *registry.Registry, name string) error {
	var known []string
	for _, p := range reg.Params() {
		if p.Context && s == &byContext {
			known = append(known, p.Name)
		}
	}
	hint := ""
	if near, ok := errtext.NearestWithin(slip(name), name, known); ok {
		hint = fmt.Sprintf("; did you mean %s?", errtext.Quote(near))
	}
	return fmt.Errorf("unknown %s %s%s", s.noun, errtext.Quote(name), hint)
}

// set sets a parameter. A null unsets it.
func (s *setter) set(params *expr.Params, p *registry.Param, v *jsondoc.Value) error {
	if err := setValue(params, p, v); err != nil {
		return fmt.Errorf("%s %s %w", s.noun, errtext.Quote(p.Name), err)
	}
	return nil
}

// setValue checks the type of a value. Its error continues after the parameter's name.
func setValue(params *expr.Params, p *registry.Param, v *jsondoc.Value) error {
	if v.Kind == jsondoc.Null {
		if !p.Nullable {
			return fmt.Errorf("must not be null")
		}
		params.Unset(p.ID)
		return nil
	}
	switch p.Type {
	case registry.Float:
		if !v.IsNumber() {
			return fmt.Errorf("must be a number, got %s", v.Describe())
		}
		params.SetFloat(p.ID, v.Float)
	case registry.Int:
		i, ok := integer(v)
		if !ok {
			return fmt.Errorf("must be an integer of 64 bits, got %s", v.Describe())
		}
		params.SetInt(p.ID, i)
	case registry.String:
		if v.Kind != jsondoc.String {
			return fmt.Errorf("must be a string, got %s", v.Describe())
		}
		if p.Context && len(v.Str) > TextBytesMax {
			return fmt.Errorf("must be a string of at most %d bytes, got %d", TextBytesMax, len(v.Str))
		}
		params.SetString(p.ID, v.Str)
	case registry.Bool:
		if v.Kind != jsondoc.Bool {
			return fmt.Errorf("must be true or false, got %s", v.Describe())
		}
		params.SetBool(p.ID, v.Bool)
	case registry.IntList, registry.FloatList, registry.StringList:
		return setList(params, p, v)
	case registry.Vector:
		return setVector(params, p, v)
	default:
		return fmt.Errorf("cannot be set")
	}
	return nil
}

func setVector(params *expr.Params, p *registry.Param, v *jsondoc.Value) error {
	if v.Kind != jsondoc.Array || len(v.Items) != p.Dims {
		have := v.Describe()
		if v.Kind == jsondoc.Array {
			have = fmt.Sprint(len(v.Items))
		}
		return fmt.Errorf("must be a list of %d numbers, got %s", p.Dims, have)
	}
	vector := make([]float32, len(v.Items))
	for i := range v.Items {
		item := &v.Items[i]
		if vector[i] = float32(item.Float); !item.IsNumber() || math.IsInf(float64(vector[i]), 0) {
			return fmt.Errorf("must be a list of numbers in the range of float32, but item %d is %s", i+1, item.Describe())
		}
	}
	params.SetVector(p.ID, vector)
	return nil
}

func setList(params *expr.Params, p *registry.Param, v *jsondoc.Value) error {
	items := map[registry.Type]string{registry.IntList: "integers", registry.FloatList: "numbers", registry.StringList: "strings"}[p.Type]
	switch {
	case v.Kind != jsondoc.Array:
		return fmt.Errorf("must be a list of %s, got %s", items, v.Describe())
	case len(v.Items) > registry.ListItemsMax:
		return fmt.Errorf("must be a list of at most %d %s, got %d", registry.ListItemsMax, items, len(v.Items))
	}
	if p.Type == registry.IntList {
		list := make([]int64, len(v.Items))
		for i := range v.Items {
			item, ok := integer(&v.Items[i])
			if !ok {
				return fmt.Errorf("must be a list of integers of 64 bits, but item %d is %s", i+1, v.Items[i].Describe())
			}
			list[i] = item
		}
		params.SetIntList(p.ID, list)
		return nil
	}
	if p.Type == registry.FloatList {
		list := make([]float64, len(v.Items))
		for i := range v.Items {
			item := &v.Items[i]
			if list[i] = item.Float; item.Kind == jsondoc.Null {
				list[i] = math.NaN()
			} else if !item.IsNumber() {
				return fmt.Errorf("must be a list of numbers, but item %d is %s", i+1, item.Describe())
			}
		}
		params.SetFloatList(p.ID, list)
		return nil
	}
	list, bytes := make([]string, len(v.Items)), 0
	for i := range v.Items {
		item := &v.Items[i]
		if item.Kind != jsondoc.String {
			return fmt.Errorf("must be a list of strings, but item %d is %s", i+1, item.Describe())
		}
		list[i] = item.Str
		bytes += len(item.Str)
	}
	if bytes > TextBytesMax {
		return fmt.Errorf("must be a list of strings of at most %d bytes together, got %d", TextBytesMax, bytes)
	}
	params.SetStringList(p.ID, list)
	return nil
}

// integer returns the value of an integral number exactly. See jsondoc.Whole for one with a point or an exponent.
func integer(v *jsondoc.Value) (int64, bool) {
	switch v.Kind {
	case jsondoc.Uint:
		return int64(v.Uint), v.Uint <= math.MaxInt64
	case jsondoc.Int:
		return v.Int, true
	case jsondoc.Float:
		return int64(v.Float), v.Whole
	}
	return 0, false
}

// documentValue returns a Go value as a JSON document would have it: nil, a bool, a string, a number of any type
// (json.Number, too), or a slice of these. The error names a value that is none of these.
func documentValue(value any) (jsondoc.Value, error) {
	if value == nil {
		return jsondoc.Value{Kind: jsondoc.Null}, nil
	}
	if number, ok := value.(json.Number); ok {
		v, err := jsondoc.Parse([]byte(number))
		if err != nil || !v.IsNumber() {
			return jsondoc.Value{}, fmt.Errorf("must be a number, got %s", errtext.Quote(string(number)))
		}
		return v, nil
	}
	switch v := reflect.ValueOf(value); {
	case v.Kind() == reflect.Bool:
		return jsondoc.Value{Kind: jsondoc.Bool, Bool: v.Bool()}, nil
	case v.Kind() == reflect.String:
		return jsondoc.Value{Kind: jsondoc.String, Str: v.String()}, nil
	case v.CanInt() && v.Int() < 0:
		return jsondoc.Value{Kind: jsondoc.Int, Int: v.Int(), Float: float64(v.Int())}, nil
	case v.CanInt():
		return jsondoc.Value{Kind: jsondoc.Uint, Uint: uint64(v.Int()), Float: float64(v.Int())}, nil
	case v.CanUint():
		return jsondoc.Value{Kind: jsondoc.Uint, Uint: v.Uint(), Float: float64(v.Uint())}, nil
	case v.CanFloat():
		f := v.Float()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return jsondoc.Value{}, fmt.Errorf("must be a finite number, got %v", f)
		}
		return jsondoc.Value{Kind: jsondoc.Float, Float: f, Whole: f == math.Trunc(f) && math.Abs(f) < 1<<53}, nil
	case v.Kind() == reflect.Slice || v.Kind() == reflect.Array:
		list := jsondoc.Value{Kind: jsondoc.Array}
		for i := range min(v.Len(), registry.ListItemsMax+1) {
			item, err := documentValue(v.Index(i).Interface())
			if err != nil {
				return jsondoc.Value{}, fmt.Errorf("%w (item %d)", err, i+1)
			}
			list.Items = append(list.Items, item)
		}
		return list, nil
	}
	return jsondoc.Value{}, fmt.Errorf("cannot be a %T", value)
}
