package simnet_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/loopsim"
	"github.com/rankd/rankd/internal/testing/simnet"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/reactor/transport"
)

const addr = "server:1"

// stage is a network with an echo server. It notes what its clients are told.
type stage struct {
	t    *testing.T
	sim  *loopsim.Sim
	net  *simnet.Net
	peer *simnet.Peer // accepted last
	got  []byte       // by the server
	gone int          // connections that the server saw end
}

func newStage(t *testing.T, seed uint64, cfg simnet.Config) *stage {
	s := &stage{t: t}
	rng := rand.New(rand.NewPCG(seed, 0))
	s.sim = loopsim.New(rng, func(recovered any, stack []byte) { t.Errorf("panic: %v\n%s", recovered, stack) })
	if cfg.Latency == nil {
		cfg.Latency = func() time.Duration { return time.Duration(rng.IntN(1000)) * time.Microsecond }
	}
	s.net = simnet.New(s.sim, rng, cfg)
	s.net.Listen(addr, func(p *simnet.Peer) {
		s.peer = p
		p.OnData = func(data []byte) int {
			s.got = append(s.got, data...)
			p.Write(data)
			return len(data)
		}
		p.OnClose = func() { s.gone++ }
	})
	return s
}

func (s *stage) play() {
	s.t.Helper()
	for {
		require.NoError(s.t, s.sim.Settle())
		at, ok := s.sim.Next()
		if !ok {
			return
		}
		s.sim.MoveTo(at)
	}
}

// client notes what it is told, and checks the order.
type client struct {
	t       *testing.T
	inCall  *bool
	consume func(data []byte) int // nil: everything
	events  []string
	err     error // of OnConnect or OnClose
	data    []byte
	kept    [][]byte // views that should have been dropped
	open    bool
	ended   bool
}

func (s *stage) dial(c *client, addr string, opts transport.DialOptions) transport.Conn {
	c.t, c.inCall = s.t, new(bool)
	*c.inCall = true
	conn := s.net.Dial(addr, opts, c)
	*c.inCall = false
	return conn
}

func (c *client) told(what string, err error) {
	assert.False(c.t, *c.inCall, "%s inside a call", what)
	assert.False(c.t, c.ended, "%s after the end", what)
	c.events = append(c.events, what)
	if err != nil {
		c.err, c.ended = err, true
	}
}

func (c *client) OnConnect(err error) {
	c.told("connect", err)
	assert.Len(c.t, c.events, 1)
	c.open = err == nil
}

func (c *client) OnData(data []byte) int {
	assert.True(c.t, c.open)
	c.told("data", nil)
	c.kept = append(c.kept, data)
	n := len(data)
	if c.consume != nil {
		n = c.consume(data)
	}
	c.data = append(c.data, data[:n]...)
	return n
}

func (c *client) OnClose(reason error) {
	assert.True(c.t, c.open)
	require.Error(c.t, reason)
	c.told("close", reason)
}

func TestBytesArriveInOrderWhateverTheSplits(t *testing.T) {
	for seed := range uint64(50) {
		s := newStage(t, seed, simnet.Config{Split: 0.7})
		c := &client{}
		conn := s.dial(c, addr, transport.DialOptions{})
		var sent []byte
		for i := range 20 {
			part := fmt.Appendf(nil, "message %d;", i)
			sent = append(sent, part...)
			require.NoError(t, conn.Write(part)) // the first ones before it is connected
			if i%3 == 0 {
				require.NoError(t, s.sim.Settle())
			}
			if at, ok := s.sim.Next(); ok && i%5 == 0 {
				s.sim.MoveTo(at)
			}
		}
		assert.Positive(t, conn.Unsent())
		s.play()
		assert.Zero(t, conn.Unsent())
		assert.Equal(t, string(sent), string(s.got))
		assert.Equal(t, string(sent), string(c.data))
		for _, view := range c.kept {
			assert.NotContains(t, string(view), "message", "bytes that were handed over stay")
		}
		assert.Equal(t, 1, s.net.Open())
		require.NoError(t, s.sim.Stop())
		assert.Equal(t, "close", c.events[len(c.events)-1])
		assert.ErrorIs(t, c.err, loop.ErrStopped)
		assert.Zero(t, s.net.Open())
	}
}

func TestUnconsumedBytesAreHandedOverAgain(t *testing.T) {
	s := newStage(t, 3, simnet.Config{Split: 0.9})
	c := &client{consume: func(data []byte) int { return bytes.LastIndexByte(data, ';') + 1 }}
	conn := s.dial(c, addr, transport.DialOptions{})
	require.NoError(t, conn.Write([]byte("one;two;three;rest")))
	s.play()
	assert.Equal(t, "one;two;three;", string(c.data))
	assert.Greater(t, len(c.kept), 1)
}

func TestDialFailures(t *testing.T) {
	for name, test := range map[string]struct {
		cfg  simnet.Config
		addr string
		down bool
		full bool
		want error
	}{
		"nobody listens": {addr: "elsewhere:1", want: syscall.ECONNREFUSED},
		"refused":        {addr: addr, cfg: simnet.Config{Refuse: 1}, want: syscall.ECONNREFUSED},
		"down":           {addr: addr, down: true, want: syscall.ECONNREFUSED},
		"full":           {addr: addr, full: true, want: syscall.ECONNREFUSED},
		"ignored":        {addr: addr, cfg: simnet.Config{Ignore: 1}, want: transport.ErrConnectTimeout},
		"too slow": {addr: addr, want: transport.ErrConnectTimeout,
			cfg: simnet.Config{Latency: func() time.Duration { return time.Second }}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, 1, test.cfg)
			s.net.SetDown(addr, test.down)
			s.net.SetFull(addr, test.full)
			start := s.sim.Now()
			c := &client{}
			conn := s.dial(c, test.addr, transport.DialOptions{ConnectTimeout: 50 * time.Millisecond})
			require.NoError(t, conn.Write([]byte("queued")))
			s.play()
			assert.Equal(t, []string{"connect"}, c.events)
			assert.ErrorIs(t, c.err, test.want)
			assert.LessOrEqual(t, s.sim.Now().Sub(start), 50*time.Millisecond)
			assert.ErrorIs(t, conn.Write([]byte("x")), transport.ErrClosed)
			assert.Empty(t, s.got)
			assert.Zero(t, s.net.Open())
		})
	}
}

func TestCloseIsToldOnceAndTheHandleIsInert(t *testing.T) {
	reason := errors.New("enough")
	t.Run("while connecting", func(t *testing.T) {
		s := newStage(t, 1, simnet.Config{})
		c := &client{}
		conn := s.dial(c, addr, transport.DialOptions{})
		*c.inCall = true
		conn.Close(reason)
		conn.Close(nil)
		*c.inCall = false
		s.play()
		assert.Equal(t, []string{"connect"}, c.events)
		assert.Equal(t, reason, c.err)
	})
	t.Run("while open", func(t *testing.T) {
		s := newStage(t, 1, simnet.Config{})
		c := &client{}
		conn := s.dial(c, addr, transport.DialOptions{})
		s.play()
		require.NoError(t, conn.Write([]byte("last words")))
		*c.inCall = true
		conn.Close(nil)
		conn.Close(reason)
		*c.inCall = false
		require.ErrorIs(t, conn.Write([]byte("x")), transport.ErrClosed)
		s.play()
		assert.Equal(t, []string{"connect", "close"}, c.events, "and no answer to what was written")
		assert.ErrorIs(t, c.err, transport.ErrClosed)
		assert.Equal(t, "last words", string(s.got))
		assert.Equal(t, 1, s.gone)
	})
	t.Run("by the server", func(t *testing.T) {
		s := newStage(t, 1, simnet.Config{})
		c := &client{}
		s.dial(c, addr, transport.DialOptions{})
		s.play()
		s.peer.Write([]byte("bye"))
		s.peer.Close(nil)
		s.peer.Close(nil)
		s.play()
		s.peer.Write([]byte("to nobody"))
		s.play()
		assert.Equal(t, io.EOF, c.err)
		assert.Equal(t, 1, s.gone)
		assert.Equal(t, "close", c.events[len(c.events)-1])
	})
}

func TestLimits(t *testing.T) {
	t.Run("unsent", func(t *testing.T) {
		s := newStage(t, 1, simnet.Config{})
		c := &client{}
		conn := s.dial(c, addr, transport.DialOptions{UnsentMaxBytes: 10})
		require.NoError(t, conn.Write(make([]byte, 10)))
		assert.ErrorIs(t, conn.Write([]byte{1}), transport.ErrUnsentLimit)
		s.play()
		assert.ErrorIs(t, c.err, transport.ErrUnsentLimit)
	})
	t.Run("unread", func(t *testing.T) {
		s := newStage(t, 1, simnet.Config{})
		c := &client{consume: func([]byte) int { return 0 }}
		conn := s.dial(c, addr, transport.DialOptions{UnreadMaxBytes: 10})
		require.NoError(t, conn.Write(make([]byte, 11)))
		s.play()
		assert.ErrorIs(t, c.err, transport.ErrUnreadLimit)
	})
}

func TestServerDownLosesConnectionsAndComesBack(t *testing.T) {
	s := newStage(t, 1, simnet.Config{})
	c := &client{}
	s.dial(c, addr, transport.DialOptions{})
	s.play()
	s.net.SetDown(addr, true)
	s.play()
	assert.ErrorIs(t, c.err, syscall.ECONNRESET)
	assert.Equal(t, 1, s.gone)
	s.net.SetDown(addr, false)
	again := &client{}
	conn := s.dial(again, addr, transport.DialOptions{})
	require.NoError(t, conn.Write([]byte("hello")))
	s.play()
	assert.Equal(t, "hello", string(again.data))
}

// Each side has read a prefix of what the other has sent, whatever is lost, and hears of the
// end once.
func TestLossCutsTheStreamAnywhere(t *testing.T) {
	message := []byte("0123456789abcdefghijklmnopqrstuvwxyz")
	cut := map[int]bool{}
	for seed := range uint64(200) {
		s := newStage(t, seed, simnet.Config{Loss: 0.4, Split: 0.5})
		c := &client{}
		conn := s.dial(c, addr, transport.DialOptions{})
		require.NoError(t, conn.Write(message))
		s.play()
		require.True(t, bytes.HasPrefix(message, s.got), "%q", s.got)
		require.True(t, bytes.HasPrefix(s.got, c.data), "%q", c.data)
		if c.ended {
			assert.ErrorIs(t, c.err, syscall.ECONNRESET)
			assert.Equal(t, 1, s.gone)
			cut[len(s.got)] = true
		} else {
			assert.Equal(t, string(message), string(c.data))
		}
	}
	assert.Greater(t, len(cut), 10, "places at which the stream was cut")
}

func TestOneSeedOneSchedule(t *testing.T) {
	run := func(seed uint64) string {
		s := newStage(t, seed, simnet.Config{Loss: 0.1, Split: 0.6})
		c := &client{}
		conn := s.dial(c, addr, transport.DialOptions{})
		for range 5 {
			_ = conn.Write([]byte("some more bytes to be cut"))
			require.NoError(t, s.sim.Settle())
		}
		s.play()
		return fmt.Sprint(c.events, c.err, len(c.kept), string(s.got), s.sim.Now())
	}
	different := false
	for seed := range uint64(10) {
		require.Equal(t, run(seed), run(seed))
		different = different || run(seed) != run(seed+1)
	}
	assert.True(t, different)
}
