package task_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task"
)

func TestKeys(t *testing.T) {
	reg, err := registry.Default("test")
	require.NoError(t, err)
	c := &task.Ctx{Registry: reg}
	for id, want := range map[int64]string{1: "id", 1001: "model_score_1", 3001: "country"} {
		byID, ok := c.Key(id)
		require.True(t, ok, id)
		assert.Equal(t, want, byID.Name)
		byName, ok := c.KeyByName(want)
		require.True(t, ok, want)
		assert.Same(t, byID, byName)
	}
	for _, id := range []int64{0, -1, 7, math.MaxUint32 + 1 + 1001, math.MaxInt64, math.MinInt64} {
		_, ok := c.Key(id)
		assert.False(t, ok, id)
	}
	_, ok := c.KeyByName("no_such_key")
	assert.False(t, ok)
}

func TestColumns(t *testing.T) {
	assert.Equal(t, []registry.KeyID{3001, 1001}, task.Columns(3001, 1001)(nil, nil))
	assert.Empty(t, task.Columns()(nil, nil))
}

// A body gets an error from each way of waiting if its place must not wait, or if it runs
// without an engine.
func TestNoWaiter(t *testing.T) {
	c := new(task.Ctx)
	assert.ErrorContains(t, c.Sleep(1), "must not wait")
	assert.ErrorContains(t, c.Await(nil), "must not wait")
	_, err := c.Redis(&registry.Endpoint{ID: "ep_0001"}).Do("PING")
	assert.ErrorContains(t, err, "must have Place Waits or OnLoop")
	assert.ErrorIs(t, err, task.ErrRedis)
}

func TestInvalidf(t *testing.T) {
	err := task.Invalidf("count is %d, must be at least %d", 0, 1)
	assert.EqualError(t, err, "count is 0, must be at least 1")
	assert.ErrorIs(t, err, task.ErrInvalid)
}

func TestPlaceNames(t *testing.T) {
	assert.Equal(t, "computes waits on_loop", task.Computes.String()+" "+task.Waits.String()+" "+task.OnLoop.String())
	assert.Zero(t, task.Computes)
}
