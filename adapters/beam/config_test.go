package rankdbeam

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
)

// Copies of a transform share an engine, and the last one closes it.
func TestCopiesShareAnEngine(t *testing.T) {
	c := Config{PlanText: []byte(`{"schema_version": 1, "plan_name": "rows", "nodes": [
		{"node_id": "rows", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 2}}], "outputs": ["rows"]}`), PlanFile: "rows.plan.json", Env: "test", Redis: "127.0.0.1:1"}
	other := c
	other.MaxRows = 7
	var copies [3]rankFn
	for i := range copies {
		copies[i].Config = c
		require.NoError(t, copies[i].Setup(t.Context()))
		assert.Equal(t, i == 0, copies[i].opened)
		assert.Same(t, copies[0].engine, copies[i].engine)
	}
	apart := rankFn{Config: other}
	require.NoError(t, apart.Setup(t.Context()))
	assert.NotSame(t, copies[0].engine, apart.engine)
	require.NoError(t, apart.Teardown())
	rank := func() error {
		_, err := copies[0].engine.Rank(t.Context(), rankd.Request{UserID: 1})
		return err
	}
	for i := range copies {
		require.NoError(t, rank())
		require.NoError(t, copies[i].Teardown())
	}
	assert.ErrorIs(t, rank(), rankd.ErrClosed)
	require.NoError(t, copies[0].Setup(t.Context()))
	require.NoError(t, rank())
	require.NoError(t, copies[0].Teardown())
}
