package nearest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestName(t *testing.T) {
	plans := []string{"complex_dag", "concat_plan", "diamond", "regex_plan", "simple_viewer"}
	for _, c := range []struct {
		name  string
		names []string
		want  string
	}{
		{"diamnod", plans, "diamond"},
		{"complex_plan", plans, "complex_dag"},
		{"simple_plan", plans, "simple_viewer"}, // as far from three others
		{"", plans, "diamond"},
		{"ab", []string{"cd", "ef"}, "cd"},
		{"ab", []string{"b", "a"}, "a"},
		{"ab", []string{"a", "ac"}, "a"},
		{"abc", []string{"abcd", "abc"}, "abc"},
	} {
		near, found := Name(c.name, c.names)
		assert.True(t, found)
		assert.Equal(t, c.want, near, c.name)
	}
	for _, c := range []struct {
		name string
		want string // empty: none
	}{
		{"diamnod", "diamond"}, {"diamonds", "diamond"}, {"diamond", ""}, {"dinmod", "diamond"}, {"dimnod", ""}, {"plan", ""}, {"", ""},
	} {
		near, found := Within(2, c.name, plans)
		assert.Equal(t, c.want != "", found, c.name)
		assert.Equal(t, c.want, near)
	}
	for _, c := range []struct {
		name string
		want string // empty: none
	}{
		{"diamnod", "diamond"}, {"dia", "diamond"}, {"egex_plan", "regex_plan"}, {"plan", ""}, {"", ""}, {"xyz", ""},
	} {
		near, found := Like(c.name, plans)
		assert.Equal(t, c.want != "", found, c.name)
		if found {
			assert.Equal(t, c.want, near)
		}
	}
	_, found := Name("a", nil)
	assert.False(t, found)
	_, found = Like("a", nil)
	assert.False(t, found)
}
