package task

import (
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRowBudget(t *testing.T) {
	b := NewRowBudget(10)
	require.NoError(t, b.take(0))
	require.NoError(t, b.take(7))
	err := b.take(4)
	require.ErrorIs(t, err, ErrTooManyRows)
	assert.NotErrorIs(t, err, ErrInvalid)
	var e *RowsError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, RowsError{Rows: 4, Left: 3, Limit: 10}, *e)
	assert.EqualError(t, err,
		"cannot make 4 rows: 3 are left of the 10 that the nodes of a request may make together (max_rows)")
	require.NoError(t, b.take(0), "a node that makes no rows is never refused")
	require.NoError(t, b.take(3), "a refusal takes nothing")
	require.NoError(t, b.take(0))
	require.ErrorAs(t, b.take(1), &e)
	assert.Equal(t, RowsError{Rows: 1, Left: 0, Limit: 10}, *e)

	b.Refill()
	for range 3 {
		require.ErrorAs(t, b.take(math.MaxInt64), &e)
		assert.Equal(t, RowsError{Rows: math.MaxInt64, Left: 10, Limit: 10}, *e)
	}
	require.NoError(t, b.take(10))
	require.Error(t, b.take(1))
}

func TestRowBudgetLimits(t *testing.T) {
	assert.Equal(t, 10_000_000, DefaultMaxRows)
	for _, c := range []struct {
		limit int
		want  int64
	}{{0, DefaultMaxRows}, {-1, DefaultMaxRows}, {1, 1}, {MaxRowsLimit, MaxRowsLimit}, {math.MaxInt, MaxRowsLimit}} {
		b := NewRowBudget(c.limit)
		assert.NoError(t, b.take(c.want), c.limit)
		assert.Error(t, b.take(1), c.limit)
	}
}

// Workers that take at the same time never get more than there is.
func TestRowBudgetIsShared(t *testing.T) {
	const limit, workers = 1000, 8
	b := NewRowBudget(limit)
	var made [workers]int64
	var done sync.WaitGroup
	for w := range workers {
		done.Go(func() {
			for n := int64(1); b.take(n) == nil; n = n%7 + 1 {
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
