package loop_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/looptest"
)

// TestBeforeFlush: the work runs once, after the prepare hooks and before the host sends. Work
// that is deferred meanwhile waits for the next iteration. The loop is alive and pending until
// then.
func TestBeforeFlush(t *testing.T) {
	h := looptest.New(t)
	var seen []string
	note := func(what string) func() { return func() { seen = append(seen, what) } }
	h.OnFlush = note("flush")
	prepare := h.Loop.NewPrepare(note("prepare"))
	require.NoError(t, prepare.Start())
	h.Loop.Post(func() {
		h.Loop.BeforeFlush(note("first"))
		h.Loop.BeforeFlush(func() {
			note("second")()
			h.Loop.BeforeFlush(note("third"))
		})
	})
	h.Iterate() // runs the post
	assert.True(t, h.Loop.Pending())
	seen = nil
	h.Iterate()
	assert.Equal(t, []string{"prepare", "first", "second", "flush"}, seen)
	assert.True(t, h.Loop.Pending())
	h.Iterate()
	assert.Equal(t, []string{"prepare", "third", "flush"}, seen[4:])
	assert.False(t, h.Loop.Pending())
	prepare.Close(nil)
}
