package taskrun

import (
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRowBudget(t *testing.T) {
	b := NewRowBudget(10)
	assert.Equal(t, int64(10), b.Limit())
	for _, c := range []struct {
		rows int64
		ok   bool
		left int64
	}{
		{0, true, 10}, {7, true, 3},
		{4, false, 3}, // a refusal takes nothing
		{0, true, 3},  // a node that makes no rows is never refused
		{3, true, 0}, {0, true, 0}, {1, false, 0},
	} {
		left, ok := b.Take(c.rows)
		assert.Equal(t, c.ok, ok, c)
		assert.Equal(t, c.left, left, c)
		assert.Equal(t, c.left, b.Left(), c)
	}

	b.Refill()
	for range 3 {
		left, ok := b.Take(math.MaxInt64)
		assert.False(t, ok)
		assert.Equal(t, int64(10), left)
	}
	_, ok := b.Take(10)
	assert.True(t, ok)
	_, ok = b.Take(1)
	assert.False(t, ok)
}

// Workers that take rows at the same time never get more than there are.
func TestRowBudgetIsShared(t *testing.T) {
	const limit, workers = 1000, 8
	b := NewRowBudget(limit)
	take := func(n int64) bool {
		_, ok := b.Take(n)
		return ok
	}
	var made [workers]int64
	var done sync.WaitGroup
	for w := range workers {
		done.Go(func() {
			for n := int64(1); take(n); n = n%7 + 1 {
				made[w] += n
			}
		})
	}
	done.Wait()
	sum := int64(0)
	for _, n := range made {
		sum += n
	}
	assert.LessOrEqual(t, sum, int64(limit))
	assert.Greater(t, sum, int64(limit-8), "the first to be refused asks for at most 7")
}
