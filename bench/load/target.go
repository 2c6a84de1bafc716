package load

// Target is what load is put on. Any goroutine.
type Target interface {
	// NewClient returns a client that reports to answered. answered is called once for each
	// Send, on any goroutine, never inside Send; err is nil if the request
	// succeeded. It may call Send, and does not block.
	NewClient(answered func(err error)) Client
	// Close waits for requests in flight and frees what the target holds.
	Close()
}

// Client sends requests, one at a time: a request is sent when the last one has been
// answered. One goroutine at a time.
type Client interface {
	Send(user int64)
}

// Traffic counts what went between a target and Redis.
type Traffic struct {
	RoundTrips    uint64 `json:"round_trips"` // times that commands left, together, for the server
	Commands      uint64 `json:"commands"`
	BytesSent     uint64 `json:"bytes_sent"`
	BytesReceived uint64 `json:"bytes_received"`
}

// Sub returns the traffic between two readings.
func (t Traffic) Sub(before Traffic) Traffic {
	return Traffic{
		RoundTrips: t.RoundTrips - before.RoundTrips, Commands: t.Commands - before.Commands,
		BytesSent: t.BytesSent - before.BytesSent, BytesReceived: t.BytesReceived - before.BytesReceived,
	}
}

// Counting is a target that counts its traffic since it was opened.
type Counting interface {
	// Traffic returns the counters. It is called while nothing is in flight.
	Traffic() Traffic
}
