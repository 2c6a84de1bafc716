package taskrun

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rankd/rankd/resp"
)

func batchOf(keys ...string) *resp.Batch {
	b := new(resp.Batch)
	for _, key := range keys {
		b.Cmd("GET", key)
	}
	return b
}

func TestReadAheadFind(t *testing.T) {
	for name, c := range map[string]struct {
		read    []string
		batches [][]string
		want    [][]int
	}{
		"all":                          {[]string{"a", "b", "c"}, [][]string{{"a", "b", "c"}}, [][]int{{0, 1, 2}}},
		"some rows were dropped":       {[]string{"a", "b", "c", "d"}, [][]string{{"b", "d"}}, [][]int{{1, 3}}},
		"in two batches":               {[]string{"a", "b", "c", "d"}, [][]string{{"a", "b"}, {"d"}}, [][]int{{0, 1}, {3}}},
		"another row":                  {[]string{"a", "b", "c"}, [][]string{{"a", "x", "b"}, {"c"}}, [][]int{{0}, {}}},
		"the rows in another order":    {[]string{"a", "b"}, [][]string{{"b", "a"}}, [][]int{{1}}},
		"nothing":                      {nil, [][]string{{"a"}}, [][]int{{}}},
		"a key that others begin with": {[]string{"a", "ab"}, [][]string{{"ab"}}, [][]int{{1}}},
	} {
		t.Run(name, func(t *testing.T) {
			var a ReadAhead
			for i := range c.read {
				a.Commands.Copy(batchOf(c.read...), i)
			}
			for i, keys := range c.batches {
				assert.Equal(t, c.want[i], append([]int{}, a.Find(batchOf(keys...), nil)...))
			}
		})
	}
}

func TestAhead(t *testing.T) {
	var a Ahead
	assert.Nil(t, a.Take(1))
	first, second := new(ReadAhead), new(ReadAhead)
	a.Put(1, first)
	a.Put(2, second)
	assert.Nil(t, a.Take(3))
	assert.Same(t, second, a.Take(2))
	assert.Nil(t, a.Take(2), "each takes it once")
	a.Clear()
	assert.Nil(t, a.Take(1))
}
