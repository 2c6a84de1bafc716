package taskrun

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A cancellation that is used again does not remember its last use.
func TestAResetCancellationIsLikeNew(t *testing.T) {
	var c Cancellation
	for range 2 {
		select {
		case <-c.Done():
			require.Fail(t, "the channel of the last use is closed")
		default:
		}
		require.False(t, c.Cancelled())
		assert.NotPanics(t, func() { c.Cancel(errors.New("enough")) })
		<-c.Done()
		c.Reset()
	}
}
