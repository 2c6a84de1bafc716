package builtin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// sleepCounter counts how often others may run, and cancels the body at one of its sleeps.
type sleepCounter struct {
	taskrun.NoWaiter
	sleeps, cancelAt int
}

func (s *sleepCounter) Sleep(time.Duration) error {
	s.sleeps++
	if s.sleeps == s.cancelAt {
		return task.ErrCancelled
	}
	return nil
}

// TestIDsAreGatheredInChunks: parts of any size make one list, in order. Others may run while a
// long list is joined.
func TestIDsAreGatheredInChunks(t *testing.T) {
	for _, c := range []struct {
		name                          string
		parts, each, sleeps, cancelAt int
	}{
		{name: "nothing"},
		{name: "one part", parts: 1, each: 4},
		{name: "one chunk", parts: 3, each: 10_000},
		{name: "several chunks", parts: 12, each: 10_000, sleeps: 1},
		{name: "a long list", parts: 60, each: 10_000, sleeps: 5},
		{name: "parts beyond a chunk", parts: 3, each: idChunk + 1},
		{name: "whole chunks", parts: 4, each: idChunk, sleeps: 1},
		{name: "given up", parts: 60, each: 10_000, sleeps: 2, cancelAt: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			pool := rowset.NewPool(rowset.PoolConfig{Poison: true})
			for range 2 { // the second run uses the memory of the first
				memory := rowset.NewMemory(pool)
				memory.SetLending(true)
				waiter := &sleepCounter{cancelAt: c.cancelAt}
				ctx := &task.Ctx{Memory: memory}
				tasks.Env(ctx).Waiter = waiter
				var l idList
				next := int64(0)
				for range c.parts {
					l.grow(ctx, c.each)
					before := cap(l.last)
					for range c.each {
						l.last = append(l.last, next)
						next++
					}
					require.Equal(t, before, cap(l.last), "grow has made room")
				}
				ids, err := l.join(ctx)
				assert.Equal(t, c.sleeps, waiter.sleeps)
				if c.cancelAt > 0 {
					assert.ErrorIs(t, err, task.ErrCancelled)
					continue
				}
				require.NoError(t, err)
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
