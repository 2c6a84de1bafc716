package builtin

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/task"
)

func TestNames(t *testing.T) {
	r := Catalog()
	names := []string{
		"core::viewer", "core::follow", "core::recommendation", "core::media", "core::vm",
		"core::filter", "core::sort", "core::take", "core::concat", "test::sleep", "test::fixed_source", "test::busy_cpu",
		"core::union", "core::dedupe", "core::join", "core::blend", "core::candidates", "core::lookup",
	}
	assert.Len(t, r.Specs(), len(names))
	for _, full := range names {
		s, ok := r.OpSchema(full)
		require.True(t, ok, full)
		assert.Equal(t, full, s.Op)
	}
	for alias, full := range map[string]string{"vm": "core::vm", "sleep": "test::sleep"} {
		s, ok := r.OpSchema(alias)
		require.True(t, ok, alias)
		assert.Equal(t, full, s.Op)
	}
	for _, unknown := range []string{"", "core::VM", "test::vm", "core::sleep", "::vm", "core::"} {
		_, ok := r.OpSchema(unknown)
		assert.False(t, ok, unknown)
	}
}

// The seeds' table of where a task runs.
func TestPlaces(t *testing.T) {
	places := map[string]task.Place{
		"core::viewer": task.Waits, "core::follow": task.Waits, "core::recommendation": task.Waits, "core::media": task.Waits,
		"core::vm": task.Computes, "core::filter": task.Computes, "core::sort": task.Computes, "core::take": task.Computes,
		"core::concat": task.Computes, "test::busy_cpu": task.Computes,
		"core::union": task.Computes, "core::dedupe": task.Computes, "core::join": task.Computes, "core::blend": task.Computes,
		"core::candidates": task.Waits, "core::lookup": task.Waits,
		"test::sleep": task.OnLoop, "test::fixed_source": task.OnLoop,
	}
	for _, s := range Specs() {
		want, known := places[s.Op]
		require.True(t, known, s.Op)
		assert.Equal(t, want, s.Place, s.Op)
	}
}
