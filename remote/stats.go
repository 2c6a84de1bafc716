package remote

import (
	"errors"
	"sync/atomic"

	"github.com/rankd/rankd/loop"
)

// Stats counts what a client has done since it was built. A copy; any goroutine.
type Stats struct {
	Calls         uint64 // accepted
	Failed        uint64 // calls that ended with an error
	TimedOut      uint64 // of these, with ErrTimeout
	Cancelled     uint64 // of these, with loop.ErrCancelled
	Statuses      uint64 // of these, with ErrStatus
	TooLarge      uint64 // of these, with ErrTooLarge
	Connects      uint64 // attempts to connect
	BytesSent     uint64 // bodies of requests that got an answer
	BytesReceived uint64 // bodies of answers
	Inflight      int    // requests on their way, now
	Waiting       int    // calls in line, now
}

// counters are the Stats of a Service. Any goroutine.
type counters struct {
	calls, failed, timedOut, cancelled, statuses, tooLarge, connects, bytesSent, bytesReceived atomic.Uint64
}

// ended counts the end of a call.
func (c *counters) ended(err error) {
	if err == nil {
		return
	}
	c.failed.Add(1)
	switch {
	case errors.Is(err, ErrTimeout):
		c.timedOut.Add(1)
	case errors.Is(err, loop.ErrCancelled):
		c.cancelled.Add(1)
	case errors.Is(err, ErrStatus):
		c.statuses.Add(1)
	case errors.Is(err, ErrTooLarge):
		c.tooLarge.Add(1)
	}
}

func (c *counters) stats() Stats {
	return Stats{
		Calls: c.calls.Load(), Failed: c.failed.Load(), TimedOut: c.timedOut.Load(), Cancelled: c.cancelled.Load(),
		Statuses: c.statuses.Load(), TooLarge: c.tooLarge.Load(), Connects: c.connects.Load(),
		BytesSent: c.bytesSent.Load(), BytesReceived: c.bytesReceived.Load(),
	}
}
