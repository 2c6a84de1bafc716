package resp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAFinishedCallThatIsMadeAgain: each deferred run tells what had finished when it began, so that
// a Done which makes its call again, and finishes again, leaves the loop to others in between.
func TestAFinishedCallThatIsMadeAgain(t *testing.T) {
	const times = 5
	n := newNetwork(t)
	c := newClient(n, Options{})
	var iterations []uint64
	call := new(Call) // an empty batch is finished as soon as it is given to Do
	call.Done = func(call *Call) {
		require.NoError(t, call.Err)
		iterations = append(iterations, n.h.Loop.Iteration())
		if len(iterations) < times {
			require.NoError(t, c.Do(call))
		}
	}
	require.NoError(t, c.Do(call))
	n.settle()
	require.Len(t, iterations, times)
	for i := 1; i < times; i++ {
		require.Equal(t, iterations[i-1]+1, iterations[i], "one run an iteration")
	}
	checkInvariants(t, c)
}
