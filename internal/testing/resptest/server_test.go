package resptest

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"
)

// patience is how long a test waits for what must come. A test that passes never waits that
// long.
const patience = 20 * time.Second

const pong = "+PONG\r\n"

// servers are the two kinds of Server: one that answers by itself, and one that is a proxy of
// the first.
var servers = []struct {
	name string
	new  func(t testing.TB) *Server
}{
	{"Server", newServer},
	{"Proxy", func(t testing.TB) *Server {
		proxy, err := NewProxy(newServer(t).Addr())
		require.NoError(t, err)
		t.Cleanup(proxy.Close)
		return proxy
	}},
}

func newServer(t testing.TB) *Server {
	s, err := NewServer(Followers)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// forEachKind runs a test for both kinds.
func forEachKind(t *testing.T, test func(t *testing.T, s *Server)) {
	for _, kind := range servers {
		t.Run(kind.name, func(t *testing.T) { test(t, kind.new(t)) })
	}
}

// A client is a connection with a deadline, so that a failing test does not hang.
type client struct {
	*net.TCPConn
	t testing.TB
}

func dial(t testing.TB, addr string) client {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	return client{conn.(*net.TCPConn), t}
}

// ask sends commands. Each is given as a line of words.
func (c client) ask(commands ...string) {
	c.t.Helper()
	var out []byte
	for _, command := range commands {
		words := strings.Fields(command)
		out = redcon.AppendArray(out, len(words))
		for _, w := range words {
			out = redcon.AppendBulkString(out, w)
		}
	}
	_, err := c.Write(out)
	require.NoError(c.t, err)
}

// expect reads exactly these bytes.
func (c client) expect(want string) {
	c.t.Helper()
	got := make([]byte, len(want))
	n, err := io.ReadFull(c, got)
	require.NoError(c.t, err, "after %q", got[:n])
	require.Equal(c.t, want, string(got))
}

// rest reads to the end of the stream. It returns what came and how the stream ended.
func (c client) rest() (string, error) {
	got, err := io.ReadAll(c)
	return string(got), err
}

func bulk(s string) string { return string(redcon.AppendBulkString(nil, s)) }

func TestAnswers(t *testing.T) {
	const user = "*2\r\n$7\r\ncountry\r\n$2\r\nBR\r\n"
	forEachKind(t, func(t *testing.T, s *Server) {
		c := dial(t, s.Addr())
		for _, tc := range []struct{ command, want string }{
			{"PING", pong},
			{"ping", pong},
			{"AUTH secret", "+OK\r\n"},
			{"CLIENT SETNAME x", "+OK\r\n"},
			{"GET a", bulk("a")},
			{"HGETALL user:7", user},
			{"LRANGE follow:7 0 1", "*2\r\n" + bulk("6008") + bulk("6009")},
			{"LRANGE media:8 0 0", "*1\r\n" + bulk("5009")},
			{"HGETALL user", "-ERR cannot answer HGETALL user\r\n"},
			{"LRANGE follow:x 0 1", "-ERR cannot answer LRANGE follow:x 0 1\r\n"},
			{"LRANGE follow:7 0 -1", "-ERR cannot answer LRANGE follow:7 0 -1\r\n"},
			{"FLUSHALL", "-ERR cannot answer FLUSHALL\r\n"},
		} {
			c.ask(tc.command)
			c.expect(tc.want)
		}
		c.ask("GET a", "PING", "GET b", "HGETALL user:7")
		c.expect(bulk("a") + pong + bulk("b") + user)
		assert.Equal(t, 1, s.Accepted())
		assert.Equal(t, 16, s.Commands())
	})
}

// TestCommandsInPieces splits a pipeline at every byte.
func TestCommandsInPieces(t *testing.T) {
	forEachKind(t, func(t *testing.T, s *Server) {
		c := dial(t, s.Addr())
		for _, b := range []byte("*2\r\n$3\r\nGET\r\n$5\r\na\r\nb \r\nPING\r\n\r\nPING\r\n") {
			_, err := c.Write([]byte{b})
			require.NoError(t, err)
		}
		c.expect(bulk("a\r\nb ") + pong + pong)
	})
}

func TestNonsenseEndsTheConnection(t *testing.T) {
	forEachKind(t, func(t *testing.T, s *Server) {
		c := dial(t, s.Addr())
		_, err := c.Write([]byte("*x\r\n"))
		require.NoError(t, err)
		got, _ := c.rest()
		assert.Empty(t, got)
	})
}

// errReset stands for a connection that was reset, whichever call noticed it.
var errReset error = syscall.ECONNRESET

// TestFaults asks for PING, GET abc and PING in one pipeline. The GET meets the fault.
func TestFaults(t *testing.T) {
	released := make(chan struct{})
	close(released)
	for _, tc := range []struct {
		name  string
		fault Fault
		want  string // up to the end, or for as long as the connection lasts
		end   error  // nil: the connection lasts
	}{
		{"None", nil, pong + bulk("abc") + pong, nil},
		{"Late", Late(30 * time.Millisecond), pong + bulk("abc") + pong, nil},
		{"Drip", Drip(time.Millisecond), pong + bulk("abc") + pong, nil},
		{"Split", Drip(0), pong + bulk("abc") + pong, nil},
		{"Held", Hold(released), pong + bulk("abc") + pong, nil},
		{"Instead", Instead("-LOADING wait\r\n"), pong + "-LOADING wait\r\n" + pong, nil},
		{"WrongType", Instead(":1\r\n"), pong + ":1\r\n" + pong, nil},
		{"Garbage", Garbage(), pong + "\x00\x17HTTP/1.1 400 Bad Request\r\n\r\n" + pong, nil},
		{"Excess", Excess(), pong + bulk("abc") + "+excess\r\n" + pong, nil},
		{"HugeBulk", HugeBulk("629145600"), pong + "$629145600\r\nthese bytes are the first of very many" + pong, nil},
		{"HalfThenLate", HalfThen(Late(time.Millisecond)), pong + bulk("abc") + pong, nil},
		{"Silence", Silence(), pong, nil},
		{"HalfThenSilence", HalfThen(Silence()), pong + "$3\r\n", nil},
		{"HalfClose", HalfClose(), pong, io.EOF},
		{"HalfThenHalfClose", HalfThen(HalfClose()), pong + "$3\r\n", io.EOF},
		{"LastWords", LastWords("-ERR go away\r\n"), pong + "-ERR go away\r\n", io.EOF},
		{"Hangup", Hangup(), pong, io.EOF},
		{"HalfThenHangup", HalfThen(Hangup()), pong + "$3\r\n", io.EOF},
		{"Reset", Reset(), "", errReset}, // and what came before may be lost
		{"HalfThenReset", HalfThen(Reset()), "", errReset},
	} {
		t.Run(tc.name, func(t *testing.T) {
			forEachKind(t, func(t *testing.T, s *Server) {
				s.Set(On(tc.fault, "GET"))
				c := dial(t, s.Addr())
				c.ask("PING", "GET abc", "PING")
				if tc.end == errReset {
					_, err := c.rest()
					require.ErrorIs(t, err, errReset)
				} else {
					c.expect(tc.want)
				}
				if tc.end == io.EOF {
					got, err := c.rest()
					require.NoError(t, err)
					require.Empty(t, got)
				}

				s.Set(nil)
				c = dial(t, s.Addr())
				c.ask("GET abc")
				c.expect(bulk("abc"))
			})
		})
	}
}

// TestSilenceLasts shows that a muted connection stays open and silent, and that its commands
// are read.
func TestSilenceLasts(t *testing.T) {
	forEachKind(t, func(t *testing.T, s *Server) {
		s.Set(On(Silence(), "GET"))
		c := dial(t, s.Addr())
		c.ask("PING", "GET a", "PING")
		c.expect(pong)
		s.Set(nil)
		c.ask("PING")
		// The answer on another connection shows that there was time for this one's.
		other := dial(t, s.Addr())
		for range 10 {
			other.ask("PING")
			other.expect(pong)
		}
		require.NoError(t, c.SetReadDeadline(time.Now()))
		got, err := c.rest()
		require.ErrorIs(t, err, errTimeout(err))
		assert.Empty(t, got)
	})
}

// errTimeout returns err if it is a timeout, and otherwise an error that err does not match.
func errTimeout(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return err
	}
	return errors.New("a timeout")
}

func TestLateRepliesAreLateTogether(t *testing.T) {
	const late, commands = 100 * time.Millisecond, 100
	forEachKind(t, func(t *testing.T, s *Server) {
		s.Set(Always(Late(late)))
		c := dial(t, s.Addr())
		start := time.Now()
		c.ask(strings.Split(strings.Repeat("PING,", commands-1)+"PING", ",")...)
		c.expect(strings.Repeat(pong, commands))
		took := time.Since(start)
		assert.GreaterOrEqual(t, took, late)
		assert.Less(t, took, commands*late/2, "one after another they would take %v", commands*late)
	})
}

func TestHoldWaitsForItsRelease(t *testing.T) {
	forEachKind(t, func(t *testing.T, s *Server) {
		release := make(chan struct{})
		s.Set(On(Hold(release), "GET"))
		c := dial(t, s.Addr())
		c.ask("PING", "GET a", "PING")
		c.expect(pong)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
		_, err := c.rest()
		require.ErrorIs(t, err, errTimeout(err))
		require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
		close(release)
		c.expect(bulk("a") + pong)
	})
}

func TestEndlessIsStoppedByTheClient(t *testing.T) {
	forEachKind(t, func(t *testing.T, s *Server) {
		s.Set(Always(Endless()))
		c := dial(t, s.Addr())
		c.ask("PING")
		c.expect("*1\r\n$500000000\r\n" + strings.Repeat("x", 1<<20))
	}) // and Close waits for the server to notice
}

func TestScripts(t *testing.T) {
	no := Instead("-NO\r\n")
	for _, tc := range []struct {
		name   string
		script Script
		want   string // the answers to PING, GET a, PING
	}{
		{"Always", Always(no), "-NO\r\n-NO\r\n-NO\r\n"},
		{"After1", After(1, no), pong + "-NO\r\n-NO\r\n"},
		{"After2", After(2, no), pong + bulk("a") + "-NO\r\n"},
		{"On", On(no, "SET", "GET"), pong + "-NO\r\n" + pong},
		{"OnAccept", OnAccept(no), "-NO\r\n" + pong + bulk("a") + pong},
		{"FirstConnection", func(e Event) Fault {
			if e.Conn == 1 && e.Command == 3 && e.Args[0] == "PING" {
				return no
			}
			return nil
		}, pong + bulk("a") + "-NO\r\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			forEachKind(t, func(t *testing.T, s *Server) {
				s.Set(tc.script)
				c := dial(t, s.Addr())
				c.ask("PING", "GET a", "PING")
				c.expect(tc.want)
			})
		})
	}
}

func TestDownAndUp(t *testing.T) {
	forEachKind(t, func(t *testing.T, s *Server) {
		addr := s.Addr()
		c := dial(t, addr)
		c.ask("PING")
		c.expect(pong)

		s.Down()
		s.Down()
		_, err := c.rest()
		require.ErrorIs(t, err, errReset)
		_, err = net.Dial("tcp", addr)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)

		require.NoError(t, s.Up())
		require.NoError(t, s.Up())
		assert.Equal(t, addr, s.Addr())
		c = dial(t, addr)
		c.ask("PING")
		c.expect(pong)

		s.Close()
		s.Close()
		assert.ErrorIs(t, s.Up(), net.ErrClosed)
	})
}

func TestProxyWithoutBackend(t *testing.T) {
	s := newServer(t)
	proxy, err := NewProxy(s.Addr())
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	c := dial(t, proxy.Addr())
	c.ask("PING")
	c.expect(pong)

	s.Down()
	_, err = c.rest()
	if err != nil { // It is closed. It is reset if the proxy noticed when it wrote to the backend.
		require.ErrorIs(t, err, errReset)
	}
	_, _ = dial(t, proxy.Addr()).rest() // ends

	require.NoError(t, s.Up())
	c = dial(t, proxy.Addr())
	c.ask("PING")
	c.expect(pong)
}

func TestProxyOfNoRedis(t *testing.T) {
	s := newServer(t)
	s.Set(Always(Garbage()))
	proxy, err := NewProxy(s.Addr())
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	c := dial(t, proxy.Addr())
	c.ask("PING")
	got, _ := c.rest()
	assert.Empty(t, got, "bytes that are not a reply are not passed on as one")
}

// TestCloseWhileBusy closes a server while its clients are in every state.
func TestCloseWhileBusy(t *testing.T) {
	forEachKind(t, func(t *testing.T, s *Server) {
		never := make(chan struct{})
		s.Set(func(e Event) Fault {
			switch {
			case e.Command == 0:
				return nil
			case e.Conn%4 == 0:
				return Hold(never)
			case e.Conn%4 == 1:
				return Late(time.Hour)
			case e.Conn%4 == 2:
				return Silence()
			default:
				return Endless()
			}
		})
		var clients sync.WaitGroup
		for range 8 {
			c := dial(t, s.Addr())
			c.ask("PING", "GET a")
			clients.Go(func() { _, _ = bufio.NewReader(c).WriteTo(io.Discard) })
		}
		s.Close()
		clients.Wait()
	})
}
