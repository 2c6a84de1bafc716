package blocking

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/resp"
)

func TestUnixSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "rankd") // short: systems bound the path of a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	ln, err := net.Listen("unix", path)
	require.NoError(t, err)
	s := serveOn(t, ln, echo)
	c := openClient(t, resp.Options{Addr: "unix:" + path, MaxInflight: 8})
	text, err := get(t, c, "a", 20, 0)
	require.NoError(t, err)
	require.Equal(t, got("a", 20), text)
	assert.NoError(t, c.conns[0].checkIdle())

	// On an idle unix socket, too, the client sees that the server has gone.
	s.close()
	seesTheEnd(t, c)
	_, err = get(t, c, "c", 1, 0)
	require.ErrorIs(t, err, syscall.ENOENT)
	require.ErrorContains(t, err, "redis unix:"+path+": cannot connect: dial unix "+path)
}

// seesTheEnd waits until the end of the idle connection has arrived.
func seesTheEnd(t *testing.T, c *Client) {
	require.Eventually(t, func() bool { return c.conns[0].checkIdle() != nil }, 10*time.Second, time.Millisecond)
}

// Each new connection resolves the name again, so the client finds a server that has moved.
func TestNamesAreResolvedAtEachReconnect(t *testing.T) {
	first := serve(t, say("$1\r\nx\r\n"))
	_, port, err := net.SplitHostPort(first.addr())
	require.NoError(t, err)
	ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.2", port))
	if err != nil {
		t.Skip("needs a second loopback address: ", err)
	}
	serveOn(t, ln, echo)

	names := testworld.NewDNS("127.0.0.1")
	defer names.Wait()
	c := openClient(t, resp.Options{Addr: "redis.rankd.test.:" + port})
	c.connectTo = names.Dialer().DialContext
	text, err := get(t, c, "a", 1, 0)
	require.NoError(t, err)
	require.Equal(t, "x", text)
	names.Set("127.0.0.2")
	first.close()
	seesTheEnd(t, c)
	_, err = get(t, c, "a", 1, 0)
	require.NoError(t, err)
	assert.Equal(t, 2, names.Asked())
}
