package delay

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/internal/testing/resptest"
)

const patience = 20 * time.Second // ends a test that hangs

const pong = "+PONG\r\n"

func newServer(t testing.TB) *resptest.Server {
	s, err := resptest.NewServer(resptest.Followers)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
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

func startProxy(t testing.TB, backend string, oneWay time.Duration) *Proxy {
	d, err := New(backend, oneWay)
	require.NoError(t, err)
	t.Cleanup(d.Close)
	return d
}

func TestDelayOfARoundTrip(t *testing.T) {
	s := newServer(t)
	for _, oneWay := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond} {
		t.Run(oneWay.String(), func(t *testing.T) {
			c := dial(t, startProxy(t, s.Addr(), oneWay).Addr())
			for range 3 {
				start := time.Now()
				c.ask("PING")
				c.expect(pong)
				assert.GreaterOrEqual(t, time.Since(start), 2*oneWay)
			}
		})
	}
}

// TestDelayDoesNotSerialise sends commands one by one without waiting for answers.
func TestDelayDoesNotSerialise(t *testing.T) {
	const oneWay, commands = 50 * time.Millisecond, 200
	c := dial(t, startProxy(t, newServer(t).Addr(), oneWay).Addr())
	start := time.Now()
	for range commands {
		c.ask("PING")
	}
	c.expect(string(bytes.Repeat([]byte(pong), commands)))
	assert.Less(t, time.Since(start), commands*oneWay/2, "one after another they would take twice that")
}

// TestDelayPassesAllBytes sends a long stream through, in odd pieces, to an echo.
func TestDelayPassesAllBytes(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	echoed := make(chan error, 1)
	go func() {
		conn, err := ln.Accept()
		if err == nil {
			_, err = io.Copy(conn, conn)
			_ = conn.Close()
		}
		echoed <- err
	}()
	c := dial(t, startProxy(t, ln.Addr().String(), time.Millisecond).Addr())
	random := rand.New(rand.NewPCG(1, 2))
	want := make([]byte, 4<<20)
	for i := range want {
		want[i] = byte(random.Uint32())
	}
	sent := make(chan error, 1)
	go func() {
		for rest := want; len(rest) > 0; {
			n := min(len(rest), 1+random.IntN(100_000))
			if _, err := c.Write(rest[:n]); err != nil {
				sent <- err
				return
			}
			rest = rest[n:]
		}
		sent <- c.CloseWrite()
	}()
	got, err := io.ReadAll(c) // until the echo closes, which follows the client's half-close
	require.NoError(t, err)
	require.NoError(t, <-sent)
	require.NoError(t, <-echoed)
	require.NoError(t, ln.Close())
	assert.True(t, bytes.Equal(want, got))
}

func TestDelayPassesTheEnd(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault resptest.Fault
		want  error
	}{
		{"EOF", resptest.Hangup(), nil},
		{"Reset", resptest.Reset(), syscall.ECONNRESET},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t)
			s.Set(resptest.Always(tc.fault))
			c := dial(t, startProxy(t, s.Addr(), time.Millisecond).Addr())
			c.ask("PING")
			_, err := c.rest()
			require.ErrorIs(t, err, tc.want)
		})
	}
}

func TestDelayWithoutBackend(t *testing.T) {
	s := newServer(t)
	d := startProxy(t, s.Addr(), time.Millisecond)
	s.Down()
	got, _ := dial(t, d.Addr()).rest()
	assert.Empty(t, got)
	require.NoError(t, s.Up())
	c := dial(t, d.Addr())
	c.ask("PING")
	c.expect(pong)
}

// TestDelayCloses closes a proxy while bytes are on their way, to a side that does not read,
// and with nothing to do.
func TestDelayCloses(t *testing.T) {
	s := newServer(t)
	s.Set(resptest.On(resptest.Endless(), "GET"))
	d := startProxy(t, s.Addr(), time.Hour)
	dial(t, d.Addr())
	dial(t, d.Addr()).ask("PING")
	near := startProxy(t, s.Addr(), 0)
	c := dial(t, near.Addr())
	c.ask("GET a")
	c.expect("*1\r\n")
	near.Close()
	d.Close()
	d.Close()
}

func TestAlarmCloses(t *testing.T) {
	a, err := newAlarm()
	require.NoError(t, err)
	woken := make(chan bool)
	go func() { woken <- a.wait(time.Now().Add(time.Hour)) }()
	a.close()
	a.close()
	assert.False(t, <-woken)
}

func TestCompactKeepsTheQueue(t *testing.T) {
	queue := []int{1, 2, 3, 4, 5}
	for head := range len(queue) + 1 {
		got, at := compact(append([]int(nil), queue...), head)
		assert.Equal(t, queue[head:], append([]int{}, got[at:]...), "head %d", head)
		assert.LessOrEqual(t, at, len(got)-at, "no more is kept than is used")
	}
}

// BenchmarkDelayRoundTrip reports how much longer than the delay a round trip takes.
func BenchmarkDelayRoundTrip(b *testing.B) {
	s := newServer(b)
	for _, oneWay := range []time.Duration{0, 500 * time.Microsecond, 5 * time.Millisecond} {
		b.Run(fmt.Sprintf("oneWay=%v", oneWay), func(b *testing.B) {
			c := dial(b, startProxy(b, s.Addr(), oneWay).Addr())
			require.NoError(b, c.SetDeadline(time.Time{}))
			buf := make([]byte, len(pong))
			for b.Loop() {
				_, _ = c.Write([]byte("PING\r\n"))
				if _, err := io.ReadFull(c, buf); err != nil {
					b.Fatal(err)
				}
			}
			over := b.Elapsed()/time.Duration(b.N) - 2*oneWay
			b.ReportMetric(float64(over)/1e3, "µs-over")
		})
	}
}

// BenchmarkDelayStream reports the throughput of one direction.
func BenchmarkDelayStream(b *testing.B) {
	s := newServer(b)
	s.Set(resptest.Always(resptest.Endless()))
	for _, oneWay := range []time.Duration{0, 5 * time.Millisecond} {
		b.Run(fmt.Sprintf("oneWay=%v", oneWay), func(b *testing.B) {
			const block = 1 << 20
			buf := make([]byte, block)
			d := startProxy(b, s.Addr(), oneWay)
			b.SetBytes(block)
			left := 0
			var c client
			for b.Loop() {
				if left < block {
					if c.TCPConn != nil {
						_ = c.Close()
					}
					c = dial(b, d.Addr())
					c.ask("PING")
					left = 400 << 20
				}
				if _, err := io.ReadFull(c, buf); err != nil {
					b.Fatal(err)
				}
				left -= block
			}
		})
	}
}
