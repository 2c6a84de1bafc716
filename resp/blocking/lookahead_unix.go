//go:build unix

package blocking

import (
	"io"
	"os"
	"syscall"

	"github.com/rankd/rankd/resp"
)

const canLookAhead = true

// lookAhead returns nil if a non-blocking socket has nothing to be read, and otherwise
// resp.ErrUnsolicited, io.EOF or the socket's error. It takes nothing off the socket.
func lookAhead(fd uintptr, buf []byte) error {
	for {
		n, _, err := syscall.Recvfrom(int(fd), buf, syscall.MSG_PEEK)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN || err == syscall.EWOULDBLOCK:
			return nil
		case err != nil:
			return os.NewSyscallError("recvfrom", err)
		case n == 0:
			return io.EOF
		default:
			return resp.ErrUnsolicited
		}
	}
}
