package blocking

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/resp"
)

// TestBackoff checks that a blocking client follows the backoff. The clock stands still, so a
// pause of an hour ends when the test says so.
func TestBackoff(t *testing.T) {
	const pause = time.Hour
	// answerOnce hangs up on the second command.
	answerOnce := func(s *session) {
		if args := s.command(); args != nil {
			_, _ = s.Write(redcon.AppendBulkString(nil, args[len(args)-1]))
			s.command()
		}
	}
	open := func(t *testing.T, scripts ...script) (*Client, *clock.Manual) {
		clk := clock.NewManual()
		c := NewClient(clk, resp.Options{
			Addr: serve(t, scripts...).addr(), BackoffMin: pause, BackoffMax: pause, RequestTimeout: time.Minute,
		})
		t.Cleanup(c.Close)
		return c, clk
	}
	// lose runs calls until one finds the end of the connection.
	lose := func(t *testing.T, c *Client) {
		_, err := get(t, c, "lost", 1, 0)
		require.ErrorIs(t, err, resp.ErrConnectionLost)
	}
	answered := func(t *testing.T, c *Client) {
		text, err := get(t, c, "a", 1, 0)
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
			_, err := get(t, c, "b", 1, clk.Now().Add(time.Millisecond/10))
			require.ErrorIs(t, err, resp.ErrTimeout)
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
		c := NewClient(clk, resp.Options{Addr: s.addr(), BackoffMin: pause, BackoffMax: pause})
		defer c.Close()
		_, err := get(t, c, "a", 1, 0)
		require.ErrorIs(t, err, resp.ErrConnect)
		for range 10 {
			_, err = get(t, c, "a", 1, soon(clk))
			require.ErrorIs(t, err, resp.ErrTimeout)
			require.ErrorContains(t, err, "not connected: dial tcp")
		}
		assert.Equal(t, uint64(1), c.Stats().Connects)
	})
	t.Run("a pause longer than ConnectTimeout", func(t *testing.T) {
		c, _ := open(t, hangUp)
		lose(t, c)
		c.opts.ConnectTimeout = 10 * time.Millisecond // These bounds are too short for the first attempt on a busy machine.
		_, err := get(t, c, "a", 1, 0)
		require.ErrorIs(t, err, resp.ErrConnect)
		require.ErrorContains(t, err, "not connected: ")
	})
	t.Run("a greeting that is refused", func(t *testing.T) {
		c := NewClient(clock.NewManual(), resp.Options{
			Addr: serve(t, say("-WRONGPASS no\r\n")).addr(), Password: "p", BackoffMin: pause, BackoffMax: pause,
			ConnectTimeout: 10 * time.Second, RequestTimeout: 10 * time.Second,
		})
		defer c.Close()
		_, err := get(t, c, "a", 1, 0)
		require.ErrorIs(t, err, resp.ErrConnect)
		_, err = get(t, c, "a", 1, c.clock.Now().Add(10*time.Millisecond))
		require.ErrorIs(t, err, resp.ErrTimeout)
		require.ErrorContains(t, err, "not connected: WRONGPASS (")
		assert.Equal(t, uint64(1), c.Stats().Connects)
	})
	t.Run("Close ends the pause", func(t *testing.T) {
		c, _ := open(t, hangUp)
		lose(t, c)
		var other sync.WaitGroup
		other.Go(func() {
			_, err := get(t, c, "a", 1, 0)
			assert.ErrorIs(t, err, resp.ErrClosed)
		})
		require.Eventually(t, func() bool { return len(c.idle) == 0 }, 10*time.Second, time.Millisecond)
		c.Close()
		other.Wait()
	})
}

// TestConnectionsHaveTheirOwnJitter: they do not all come back at once.
func TestConnectionsHaveTheirOwnJitter(t *testing.T) {
	s := serve(t, echo)
	s.close()
	p := NewClient(clock.NewManual(), resp.Options{
		Addr: s.addr(), Connections: 4, BackoffMin: time.Hour, BackoffMax: time.Hour,
	})
	defer p.Close()
	pauses := map[clock.Time]bool{}
	for _, cn := range p.conns {
		_, err := get(t, p, "a", 1, 0)
		require.ErrorIs(t, err, resp.ErrConnect)
		pauses[cn.backoff.RetryAt()] = true
	}
	assert.Len(t, pauses, 4)
}
