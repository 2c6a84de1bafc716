//go:build unix

package blocking

import (
	"io"
	"os"
	"syscall"

	"github.com/rankd/rankd/resp"
)

// look finds nil if a non-blocking socket has nothing to be read, and otherwise
// resp.ErrUnsolicited, io.EOF or the socket's error. It takes nothing off the socket.
func (cn *conn) look(fd uintptr) bool {
	n, _, err := syscall.Recvfrom(int(fd), cn.first[:], syscall.MSG_PEEK)
	for err == syscall.EINTR {
		n, _, err = syscall.Recvfrom(int(fd), cn.first[:], syscall.MSG_PEEK)
	}
	switch {
	case err == syscall.EAGAIN || err == syscall.EWOULDBLOCK:
		cn.found = nil
	case err != nil:
		cn.found = os.NewSyscallError("recvfrom", err)
	case n == 0:
		cn.found = io.EOF
	default:
		cn.found = resp.ErrUnsolicited
	}
	return true
}
