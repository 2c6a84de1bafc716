package access

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/request"
)

func TestRights(t *testing.T) {
	for _, c := range []struct {
		name    string
		rules   Rules
		plans   map[string]bool
		params  map[string]bool
		granted []request.Grant
	}{
		{"nothing", Rules{}, map[string]bool{"": false, "a": false}, map[string]bool{"weight": false}, nil},
		{"all", Rules{Plans: []string{"*"}, Overrides: []string{"*"}, Grants: []request.Grant{request.GrantScheduling, request.GrantTrace, request.GrantExplain}},
			map[string]bool{"": true, "a": true}, map[string]bool{"weight": true}, []request.Grant{request.GrantScheduling, request.GrantTrace, request.GrantExplain}},
		{"patterns", Rules{Plans: []string{"feed_*", "top?", "one"}, Overrides: []string{"w[ae]ight"}, Grants: []request.Grant{request.GrantExplain}},
			map[string]bool{"feed_": true, "feed_x": true, "xfeed_": false, "top1": true, "top": false, "one": true, "ones": false, "": false},
			map[string]bool{"weight": true, "waight": true, "wight": false}, []request.Grant{request.GrantExplain}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.rules.Name = "n"
			caller, err := NewCaller(c.rules)
			require.NoError(t, err)
			assert.Equal(t, "n", caller.Name())
			for plan, want := range c.plans {
				assert.Equal(t, want, caller.MayPlan(plan), "plan %q", plan)
			}
			for param, want := range c.params {
				assert.Equal(t, want, caller.MayOverride(param), "parameter %q", param)
			}
			for g := range request.GrantCount {
				assert.Equal(t, slices.Contains(c.granted, g), caller.Granted()[g], g)
			}
		})
	}
}

func TestUnsoundRules(t *testing.T) {
	for name, c := range map[string]struct {
		rules Rules
		want  string
	}{
		"no name":           {Rules{}, "name must be"},
		"a long name":       {Rules{Name: strings.Repeat("x", 65)}, "name must be"},
		"a name with lines": {Rules{Name: "a\nb"}, "name must be"},
		"a broken pattern":  {Rules{Name: "n", Plans: []string{"ok", "[s3cret"}}, "plans: pattern 2 is malformed"},
		"an empty pattern":  {Rules{Name: "n", Overrides: []string{""}}, "overrides: pattern 1 is malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewCaller(c.rules)
			require.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), "s3cret")
		})
	}
}

func TestRightsAllocateNothing(t *testing.T) {
	caller, err := NewCaller(Rules{Name: "n", Plans: []string{"a*", "feed_[0-9]*"}, Overrides: []string{"w*"}})
	require.NoError(t, err)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if !caller.MayPlan("feed_12") || !caller.MayOverride("weight") || caller.Granted()[request.GrantTrace] {
			panic("rights")
		}
	}))
}
