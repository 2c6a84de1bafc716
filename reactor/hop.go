package reactor

import (
	"net"
	"os"
	"syscall"
)

// hop is the writing end of a socket pair. A byte in it comes back as an event of
// the poller, behind the sockets that are ready already. Loop only, except close.
type hop struct{ fd int }

// newHop returns a hop and the end that the poller is to watch.
func newHop() (*hop, net.Conn, error) {
	syscall.ForkLock.RLock() // no child may inherit them: darwin cannot set the flag at once
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	file := os.NewFile(uintptr(fds[1]), "hop")
	end, err := net.FileConn(file) // a duplicate
	_ = file.Close()
	if err == nil {
		err = os.NewSyscallError("setnonblock", syscall.SetNonblock(fds[0], true))
	}
	if err != nil {
		_ = syscall.Close(fds[0])
		return nil, nil, err
	}
	return &hop{fd: fds[0]}, end, nil
}

// trigger makes the other end readable. If it is full, it is that already.
func (h *hop) trigger() {
	for {
		if _, err := syscall.Write(h.fd, []byte{0}); err != syscall.EINTR {
			return
		}
	}
}

func (h *hop) close() { _ = syscall.Close(h.fd) }
