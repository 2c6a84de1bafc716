package reactor

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/reactor/transport"
)

// socketPath returns a short path for a unix socket: systems bound it at some 100 bytes.
func socketPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rankd")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// A unix socket carries bytes both ways, in pieces and in bulk, and ends as a TCP connection
// does.
func TestUnixSocket(t *testing.T) {
	path := socketPath(t)
	ln, err := net.Listen("unix", path)
	require.NoError(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		c, err := ln.Accept()
		if err != nil {
			return
		}
		_, _ = io.CopyN(c, c, 3<<20) // what it gets
		_ = c.Close()
	}()
	r := started(t)
	p := newProbe()
	got := 0
	p.onData = func(data []byte) int {
		got += len(data)
		return len(data)
	}
	do(t, r, func() {
		p.dial(r, "unix:"+path)
		assert.NoError(t, p.conn.Write(make([]byte, 100)), "before it is open")
	})
	require.NoError(t, <-p.connected)
	do(t, r, func() { assert.NoError(t, p.conn.Write(make([]byte, 3<<20-100))) })
	assert.ErrorIs(t, <-p.closed, io.EOF)
	do(t, r, func() { assert.Equal(t, 3<<20, got) })
	<-served
	require.NoError(t, ln.Close())

	// Nobody listens any more.
	again := newProbe()
	do(t, r, func() { again.dial(r, "unix:"+path) })
	err = <-again.connected
	assert.ErrorIs(t, err, syscall.ENOENT)
	assert.ErrorContains(t, err, "dial unix "+path)
}

func TestUnixSocketEndsWithTheLoop(t *testing.T) {
	path := socketPath(t)
	ln, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer ln.Close()
	r := started(t)
	p := newProbe()
	p.connect(t, r, "unix:"+path)
	r.Loop().Stop()
	<-r.Loop().Done()
	assert.ErrorIs(t, <-p.closed, loop.ErrStopped)
}

// Each dial resolves the name again, so it finds a server that has moved.
func TestNamesAreResolvedAtEachDial(t *testing.T) {
	first, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer first.Close()
	_, port, err := net.SplitHostPort(first.Addr().String())
	require.NoError(t, err)
	second, err := net.Listen("tcp", net.JoinHostPort("127.0.0.2", port))
	if err != nil {
		t.Skip("needs a second loopback address: ", err)
	}
	defer second.Close()

	names := testworld.NewDNS("127.0.0.1")
	defer names.Wait()
	r := started(t)
	do(t, r, func() { r.connectTo = names.Dialer().DialContext })
	for i, ln := range []net.Listener{first, second} {
		names.Set(ln.Addr().(*net.TCPAddr).IP.String())
		p := newProbe()
		do(t, r, func() { p.dial(r, "redis.rankd.test.:"+port) })
		require.NoError(t, <-p.connected)
		c, err := ln.Accept()
		require.NoError(t, err)
		require.NoError(t, c.Close())
		<-p.closed
		assert.Equal(t, i+1, names.Asked())
	}
}

func TestSplitAddr(t *testing.T) {
	for addr, want := range map[string][2]string{
		"h:1": {"tcp", "h:1"}, "[::1]:1": {"tcp", "[::1]:1"}, "unix:/run/a b.sock": {"unix", "/run/a b.sock"},
	} {
		network, address := transport.SplitAddr(addr)
		assert.Equal(t, want, [2]string{network, address})
	}
}
