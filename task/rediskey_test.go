package task

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
)

// contextRegistry has one parameter of each type.
func contextRegistry() *registry.Registry {
	params := ""
	for i, p := range [][2]string{{"hour", "int"}, {"country", "string"}, {"member", "bool"}, {"seen", "int_list"}} {
		params += registrytest.Param(i+1, p[0], p[1], registrytest.Nullable, "context = true")
	}
	return registrytest.Tables{Keys: registrytest.ID, Params: params}.Load()
}

func TestRedisKey(t *testing.T) {
	reg := contextRegistry()
	var full expr.Params
	full.SetInt(1, -1<<63)
	full.SetString(2, "{id}:DE")
	full.SetBool(3, true)
	var other expr.Params
	other.SetBool(3, false)
	for _, tt := range []struct {
		template string
		params   *expr.Params
		want     string // for id -5; "": there is no key
	}{
		{"top", nil, "top"},
		{"inbox:{user}", nil, "inbox:42"},
		{"sim:{id}", nil, "sim:-5"},
		{"{id}{user}", nil, "-542"},
		{"a:{user}:{id}:b", nil, "a:42:-5:b"},
		{"{{u{user}}}:{id}", nil, "{u42}:-5"},
		{"h:{hour}", &full, "h:-9223372036854775808"},
		{"p:{country}:{id}:{member}", &full, "p:{id}:DE:-5:1"},
		{"m:{member}", &other, "m:0"},
		{"h:{hour}", &other, ""},
		{"{id}:{hour}", &other, ""},
		{"p:{country}", nil, ""},
	} {
		template, err := plan.ParseKeyTemplate(tt.template, reg, true)
		require.NoError(t, err, tt.template)
		c := &Ctx{UserID: 42, Registry: reg, Params: tt.params}
		key, err := c.RedisKey(template)
		if tt.want == "" {
			var missing *expr.ParamError
			require.ErrorAs(t, err, &missing, tt.template)
			assert.ErrorIs(t, err, ErrInvalid)
			assert.ErrorContains(t, err, "there is no value, and a key template of the plan needs one")
			continue
		}
		require.NoError(t, err, tt.template)
		assert.Equal(t, "x"+tt.want, string(key.Append([]byte("x"), -5)), tt.template)
	}
	_, err := plan.ParseKeyTemplate("s:{seen}", reg, false)
	assert.ErrorContains(t, err, "{seen} has type int_list")
}

func TestRedisKeyBoundsTexts(t *testing.T) {
	reg := contextRegistry()
	template, err := plan.ParseKeyTemplate("p:{country}", reg, false)
	require.NoError(t, err)
	var params expr.Params
	c := &Ctx{Registry: reg, Params: &params}
	params.SetString(2, strings.Repeat("x", 512))
	_, err = c.RedisKey(template)
	require.NoError(t, err)
	params.SetString(2, strings.Repeat("x", 513))
	_, err = c.RedisKey(template)
	assert.ErrorIs(t, err, ErrInvalid)
	assert.EqualError(t, err, "the value has 513 bytes, and a Redis key takes 512 at most")
}

// A template of a single literal costs no allocation.
func TestRedisKeyAllocatesNothing(t *testing.T) {
	template, err := plan.ParseKeyTemplate("sim:{id}:x", contextRegistry(), false)
	require.NoError(t, err)
	c, dst := new(Ctx), make([]byte, 0, 64)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		key, _ := c.RedisKey(template)
		dst = key.Append(dst[:0], 7)
	}))
}
