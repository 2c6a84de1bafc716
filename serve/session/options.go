package session

import (
	"cmp"
	"time"
)

// The defaults of Options.
const (
	DefaultMaxConnections  = 10_000
	DefaultMaxRequestBytes = 1 << 20
	DefaultMaxPipeline     = 128
	DefaultMaxBacklogBytes = 16 << 20
	DefaultMaxUnreadBytes  = 256 << 20
	DefaultMaxUnsentBytes  = 256 << 10
	DefaultIdleTimeout     = time.Hour
	DefaultReadTimeout     = 10 * time.Second
	DefaultWriteTimeout    = 10 * time.Second
)

// Options bound the sessions of a server. A field that is zero means its default. Immutable once given to New.
type Options struct {
	// MaxConnections bounds the connections that are open. A further one gets an error reply and is closed.
	MaxConnections int
	// MaxRequestBytes bounds one request with its body; a longer one ends its connection. The most is 512 MiB.
	MaxRequestBytes int
	// MaxPipeline bounds the requests of one connection that run, or whose replies wait for their turn. Later
	// requests wait unread.
	MaxPipeline int
	// MaxBacklogBytes bounds what waits unread, beside one request. A client that sends more loses its connection.
	MaxBacklogBytes int
	// MaxUnreadBytes bounds unread bytes and incomplete requests on all connections together. Beyond it a client that
	// has more than 16 KiB of them, and sends more, loses its connection.
	MaxUnreadBytes int
	// MaxUnsentBytes bounds the replies that wait for a client to read them. Beyond it no further request of that
	// connection begins, and replies of running requests wait. A single reply may be longer.
	MaxUnsentBytes int
	// IdleTimeout is how long a connection may stay without a request. A negative one means for ever.
	IdleTimeout time.Duration
	// FirstTimeout is how long a connection may stay before its first request. Zero means IdleTimeout.
	FirstTimeout time.Duration
	// ReadTimeout is how long a request may take from its first byte to its last, and a TLS handshake.
	ReadTimeout time.Duration
	// WriteTimeout is how long a client may take to read PieceBytes of its replies, or what is left of them.
	WriteTimeout time.Duration
	// PieceBytes is what WriteTimeout counts for. Zero means one byte.
	PieceBytes int
	// HoldBack makes a client that sends more than MaxBacklogBytes ahead wait, instead of cutting it off.
	HoldBack bool
	// CancelAtEOF cancels the requests of a client that stops sending. Otherwise the client gets its replies: over
	// TCP a client that has closed its socket looks the same, until it answers the first reply with a reset.
	CancelAtEOF bool
	// Loops is the number of loops that the sessions have to themselves, from 1 to 64. Zero: they run on the engine's.
	Loops int
}

// requestBytesMost is the most that MaxRequestBytes may be, as in Redis.
const requestBytesMost = 512 << 20

// WithDefaults returns the options that count.
func (o Options) WithDefaults() Options {
	for _, f := range [...]struct {
		value    *int
		standard int
	}{
		{&o.MaxConnections, DefaultMaxConnections},
		{&o.MaxRequestBytes, DefaultMaxRequestBytes},
		{&o.MaxPipeline, DefaultMaxPipeline},
		{&o.MaxBacklogBytes, DefaultMaxBacklogBytes},
		{&o.MaxUnreadBytes, DefaultMaxUnreadBytes},
		{&o.MaxUnsentBytes, DefaultMaxUnsentBytes},
	} {
		if *f.value <= 0 {
			*f.value = f.standard
		}
	}
	o.MaxRequestBytes = min(o.MaxRequestBytes, requestBytesMost)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, DefaultIdleTimeout)
	if o.ReadTimeout <= 0 {
		o.ReadTimeout = DefaultReadTimeout
	}
	if o.WriteTimeout <= 0 {
		o.WriteTimeout = DefaultWriteTimeout
	}
	return o
}
