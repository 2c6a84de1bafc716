package serve

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rankd/rankd/internal/errtext"
)

// off is the value of an address flag that turns its front off.
const off = "off"

// address is where a front listens. Immutable; any goroutine.
type address struct {
	flag       string
	host, port string // port: "" if the front is off
}

// parseAddress reads "host:port", ":port" or "off".
func parseAddress(flag, value string) (address, error) {
	if value == off {
		return address{flag: flag}, nil
	}
	host, port, err := net.SplitHostPort(value)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return address{}, fmt.Errorf("--%s is host:port, :port or off, not %s", flag, errtext.Quote(value))
	}
	return address{flag, host, port}, nil
}

func (a address) on() bool { return a.port != "" }

func (a address) String() string { return net.JoinHostPort(a.host, a.port) }

// clashes reports whether two fronts ask for the same port. Port 0 means any free port.
func (a address) clashes(b address) bool {
	if !a.on() || a.port == "0" || a.port != b.port {
		return false
	}
	return a.host == b.host || a.everywhere() || b.everywhere()
}

// everywhere reports whether the front listens on all addresses of the machine.
func (a address) everywhere() bool {
	ip := net.ParseIP(a.host)
	return a.host == "" || ip != nil && ip.IsUnspecified()
}

// local reports whether only this machine reaches the front.
func (a address) local() bool {
	ip := net.ParseIP(a.host)
	return a.host == "localhost" || ip != nil && ip.IsLoopback()
}

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
