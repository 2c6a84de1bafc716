package builtin

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/task"
)

// places are built-in tasks and their places. The original specification's table has the places
// of its twelve tasks. The reference has the place of each.
var places = map[string]task.Place{
	"core::viewer": task.Waits, "core::follow": task.Waits, "core::recommendation": task.Waits, "core::media": task.Waits,
	"core::vm": task.Computes, "core::filter": task.Computes, "core::sort": task.Computes, "core::take": task.Computes,
	"core::concat": task.Computes, "test::busy_cpu": task.Computes,
	"test::sleep": task.OnLoop, "test::fixed_source": task.OnLoop,

	"core::union": task.Computes, "core::dedupe": task.Computes, "core::exclude": task.Waits, "core::join": task.Computes, "core::blend": task.Computes,
	"core::diversify": task.Computes, "core::top": task.Computes, "core::boost": task.Computes, "core::normalize": task.Computes, "core::aggregate": task.Computes, "core::sample": task.Computes, "core::cap": task.Computes, "core::frequency_cap": task.Waits, "core::model": task.Computes,
	"core::candidates": task.Waits, "core::lookup": task.Waits, "core::remote": task.Waits, "core::remote_candidates": task.Waits,
}

func TestNames(t *testing.T) {
	r := Catalog()
	for full := range places {
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

func TestPlaces(t *testing.T) {
	found := 0
	for _, s := range Specs() {
		if want, listed := places[s.Op]; listed {
			assert.Equal(t, want, s.Place, s.Op)
			found++
		}
	}
	assert.Len(t, places, found)
}
