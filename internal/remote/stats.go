package remote

import (
	"errors"
	"sync"

	"github.com/rankd/rankd/loop"
)

// Stats counts what a client has done since it was built. The fields with a name in JSON are those that --metrics
// prints. A copy; any goroutine.
type Stats struct {
	Calls         uint64 `json:"calls"`          // accepted
	Failed        uint64 `json:"failed"`         // calls that ended with an error
	TimedOut      uint64 `json:"timed_out"`      // of these, with ErrTimeout
	Cancelled     uint64 `json:"-"`              // of these, with loop.ErrCancelled
	Statuses      uint64 `json:"statuses"`       // of these, with ErrStatus
	TooLarge      uint64 `json:"too_large"`      // of these, with ErrTooLarge
	Paused        uint64 `json:"paused"`         // calls that a pause has refused, or ended in line
	Connects      uint64 `json:"connects"`       // attempts to connect
	BytesSent     uint64 `json:"bytes_sent"`     // bodies of requests that got an answer
	BytesReceived uint64 `json:"bytes_received"` // bodies of answers
	Inflight      int    `json:"-"`              // requests on their way, now
	Waiting       int    `json:"-"`              // calls in line, now
}

// counters are the Stats of a Service. Any goroutine.
type counters struct {
	mu    sync.Mutex
	stats Stats
}

func (c *counters) count(change func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.stats)
}

func (c *counters) counted() (s Stats) {
	c.count(func(now *Stats) { s = *now })
	return s
}

// ended counts the end of a call.
func (s *Stats) ended(err error) {
	if err == nil {
		return
	}
	s.Failed++
	switch {
	case errors.Is(err, ErrTimeout):
		s.TimedOut++
	case errors.Is(err, loop.ErrCancelled):
		s.Cancelled++
	case errors.Is(err, ErrStatus):
		s.Statuses++
	case errors.Is(err, ErrTooLarge):
		s.TooLarge++
	}
}
