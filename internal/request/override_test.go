package request

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
)

func TestOverride(t *testing.T) {
	reg, err := registry.Default("test")
	require.NoError(t, err)
	for _, tt := range []struct {
		name   string
		values map[string]any
		fault  string // empty: accepted
	}{
		{"Float", map[string]any{"weight": 0.5}, ""},
		{"FloatFromInt", map[string]any{"weight": 3}, ""},
		{"FloatFromUint8", map[string]any{"weight": uint8(3)}, ""},
		{"FloatFromFloat32", map[string]any{"weight": float32(3)}, ""},
		{"String", map[string]any{"blocklist_regex": "x"}, ""},
		{"NullableNull", map[string]any{"blocklist_regex": nil}, ""},
		{"Unknown", map[string]any{"wieght": 1}, `unknown parameter "wieght"`},
		{"FirstByName", map[string]any{"z": 1, "a": 1}, `unknown parameter "a"`},
		{"NaN", map[string]any{"weight": math.NaN()}, `parameter "weight" must be a finite number, got NaN`},
		{"Infinity", map[string]any{"weight": math.Inf(1)}, `parameter "weight" must be a finite number, got +Inf`},
		{"StringForFloat", map[string]any{"weight": "1"}, `parameter "weight" must be a number, got "1"`},
		{"NumberForString", map[string]any{"blocklist_regex": 7}, `parameter "blocklist_regex" must be a string, got the integer 7`},
		{"NullForFloat", map[string]any{"weight": nil}, `parameter "weight" must not be null`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := byOverride.values(expr.Params{}, tt.values, reg)
			if tt.fault == "" {
				assert.NoError(t, err)
			} else {
				assert.EqualError(t, err, tt.fault)
			}
		})
	}
}

func TestOverrideLeavesItsBaseAlone(t *testing.T) {
	reg, err := registry.Default("test")
	require.NoError(t, err)
	weight, _ := reg.ParamByName("weight")
	pattern, _ := reg.ParamByName("blocklist_regex")
	var base expr.Params
	base.SetFloat(weight.ID, 1)
	base.SetString(pattern.ID, "x")
	over, err := byOverride.values(base, map[string]any{"weight": 2, "blocklist_regex": nil}, reg)
	require.NoError(t, err)

	got, _ := base.Float(weight.ID)
	assert.Equal(t, 1.0, got)
	_, ok := base.String(pattern.ID)
	assert.True(t, ok)
	got, _ = over.Float(weight.ID)
	assert.Equal(t, 2.0, got)
	_, ok = over.String(pattern.ID)
	assert.False(t, ok)
}
