package reactor

import (
	"net"
	"os"
	"syscall"
)

// selfPipe is the writing end of a socket pair whose other end the poller watches. A byte written to it comes back as
// an event, after the sockets that are ready already. Loop only, except close.
type selfPipe struct{ fd int }

// newSelfPipe returns the writing end and the end for the poller to watch.
func newSelfPipe() (*selfPipe, net.Conn, error) {
	// The lock keeps children from inheriting the descriptors: darwin cannot create them close-on-exec.
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	file := os.NewFile(uintptr(fds[1]), "self-pipe")
	end, err := net.FileConn(file) // duplicates the descriptor
	_ = file.Close()
	if err == nil {
		err = os.NewSyscallError("setnonblock", syscall.SetNonblock(fds[0], true))
	}
	if err != nil {
		_ = syscall.Close(fds[0])
		return nil, nil, err
	}
	return &selfPipe{fd: fds[0]}, end, nil
}

// trigger makes the other end readable. A full pipe is readable already.
func (p *selfPipe) trigger() {
	for {
		if _, err := syscall.Write(p.fd, []byte{0}); err != syscall.EINTR {
			return
		}
	}
}

func (p *selfPipe) close() { _ = syscall.Close(p.fd) }
