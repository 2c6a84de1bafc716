package builtin

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/rowset"
)

// TestIDsAreGatheredInChunks: parts of any size make one list, in order.
func TestIDsAreGatheredInChunks(t *testing.T) {
	for _, c := range []struct {
		name        string
		parts, each int
	}{
		{name: "nothing"},
		{name: "one part", parts: 1, each: 4},
		{name: "one chunk", parts: 3, each: 10_000},
		{name: "several chunks", parts: 12, each: 10_000},
		{name: "a long list", parts: 60, each: 10_000},
		{name: "parts beyond a chunk", parts: 3, each: chunkLen + 1},
		{name: "whole chunks", parts: 4, each: chunkLen},
	} {
		t.Run(c.name, func(t *testing.T) {
			pool := rowset.NewPool(rowset.PoolConfig{Poison: true})
			for range 2 { // the second run uses the memory of the first
				memory := rowset.NewMemory(pool)
				memory.SetLending(true)
				var l chunks[int64]
				next := int64(0)
				for range c.parts {
					l.grow(c.each, memory.IDs)
					before := cap(l.last)
					for range c.each {
						l.last = append(l.last, next)
						next++
					}
					require.Equal(t, before, cap(l.last), "grow has made room")
				}
				ids := l.join(memory.IDs)
				require.Len(t, ids, c.parts*c.each)
				for i, id := range ids {
					if id != int64(i) {
						require.Equal(t, int64(i), id)
					}
				}
				memory.Release(nil)
			}
		})
	}
}
