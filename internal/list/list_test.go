package list_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/list"
)

type item struct {
	n            int
	here, beside list.Link[item]
}

func numbers(l *list.List[item], link func(*item) *list.Link[item]) (got []int) {
	for e := l.First(); e != nil; e = link(e).Next() {
		got = append(got, e.n)
	}
	return got
}

// A list does what a slice does, whichever items leave, in whatever order.
func TestAListIsLikeASlice(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var l list.List[item]
	var want []*item
	for n := range 2000 {
		if len(want) == 0 || rng.IntN(20) < 11 {
			e := &item{n: n}
			l.Push(e, &e.here)
			want = append(want, e)
		} else {
			i := rng.IntN(len(want))
			require.True(t, want[i].here.In())
			l.Remove(&want[i].here)
			require.False(t, want[i].here.In())
			want = slices.Delete(want, i, i+1)
		}
		require.Equal(t, len(want), l.Len())
		got := numbers(&l, func(e *item) *list.Link[item] { return &e.here })
		require.Len(t, got, len(want))
		for i, e := range want {
			require.Equal(t, e.n, got[i])
		}
		if len(want) > 0 {
			require.Same(t, want[len(want)-1], l.Last())
		}
	}
}

func TestAnElementMayBeInTwoLists(t *testing.T) {
	var a, b list.List[item]
	one, two := &item{n: 1}, &item{n: 2}
	for _, e := range []*item{one, two} {
		a.Push(e, &e.here)
	}
	for _, e := range []*item{two, one} {
		b.Push(e, &e.beside)
	}
	a.Remove(&one.here)
	assert.Equal(t, []int{2}, numbers(&a, func(e *item) *list.Link[item] { return &e.here }))
	assert.Equal(t, []int{2, 1}, numbers(&b, func(e *item) *list.Link[item] { return &e.beside }))
	assert.Zero(t, testing.AllocsPerRun(10, func() { a.Push(one, &one.here); a.Remove(&one.here) }))
	a.Remove(&two.here)
	assert.Nil(t, a.First())
	assert.Nil(t, a.Last())
}
