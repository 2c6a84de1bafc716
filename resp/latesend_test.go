package resp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A callback takes 1 s, and then a command leaves in the same iteration. The server has had no
// time to answer the command.
func TestLateSend(t *testing.T) {
	n := newNetwork(t)
	n.mute = true
	client := newClient(n, Options{NoCoalesceReads: true, RequestTimeout: 100 * time.Millisecond})
	defer client.Close()
	first, _ := get(t, "first", 1)
	second, o := get(t, "second", 200)
	first.Done = func(*Call) {
		n.h.Clock.Advance(time.Second)
		require.NoError(t, client.Do(second))
	}
	require.NoError(t, client.Do(first))
	n.settle()
	n.last().answer(1)
	n.settle()
	n.settle()
	n.last().answer(len(n.last().answers))
	n.settle()
	o.requireReplies(t, got("second", 200))
}
