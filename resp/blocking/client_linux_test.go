package blocking

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rankd/rankd/resp"
)

// TestCloseEndsAnAttemptToConnect: the server drops packets, as a full listener does.
func TestCloseEndsAnAttemptToConnect(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	require.NoError(t, unix.Listen(fd, 0))
	name, err := unix.Getsockname(fd)
	require.NoError(t, err)
	addr := fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port)
	for { // until its queue is full
		nc, err := net.DialTimeout("tcp", addr, 100*time.Millisecond)
		if err != nil {
			break
		}
		t.Cleanup(func() { _ = nc.Close() })
	}

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
