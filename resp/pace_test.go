package resp

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/loop/clock"
)

// TestNoServerIsDialedWithoutPauses: calls come all the time, and each kind of server
// ends each connection in its own way. The pauses reach BackoffMax and stay there.
func TestNoServerIsDialedWithoutPauses(t *testing.T) {
	const (
		length = 5 * time.Second
		step   = time.Millisecond
		// The pauses before BackoffMax are 10, 20, 40, 80 and 160 ms; all pauses are cut
		// by up to half.
		most  = 1 + 5 + int(length/(125*time.Millisecond))
		least = int(length / (250*time.Millisecond + 101*step))
	)
	for _, c := range []struct {
		name  string
		opts  Options
		setUp func(n *network)
		turn  func(n *network) // after each step
	}{
		{"refuses the dial", Options{}, func(n *network) { n.refuse = errors.New("refused") }, nil},
		{"hangs up at once", Options{}, func(n *network) { n.mute = true }, hangUpLast},
		{"answers once and hangs up", Options{}, nil, hangUpLast},
		{"answers for 100 ms and hangs up", Options{}, nil, func(n *network) {
			if n.last().writes == 100 {
				n.last().hangUp()
			}
		}},
		{"answers twice to each command", Options{},
			func(n *network) { n.greet = func([]string) ([]byte, bool) { return []byte("+a\r\n+b\r\n"), true } }, nil},
		{"answers in another language", Options{},
			func(n *network) { n.greet = func([]string) ([]byte, bool) { return []byte("HTTP/1.1 400\r\n"), true } }, nil},
		{"refuses the password", Options{Password: "p"},
			func(n *network) { n.greet = func([]string) ([]byte, bool) { return []byte("-WRONGPASS\r\n"), true } }, nil},
		{"has no such database", Options{Database: 9},
			func(n *network) {
				n.greet = func([]string) ([]byte, bool) { return []byte("-ERR out of range\r\n"), true }
			}, nil},
		{"hangs up in the greeting", Options{Password: "p"}, func(n *network) { n.mute = true }, hangUpLast},
		{"hangs up after half a greeting", Options{Password: "p", Database: 9}, func(n *network) { n.mute = true },
			func(n *network) {
				if p := n.last(); len(p.answers) == 2 {
					p.answer(1)
					p.hangUp()
				}
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(t)
			if c.setUp != nil {
				c.setUp(n)
			}
			client := newClient(n, c.opts)
			call, o := get(t, "a", 1)
			calls := 0
			for end := n.h.Clock.Now().Add(length); n.h.Clock.Now() < end; n.advance(step) {
				if o.done == calls {
					require.NoError(t, client.Do(call))
					calls++
					n.settle()
				}
				if c.turn != nil {
					c.turn(n)
					n.settle()
				}
			}
			assert.LessOrEqual(t, int(client.Stats().Connects), most)
			assert.GreaterOrEqual(t, int(client.Stats().Connects), least, "the client goes on trying")
			checkInvariants(t, client)
		})
	}
}

func hangUpLast(n *network) {
	if p := n.last(); p.connected && p.commands > 0 {
		p.hangUp()
	}
}

// firstPause is as long as the pause after the first failure may be.
const firstPause = 10 * time.Millisecond

func TestPace(t *testing.T) {
	// A life is one connection, or an attempt to make one.
	type life struct {
		ready    bool
		answered bool
		length   time.Duration // from ready to the end
		pause    time.Duration // that has to follow, before its jitter
	}
	const (
		ms     = time.Millisecond
		steady = 100 * ms // BackoffMax
	)
	refused := func(pause time.Duration) life { return life{pause: pause} }
	for _, c := range []struct {
		name  string
		lives []life
	}{
		{"the pause doubles up to BackoffMax",
			[]life{refused(10 * ms), refused(20 * ms), refused(40 * ms), refused(80 * ms), refused(steady), refused(steady)}},
		{"an answer alone proves nothing",
			[]life{refused(10 * ms), refused(20 * ms), {true, true, 0, 40 * ms}, {true, true, steady - 1, 80 * ms}}},
		{"time alone proves nothing",
			[]life{refused(10 * ms), {true, false, steady, 20 * ms}, {true, false, time.Hour, 40 * ms}}},
		{"both do, and the pauses start anew",
			[]life{refused(10 * ms), refused(20 * ms), {true, true, steady, 0}, refused(10 * ms), refused(20 * ms)}},
		{"each connection proves itself alone",
			[]life{{true, true, time.Hour, 0}, {true, true, ms, 10 * ms}, {true, false, time.Hour, 20 * ms}, refused(40 * ms)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := clock.Time(time.Second)
			p := newPace(&Options{BackoffMin: 10 * ms, BackoffMax: steady}, rand.New(rand.NewPCG(1, 0)))
			require.Zero(t, p.retryAt, "the first attempt is free")
			for i, l := range c.lives {
				if l.ready {
					p.ready(now)
					now = now.Add(l.length)
				}
				if l.answered {
					p.answered = true
				}
				p.ended(now)
				assert.LessOrEqual(t, p.retryAt.Sub(now), l.pause, "life %d", i)
				assert.GreaterOrEqual(t, p.retryAt.Sub(now), l.pause/2, "life %d", i)
				now = max(now, p.retryAt)
			}
		})
	}
}

func TestPausesComeFromTheSeedAndNeverOverflow(t *testing.T) {
	pauses := func(seed uint64, lower, upper time.Duration) (all []time.Duration) {
		o := Options{BackoffMin: lower, BackoffMax: upper}.withDefaults()
		p := newPace(&o, rand.New(rand.NewPCG(seed, 0)))
		for range 100 {
			p.ended(1)
			all = append(all, p.retryAt.Sub(1))
		}
		return all
	}
	assert.Equal(t, pauses(1, 0, 0), pauses(1, 0, 0))
	assert.NotEqual(t, pauses(1, 0, 0), pauses(2, 0, 0))
	for _, p := range pauses(1, 5*time.Second, 0)[50:] {
		assert.GreaterOrEqual(t, p, 5*time.Second/2)
		assert.LessOrEqual(t, p, 5*time.Second)
	}
	for _, p := range pauses(1, time.Hour, time.Second) {
		assert.LessOrEqual(t, p, time.Second, "BackoffMax holds for a larger BackoffMin")
	}
}

// TestProvenConnectionIsReplacedAtOnce: it also ends the row of failures.
func TestProvenConnectionIsReplacedAtOnce(t *testing.T) {
	n := newNetwork(t)
	c := newClient(n, Options{})
	call, o := get(t, "a", 1)
	redo := func() {
		t.Helper()
		require.NoError(t, c.Do(call))
		n.settle()
	}
	n.refuse = errors.New("refused")
	for range 8 {
		redo()
		n.advance(250 * time.Millisecond)
	}
	n.refuse = nil
	redo()
	n.advance(250 * time.Millisecond) // The connection is made within this.
	n.advance(250 * time.Millisecond)
	redo()
	require.NoError(t, o.err)
	done, dialed := o.done, len(n.conns)

	n.last().hangUp()
	n.settle()
	redo()
	require.Equal(t, done+1, o.done, "without a pause")
	require.Len(t, n.conns, dialed+1)

	n.last().hangUp() // too early for that one
	n.settle()
	redo()
	require.Equal(t, done+1, o.done)
	n.advance(firstPause)
	require.Equal(t, done+2, o.done, "the pauses begin with BackoffMin again")
	require.NoError(t, o.err)
}

// TestWaitForAConnectionCountsFromItsLoss: a call that has waited behind others for long
// has ConnectTimeout from the loss of the connection on.
func TestWaitForAConnectionCountsFromItsLoss(t *testing.T) {
	for _, c := range []struct {
		name string
		back bool // a connection is made in time
	}{{"made in time", true}, {"not made", false}} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(t)
			n.mute = true
			client := newClient(n, Options{
				MaxInflight: 1, ConnectTimeout: 100 * time.Millisecond,
				RequestTimeout: time.Hour, StallTimeout: time.Hour,
			})
			sent, osent := get(t, "sent", 1)
			waiting, owaiting := get(t, "waiting", 1)
			require.NoError(t, client.Do(sent))
			require.NoError(t, client.Do(waiting))
			n.advance(time.Minute)
			n.silent = true
			n.last().hangUp()
			n.settle()
			osent.requireError(t, ErrConnectionLost, "EOF")

			// The timer of another call looks at all that wait.
			short, oshort := get(t, "short", 1)
			short.Deadline = n.h.Clock.Now().Add(50 * time.Millisecond)
			require.NoError(t, client.Do(short))
			n.advance(99 * time.Millisecond)
			oshort.requireError(t, ErrTimeout, "not connected: EOF")
			require.Zero(t, owaiting.done)
			if c.back {
				n.last().connected = true
				n.last().handler.OnConnect(nil)
				n.settle()
				require.Equal(t, 1, n.last().commands)
				return
			}
			n.advance(time.Millisecond)
			owaiting.requireError(t, ErrConnect, "EOF")
		})
	}
}

// A blocking client follows the same pace. Its clock stands still here, so that a pause of
// an hour ends when the test says so.
func TestSyncPace(t *testing.T) {
	const pause = time.Hour
	// answerOnce hangs up on the second command.
	answerOnce := func(s *session) {
		if args := s.command(); args != nil {
			_, _ = s.Write(redcon.AppendBulkString(nil, args[len(args)-1]))
			s.command()
		}
	}
	open := func(t *testing.T, scripts ...script) (*SyncClient, *clock.Manual) {
		clk := clock.NewManual()
		c := NewSyncClient(clk, Options{
			Addr: serve(t, scripts...).addr(), BackoffMin: pause, BackoffMax: pause, RequestTimeout: time.Minute,
		})
		t.Cleanup(c.Close)
		return c, clk
	}
	// lose runs calls until one finds the end of the connection.
	lose := func(t *testing.T, c *SyncClient) {
		_, err := syncGet(t, c, "lost", 1, 0)
		require.ErrorIs(t, err, ErrConnectionLost)
	}
	answered := func(t *testing.T, c *SyncClient) {
		text, err := syncGet(t, c, "a", 1, 0)
		require.NoError(t, err)
		require.Equal(t, got("a", 1), text)
	}
	soon := func(clk *clock.Manual) clock.Time { return clk.Now().Add(10 * time.Millisecond) }

	t.Run("a server that answers once and hangs up", func(t *testing.T) {
		c, clk := open(t, answerOnce)
		clk.Advance(pause) // The time before the connection does not count.
		answered(t, c)
		lose(t, c)
		for range 100 {
			_, err := syncGet(t, c, "b", 1, clk.Now().Add(time.Millisecond/10))
			require.ErrorIs(t, err, ErrTimeout)
			require.ErrorContains(t, err, "not connected: ")
		}
		assert.Equal(t, uint64(1), c.Stats().Connects)
		clk.Advance(pause)
		answered(t, c)
		assert.Equal(t, uint64(2), c.Stats().Connects)
	})
	t.Run("a proven connection is replaced at once", func(t *testing.T) {
		c, clk := open(t, answerOnce)
		answered(t, c)
		clk.Advance(pause)
		lose(t, c)
		answered(t, c)
		assert.Equal(t, uint64(2), c.Stats().Connects)
	})
	t.Run("refused dials", func(t *testing.T) {
		s := serve(t, echo)
		s.close()
		clk := clock.NewManual()
		c := NewSyncClient(clk, Options{Addr: s.addr(), BackoffMin: pause, BackoffMax: pause})
		defer c.Close()
		_, err := syncGet(t, c, "a", 1, 0)
		require.ErrorIs(t, err, ErrConnect)
		for range 10 {
			_, err = syncGet(t, c, "a", 1, soon(clk))
			require.ErrorIs(t, err, ErrTimeout)
			require.ErrorContains(t, err, "not connected: dial tcp")
		}
		assert.Equal(t, uint64(1), c.Stats().Connects)
	})
	t.Run("a pause longer than ConnectTimeout", func(t *testing.T) {
		c, _ := open(t, hangUp)
		lose(t, c)
		c.opts.ConnectTimeout = 10 * time.Millisecond // Too short for the first attempt on a busy machine.
		_, err := syncGet(t, c, "a", 1, 0)
		require.ErrorIs(t, err, ErrConnect)
		require.ErrorContains(t, err, "not connected: ")
	})
	t.Run("a greeting that is refused", func(t *testing.T) {
		c := NewSyncClient(clock.NewManual(), Options{
			Addr: serve(t, say("-WRONGPASS no\r\n")).addr(), Password: "p", BackoffMin: pause, BackoffMax: pause,
			ConnectTimeout: 10 * time.Second, RequestTimeout: 10 * time.Second,
		})
		defer c.Close()
		_, err := syncGet(t, c, "a", 1, 0)
		require.ErrorIs(t, err, ErrConnect)
		_, err = syncGet(t, c, "a", 1, c.clock.Now().Add(10*time.Millisecond))
		require.ErrorIs(t, err, ErrTimeout)
		require.ErrorContains(t, err, "not connected: WRONGPASS no")
		assert.Equal(t, uint64(1), c.Stats().Connects)
	})
	t.Run("Close ends the pause", func(t *testing.T) {
		c, _ := open(t, hangUp)
		lose(t, c)
		var other sync.WaitGroup
		other.Go(func() {
			_, err := syncGet(t, c, "a", 1, 0)
			assert.ErrorIs(t, err, ErrClosed)
		})
		require.Eventually(t, func() bool { return len(c.turn) == 0 }, 10*time.Second, time.Millisecond)
		c.Close()
		other.Wait()
	})
}

// TestSyncPoolPlacesHaveTheirOwnJitter: they do not all come back at once.
func TestSyncPoolPlacesHaveTheirOwnJitter(t *testing.T) {
	s := serve(t, echo)
	s.close()
	p := NewSyncPool(clock.NewManual(), Options{
		Addr: s.addr(), Connections: 4, BackoffMin: time.Hour, BackoffMax: time.Hour,
	})
	defer p.Close()
	pauses := map[clock.Time]bool{}
	for _, c := range p.all {
		_, err := syncGet(t, c, "a", 1, 0)
		require.ErrorIs(t, err, ErrConnect)
		pauses[c.pace.retryAt] = true
	}
	assert.Len(t, pauses, 4)
}
