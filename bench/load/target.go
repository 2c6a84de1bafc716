package load

// Target answers requests under load. Any goroutine.
type Target interface {
	// NewClient returns a client that reports to answered. The client calls answered once per
	// Send, on any goroutine, never inside Send; err is nil if the request succeeded.
	// answered may call Send and does not block.
	NewClient(answered func(err error)) Client
	// Close waits for requests in flight and frees the target's resources.
	Close()
}

// Client sends one request at a time: the next one only after the last one is answered. One
// goroutine at a time.
type Client interface {
	Send(user int64)
}

// Versioned is a target that reads versions: the only entry of a list in Redis for each user. It reads them in the way in which it reads lists for its
// plan, perhaps from memory. Any goroutine.
type Versioned interface {
	// VersionKey returns the key of the list.
	VersionKey(user int64) string
	// ReadVersion reads the version of a user and calls done, on any goroutine.
	ReadVersion(user int64, done func(version int64, err error))
}

// Traffic counts the traffic between a target and Redis. Immutable.
type Traffic struct {
	RoundTrips    uint64 `json:"round_trips"`              // batches of commands sent to the server
	Asked         uint64 `json:"commands_asked,omitempty"` // commands that nodes asked for; absent if the target does not count them
	Commands      uint64 `json:"commands"`                 // commands sent
	BytesSent     uint64 `json:"bytes_sent"`
	BytesReceived uint64 `json:"bytes_received"`
	Cache         *Cache `json:"cache,omitempty"` // absent if the target keeps nothing of what it has read
}

// Cache counts what a target takes from memory in place of reading it. Immutable.
type Cache struct {
	Hits        uint64  `json:"hits"` // values
	Misses      uint64  `json:"misses"`
	Invalidated uint64  `json:"invalidated"` // values that were dropped since their keys changed
	Evicted     uint64  `json:"evicted"`     // values that left because others came
	Bytes       uint64  `json:"bytes"`       // taken now
	HitAge      float64 `json:"hit_age_s"`   // of all hits together
}

// Sub returns what was counted between two readings, and the bytes of the later one.
func (c *Cache) Sub(before *Cache) *Cache {
	if c == nil || before == nil {
		return c
	}
	return &Cache{
		Hits: c.Hits - before.Hits, Misses: c.Misses - before.Misses, Invalidated: c.Invalidated - before.Invalidated,
		Evicted: c.Evicted - before.Evicted, Bytes: c.Bytes, HitAge: c.HitAge - before.HitAge,
	}
}

// Sub returns the traffic between two readings.
func (t Traffic) Sub(before Traffic) Traffic {
	return Traffic{
		RoundTrips: t.RoundTrips - before.RoundTrips, Asked: t.Asked - before.Asked, Commands: t.Commands - before.Commands,
		BytesSent: t.BytesSent - before.BytesSent, BytesReceived: t.BytesReceived - before.BytesReceived,
		Cache: t.Cache.Sub(before.Cache),
	}
}

// Reporting is a target that has figures of its own. Any goroutine.
type Reporting interface {
	// BeginFigures forgets what was seen before. Callers call it while no request is in flight.
	BeginFigures()
	// Figures returns the figures since then, which encode as JSON. Callers call it while no
	// request is in flight.
	Figures() any
}

// Counting is a target that counts its traffic from its opening on. Any goroutine.
type Counting interface {
	// Traffic returns the counters. Callers call it while no request is in flight.
	Traffic() Traffic
}
