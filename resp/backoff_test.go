package resp

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop/clock"
)

// TestNoServerIsDialedWithoutPauses: calls come all the time, and each kind of server ends each
// connection in its own way. The pauses grow to BackoffMax and stay there.
func TestNoServerIsDialedWithoutPauses(t *testing.T) {
	const (
		length = 5 * time.Second
		step   = time.Millisecond
		// The pauses before BackoffMax are 10, 20, 40, 80 and 160 ms. Jitter cuts each pause by
		// up to half.
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

// firstPause is the longest pause that may follow the first failure.
const firstPause = 10 * time.Millisecond

func TestBackoff(t *testing.T) {
	// A life is one connection, or an attempt to make one.
	type life struct {
		ready    bool
		answered bool
		length   time.Duration // from ready to the end
		pause    time.Duration // the pause that must follow, before jitter
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
			p := NewBackoff(&Options{BackoffMin: 10 * ms, BackoffMax: steady}, rand.New(rand.NewPCG(1, 0)))
			require.Zero(t, p.retryAt, "the first attempt is free")
			for i, l := range c.lives {
				if l.ready {
					p.Ready(now)
					now = now.Add(l.length)
				}
				if l.answered {
					p.Answered()
				}
				p.Ended(now)
				assert.LessOrEqual(t, p.retryAt.Sub(now), l.pause, "life %d", i)
				assert.GreaterOrEqual(t, p.retryAt.Sub(now), l.pause/2, "life %d", i)
				now = max(now, p.retryAt)
			}
		})
	}
}

func TestPausesComeFromTheSeedAndNeverOverflow(t *testing.T) {
	pauses := func(seed uint64, lower, upper time.Duration) (all []time.Duration) {
		o := Options{BackoffMin: lower, BackoffMax: upper}.WithDefaults()
		p := NewBackoff(&o, rand.New(rand.NewPCG(seed, 0)))
		for range 100 {
			p.Ended(1)
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

// TestProvenConnectionIsReplacedAtOnce: a connection that has proven itself also ends the
// series of failures.
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
	n.advance(250 * time.Millisecond) // The connection is made within this time.
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

// TestWaitForAConnectionCountsFromItsLoss: a call has long waited for earlier calls. From the
// loss of the connection on, it waits for ConnectTimeout.
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

			// The timer of another call looks at all calls that wait.
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
