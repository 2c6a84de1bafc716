package resptest

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newDelay(t testing.TB, backend string, oneWay time.Duration) *Delay {
	d, err := NewDelay(backend, oneWay)
	require.NoError(t, err)
	t.Cleanup(d.Close)
	return d
}

func TestDelayOfARoundTrip(t *testing.T) {
	s := newServer(t)
	for _, oneWay := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond} {
		t.Run(oneWay.String(), func(t *testing.T) {
			c := dial(t, newDelay(t, s.Addr(), oneWay).Addr())
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
	c := dial(t, newDelay(t, newServer(t).Addr(), oneWay).Addr())
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
	c := dial(t, newDelay(t, ln.Addr().String(), time.Millisecond).Addr())
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
		fault Fault
		want  error
	}{
		{"EOF", Hangup(), nil},
		{"Reset", Reset(), errReset},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t)
			s.Set(Always(tc.fault))
			c := dial(t, newDelay(t, s.Addr(), time.Millisecond).Addr())
			c.ask("PING")
			_, err := c.rest()
			require.ErrorIs(t, err, tc.want)
		})
	}
}

func TestDelayWithoutBackend(t *testing.T) {
	s := newServer(t)
	d := newDelay(t, s.Addr(), time.Millisecond)
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
	s.Set(On(Endless(), "GET"))
	d := newDelay(t, s.Addr(), time.Hour)
	dial(t, d.Addr())
	dial(t, d.Addr()).ask("PING")
	near := newDelay(t, s.Addr(), 0)
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
			c := dial(b, newDelay(b, s.Addr(), oneWay).Addr())
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
	s.Set(Always(Endless()))
	for _, oneWay := range []time.Duration{0, 5 * time.Millisecond} {
		b.Run(fmt.Sprintf("oneWay=%v", oneWay), func(b *testing.B) {
			const block = 1 << 20
			buf := make([]byte, block)
			d := newDelay(b, s.Addr(), oneWay)
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
