package session

import (
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/serve"
)

// times say since when a session waits for its client. Loop only.
type times struct {
	active     clock.Time // bytes came, or a reply was written
	incomplete clock.Time // a request began whose end is missing; zero: none
	written    int64      // bytes given to the connection
	gone       int64      // of these, taken by the client's socket when somebody looked last
	stuck      clock.Time // since when the client has not taken a piece; zero: nothing is unsent
	lingers    clock.Time // the connection waits for the client to end it; zero: it does not
}

// received notes that bytes have come. more says that a request among them was whole, incomplete that the last one is not.
func (t *times) received(now clock.Time, more, incomplete bool) {
	t.active = now
	switch {
	case !incomplete:
		t.incomplete = 0
	case more || t.incomplete == 0:
		t.incomplete = now
	}
}

// sent notes that a reply was written.
func (t *times) sent(now clock.Time, bytes int) {
	t.active = now
	t.written += int64(bytes)
}

// A sweep checks each session so many times within a timeout. It checks the sessions in so many portions, because ten
// thousand at once would hold up the loop for a millisecond.
const (
	looks    = 16
	portions = 8
)

// sweepEvery returns the time between two portions of a sweep.
func (o *Options) sweepEvery() time.Duration {
	shortest := min(o.ReadTimeout, o.WriteTimeout)
	for _, timeout := range [...]time.Duration{o.IdleTimeout, o.FirstTimeout} {
		if timeout > 0 {
			shortest = min(shortest, timeout)
		}
	}
	return min(max(shortest/looks/portions, time.Millisecond), time.Second/portions)
}

// sweep cuts off the sessions in the next portion that have waited too long for their clients. A timer for each
// session would have to be moved at each command.
func (v *lane) sweep() {
	now := v.loop.Now()
	for range (len(v.sessions) + portions - 1) / portions {
		v.swept = (v.swept + 1) % len(v.sessions)
		v.sessions[v.swept].CheckTimes(now)
	}
	if len(v.sessions) == 0 {
		v.sweeper.Stop()
	}
}

// freshGrace is how long a connection without a request stays when the server drains: it may have just come from the
// backlog, and its client needs some time to send.
const freshGrace = 100 * time.Millisecond

// lingerTimeout bounds the wait for a client to read the last reply, and to end the connection.
const lingerTimeout = time.Second

// late ends the session of a client that has kept it waiting.
func (s *Session) late(why serve.Cut) {
	s.count(why)
	s.times.incomplete = 0
	s.codec.Stop(Late)
	if s.farewell == nil {
		s.CutOff(why)
		return
	}
	s.proceed()
}

// CheckTimes cuts the session off if its client has kept it waiting for too long at that time. A sweep calls it.
func (s *Session) CheckTimes(now clock.Time) {
	t, o := &s.times, &s.server.options
	s.settle()
	unsent := s.conn.Unsent()
	gone := t.written - int64(unsent)
	switch {
	case unsent == 0:
		t.gone, t.stuck = gone, 0
	case t.stuck == 0 || gone-t.gone >= int64(max(o.PieceBytes, 1)):
		t.gone, t.stuck = gone, now
	case now.Sub(t.stuck) > o.WriteTimeout:
		s.CutOff(serve.CutSlowWrite)
		return
	}
	switch {
	case t.lingers != 0:
		if unsent == 0 && now.Sub(t.lingers) > lingerTimeout {
			s.conn.Close(nil)
		}
	case t.incomplete != 0:
		if now.Sub(t.incomplete) > o.ReadTimeout {
			s.late(serve.CutSlowRead)
		}
	case s.owed > 0 || s.backlog || unsent > 0:
	case s.turns == 0 && o.FirstTimeout > 0:
		if now.Sub(t.active) > o.FirstTimeout {
			s.late(serve.CutIdle)
		}
	case o.IdleTimeout > 0 && now.Sub(t.active) > o.IdleTimeout:
		s.late(serve.CutIdle)
	}
}
