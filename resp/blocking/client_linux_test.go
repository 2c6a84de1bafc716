package blocking

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/resp"
)

// TestCloseEndsAnAttemptToConnect: the server drops packets, as a listener with a full queue
// does.
func TestCloseEndsAnAttemptToConnect(t *testing.T) {
	addr := testworld.Unreachable(t)
	c := openClient(t, resp.Options{Addr: addr, ConnectTimeout: 20 * time.Second, RequestTimeout: 20 * time.Second})
	ended := make(chan error, 1)
	go func() {
		_, err := get(t, c, "a", 1, 0)
		ended <- err
	}()
	require.Eventually(t, func() bool { return c.Stats().Connects == 1 }, 10*time.Second, time.Millisecond)
	c.Close()
	select {
	case err := <-ended:
		require.ErrorIs(t, err, resp.ErrClosed)
	case <-time.After(10 * time.Second):
		require.FailNow(t, "the call goes on after Close")
	}
}
