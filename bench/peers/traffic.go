package peers

import (
	"net"
	"sync/atomic"

	"github.com/rankd/rankd/bench/load"
)

// Traffic counts the traffic between a store and Redis.
type Traffic = load.Traffic

// meter counts the traffic of all connections of a store. Any goroutine.
type meter struct {
	writes, commands, sent, received atomic.Uint64
	hits                             atomic.Uint64 // of commands that were not sent
	keeps                            bool          // whether there is a cache
}

func (m *meter) traffic() Traffic {
	t := Traffic{
		RoundTrips: m.writes.Load(), Commands: m.commands.Load(),
		BytesSent: m.sent.Load(), BytesReceived: m.received.Load(),
	}
	if m.keeps {
		t.Cache = &load.Cache{Hits: m.hits.Load(), Misses: t.Commands}
		t.Asked = t.Cache.Hits + t.Commands
	}
	return t
}

// count returns conn with its reads and writes counted, which costs a few nanoseconds per
// system call. Otherwise it stays a TCP connection: go-redis asks its descriptor whether an
// idle connection is still alive.
func (m *meter) count(conn net.Conn) net.Conn {
	if tcp, ok := conn.(*net.TCPConn); ok {
		return &meteredConn{TCPConn: tcp, meter: m}
	}
	return conn
}

type meteredConn struct {
	*net.TCPConn
	meter *meter
}

func (c *meteredConn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	c.meter.received.Add(uint64(n))
	return n, err
}

func (c *meteredConn) Write(p []byte) (int, error) {
	n, err := c.TCPConn.Write(p)
	c.meter.writes.Add(1)
	c.meter.sent.Add(uint64(n))
	return n, err
}
