package errtext

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNearest(t *testing.T) {
	plans := []string{"complex_dag", "concat_plan", "diamond", "regex_plan", "simple_viewer"}
	for _, c := range []struct {
		name  string
		names []string
		want  string
	}{
		{"diamnod", plans, "diamond"},
		{"complex_plan", plans, "complex_dag"},
		{"simple_plan", plans, "simple_viewer"}, // equally far from three others
		{"", plans, "diamond"},
		{"ab", []string{"cd", "ef"}, "cd"},
		{"ab", []string{"b", "a"}, "a"},
		{"ab", []string{"a", "ac"}, "a"},
		{"abc", []string{"abcd", "abc"}, "abc"},
	} {
		near, found := Nearest(c.name, c.names)
		assert.True(t, found)
		assert.Equal(t, c.want, near, c.name)
	}
	for _, c := range []struct {
		name string
		want string // empty: none
	}{
		{"diamnod", "diamond"}, {"diamonds", "diamond"}, {"diamond", ""}, {"dinmod", "diamond"}, {"dimnod", ""}, {"plan", ""}, {"", ""},
	} {
		near, found := NearestWithin(2, c.name, plans)
		assert.Equal(t, c.want != "", found, c.name)
		assert.Equal(t, c.want, near)
	}
	for _, c := range []struct {
		name string
		want string // empty: none
	}{
		{"diamnod", "diamond"}, {"dia", "diamond"}, {"egex_plan", "regex_plan"}, {"plan", ""}, {"", ""}, {"xyz", ""},
	} {
		near, found := NearestLike(c.name, plans)
		assert.Equal(t, c.want != "", found, c.name)
		if found {
			assert.Equal(t, c.want, near)
		}
	}
	_, found := Nearest("a", nil)
	assert.False(t, found)
	_, found = NearestLike("a", nil)
	assert.False(t, found)
}
