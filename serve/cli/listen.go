package cli

import (
	"context"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// listenTCP listens at an address. With reusePort several processes may do so at a time: the kernel spreads the connections over them.
func listenTCP(address string, reusePort bool) (net.Listener, error) {
	var config net.ListenConfig
	if reusePort {
		config.Control = func(_, _ string, conn syscall.RawConn) (failure error) {
			err := conn.Control(func(fd uintptr) {
				failure = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
			})
			if err != nil {
				return err
			}
			return failure
		}
	}
	return config.Listen(context.Background(), "tcp", address)
}
