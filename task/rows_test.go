package task

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/taskrun"
)

func TestMakeRows(t *testing.T) {
	assert.Equal(t, int64(MaxRowsLimit), new(Ctx).RowsLeft(), "without a bound")
	assert.NoError(t, new(Ctx).MakeRows(math.MaxInt64))

	var c Ctx
	engine{}.Env(&c).Request = &taskrun.Request{Rows: engine{}.NewRowBudget(10)}
	require.NoError(t, c.MakeRows(7))
	assert.Equal(t, int64(3), c.RowsLeft())
	err := c.MakeRows(4)
	require.ErrorIs(t, err, ErrTooManyRows)
	assert.NotErrorIs(t, err, ErrInvalid)
	var e *RowsError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, RowsError{Rows: 4, Left: 3, Limit: 10}, *e)
	assert.EqualError(t, err,
		"cannot make 4 rows: 3 are left of the 10 that the nodes of a request may make together (max_rows)")
	require.NoError(t, c.MakeRows(3), "a refusal takes nothing")
	require.ErrorAs(t, c.MakeRows(1), &e)
	assert.Equal(t, RowsError{Rows: 1, Left: 0, Limit: 10}, *e)
}

func TestRowBudgetLimits(t *testing.T) {
	assert.Equal(t, 10_000_000, DefaultMaxRows)
	for _, c := range []struct {
		limit int
		want  int64
	}{{0, DefaultMaxRows}, {-1, DefaultMaxRows}, {1, 1}, {MaxRowsLimit, MaxRowsLimit}, {math.MaxInt, MaxRowsLimit}} {
		assert.Equal(t, c.want, engine{}.NewRowBudget(c.limit).Left(), c.limit)
	}
}
