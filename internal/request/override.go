package request

import (
	"fmt"
	"maps"
	"slices"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
)

// values returns a copy of base with these values set; a nil value means null. It applies the rules of Parse to Go
// values. A number may have any integer or float type, or be a json.Number; a list is a slice. The error names the
// alphabetically first value that breaks a rule.
func (s *setter) values(base expr.Params, values map[string]any, reg *registry.Registry) (expr.Params, error) {
	params := base.Clone()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		p, err := s.param(reg, name)
		if err != nil {
			return expr.Params{}, err
		}
		v, err := documentValue(values[name])
		if err != nil {
			return expr.Params{}, fmt.Errorf("%s %s %w", s.noun, errtext.Quote(name), err)
		}
		if err := s.set(&params, p, &v); err != nil {
			return expr.Params{}, err
		}
	}
	return params, nil
}
