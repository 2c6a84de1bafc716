package testworld

import (
	"net"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Unreachable returns the address of a listener whose queue is full. Linux then drops requests
// for a connection, as a dead host does. On other systems Unreachable skips the test.
func Unreachable(t testing.TB) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs a kernel that drops connections when the queue is full")
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	require.NoError(t, unix.Listen(fd, 0))
	sa, err := unix.Getsockname(fd)
	require.NoError(t, err)
	for range 3 {
		filler, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		require.NoError(t, err)
		t.Cleanup(func() { _ = unix.Close(filler) })
		require.NoError(t, unix.SetNonblock(filler, true))
		if err := unix.Connect(filler, sa); err != nil {
			require.ErrorIs(t, err, syscall.EINPROGRESS)
		}
	}
	return (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: sa.(*unix.SockaddrInet4).Port}).String()
}
