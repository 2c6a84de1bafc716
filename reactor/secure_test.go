package reactor

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/reactor/transport"
)

// asIs is a Secure that leaves a connection as it is.
func asIs(_ context.Context, nc net.Conn, _ string) (net.Conn, error) { return nc, nil }

// TestSecureConnectionsKeepTheContract plays the stories of connections with connections that
// gnet does not know.
func TestSecureConnectionsKeepTheContract(t *testing.T) {
	probeSecure = asIs
	defer func() { probeSecure = nil }()
	for name, story := range map[string]func(*testing.T){
		"a refused connect":             TestRefusedConnectFailsLaterAndOnce,
		"writes before that":            TestWritesBeforeARefusedConnectAreDropped,
		"writes before a connect":       TestWritesBeforeTheConnectGoOutInOrder,
		"a close while connecting":      TestCloseWhileConnecting,
		"a timer while connecting":      TestTimerClosesAConnectToAnUnansweringPeer,
		"a connect timeout":             TestConnectTimeout,
		"a slow connect":                TestConnectNeverBlocksTheLoop,
		"a peer that resets":            TestPeerResets,
		"an end behind data":            TestEndOfStreamIsToldOnceAfterTheData,
		"unread bytes":                  TestUnreadDataDoesNotMakeTheLoopSpin,
		"no callback within a call":     TestNoCallbackOfAConnectionFromWithinACall,
		"a close in OnData":             TestCloseFromOnData,
		"a handler that panics":         TestPanicInAHandlerClosesItsConnectionOnly,
		"a stop":                        TestStopClosesConnections,
		"dials that are given up":       TestAbandonedDialsLeaveNothing,
		"connects under way at the end": TestLoopWaitsForConnectsUnderWay,
		"a unix socket":                 TestUnixSocket,
		"its end with the loop":         TestUnixSocketEndsWithTheLoop,
		"names":                         TestNamesAreResolvedAtEachDial,
	} {
		t.Run(name, story)
	}
}

// A handshake that fails is told once, as a failed connect for its reason, and leaves nothing. A server that says nothing is told as
// that, not as one that cannot be reached.
func TestHandshakesThatFail(t *testing.T) {
	why := errors.New("not the right server")
	closed := make(chan error, 1)
	addr := server(t, func(nc net.Conn) {
		_, err := nc.Read(make([]byte, 1))
		closed <- err
	})
	r := started(t)
	for name, c := range map[string]struct {
		secure transport.Secure
		want   error
	}{
		"refused": {func(context.Context, net.Conn, string) (net.Conn, error) { return nil, why }, why},
		"mute": {func(ctx context.Context, _ net.Conn, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, transport.ErrNoHandshake
		}, transport.ErrNoHandshake},
		"slow": {func(ctx context.Context, _ net.Conn, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, transport.ErrConnectTimeout},
	} {
		p := newProbe()
		p.opts = transport.DialOptions{Secure: c.secure, ConnectTimeout: ms(50)}
		do(t, r, func() { p.dial(r, addr) })
		err := <-p.connected
		require.ErrorIs(t, err, c.want, name)
		assert.Equal(t, c.want == transport.ErrNoHandshake, errors.Is(err, transport.ErrNoHandshake), name)
		assert.ErrorContains(t, err, addr, name)
		assert.Equal(t, io.EOF, <-closed, name)
		settle(t, r)
		do(t, r, func() {
			assert.Equal(t, []string{"connect"}, p.calls, name)
			assert.Empty(t, r.secures, name)
		})
	}
}

// Close ends a handshake that is under way at once.
func TestCloseDuringAHandshake(t *testing.T) {
	addr, release, _ := mute(t)
	defer close(release)
	begun, left := make(chan struct{}), make(chan error, 1)
	r, p := started(t), newProbe()
	p.opts = transport.DialOptions{ConnectTimeout: time.Hour, Secure: func(ctx context.Context, _ net.Conn, _ string) (net.Conn, error) {
		close(begun)
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
		}
		left <- ctx.Err()
		return nil, context.Cause(ctx)
	}}
	do(t, r, func() { p.dial(r, addr) })
	<-begun
	do(t, r, func() { p.conn.Close(nil) })
	assert.ErrorIs(t, <-p.connected, transport.ErrClosed)
	assert.ErrorIs(t, <-left, context.Canceled)
}

// A secure connection keeps the bounds of its options: a peer that its handler leaves unread stops. Once it has ended, nothing is unsent,
// and the reactor has forgotten it.
func TestBoundsOfASecureConnection(t *testing.T) {
	const sent = 1 << 20
	addr := server(t, func(nc net.Conn) {
		_, _ = nc.Write(make([]byte, sent))
		_, _ = io.Copy(io.Discard, nc) // until the end
	})
	r, p := started(t), newProbe()
	p.opts = transport.DialOptions{Secure: asIs, UnreadMaxBytes: 1000, UnsentMaxBytes: 100}
	most := 0
	p.onData = func(data []byte) int { most = max(most, len(data)); return 0 }
	p.connect(t, r, addr)
	for full := false; !full; {
		do(t, r, func() { full = most > 1000 })
	}
	for range 100 {
		settle(t, r)
	}
	do(t, r, func() {
		assert.LessOrEqual(t, most, 1000+secureReadBytes)
		assert.NoError(t, p.conn.Write(make([]byte, 100)))
		assert.Equal(t, 100, p.conn.Unsent())
		p.conn.Close(nil)
		assert.Zero(t, p.conn.Unsent())
		assert.ErrorIs(t, p.conn.Write([]byte("x")), transport.ErrClosed)
	})
	assert.ErrorIs(t, <-p.closed, transport.ErrClosed)
	do(t, r, func() { assert.Empty(t, r.secures) })
}
