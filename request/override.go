package request

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/rankd/rankd/internal/excerpt"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
)

// Override returns a copy of base with these parameters set; a nil value makes one null. It
// applies the rules of Parse to Go values. A Float takes any finite number, an Int an integral
// number, a String a string, a Bool a bool, and a nullable parameter nil. Numbers may have any
// integer or float type. The error names the alphabetically first parameter that breaks a rule.
// Any goroutine.
func Override(base expr.Params, values map[string]any, reg *registry.Registry) (expr.Params, error) {
	params := base.Clone()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		p, ok := reg.ParamByName(name)
		if !ok {
			return expr.Params{}, fmt.Errorf("unknown parameter %s", excerpt.Quote(name))
		}
		if err := setValue(&params, p, values[name]); err != nil {
			return expr.Params{}, fmt.Errorf("parameter %q %w", p.Name, err)
		}
	}
	return params, nil
}

func setValue(params *expr.Params, p *registry.Param, value any) error {
	if value == nil {
		if !p.Nullable {
			return fmt.Errorf("must not be null")
		}
		params.Unset(p.ID)
		return nil
	}
	number, isNumber := toFloat(value)
	switch p.Type {
	case registry.Float:
		if !isNumber || math.IsInf(number, 0) || math.IsNaN(number) {
			return fmt.Errorf("must be a finite number, got %s", describeValue(value))
		}
		params.SetFloat(p.ID, number)
	case registry.Int:
		if !isNumber || number != math.Trunc(number) || math.IsInf(number, 0) {
			return fmt.Errorf("must be an integer, got %s", describeValue(value))
		}
		params.SetFloat(p.ID, number)
	case registry.String:
		s, ok := value.(string)
		if !ok {
			return fmt.Errorf("must be a string, got %s", describeValue(value))
		}
		params.SetString(p.ID, s)
	case registry.Bool:
		if _, ok := value.(bool); !ok {
			return fmt.Errorf("must be a bool, got %s", describeValue(value))
		}
	default:
		return fmt.Errorf("cannot be overridden")
	}
	return nil
}

// toFloat converts a number of any Go type.
func toFloat(value any) (float64, bool) {
	switch v := reflect.ValueOf(value); {
	case v.CanFloat():
		return v.Float(), true
	case v.CanInt():
		return float64(v.Int()), true
	case v.CanUint():
		return float64(v.Uint()), true
	default:
		return 0, false
	}
}

// describeValue shows a number, and names the type of any other value.
func describeValue(value any) string {
	if _, ok := toFloat(value); ok {
		return fmt.Sprint(value)
	}
	return fmt.Sprintf("%T", value)
}
