package respfront

import (
	"log/slog"
	"time"

	"github.com/rankd/rankd/internal/version"
)

// The defaults of Options.
const (
	DefaultMaxConnections  = 10_000
	DefaultMaxCommandBytes = 1 << 20
	DefaultMaxArguments    = 1024
	DefaultMaxPipeline     = 128
	DefaultMaxBacklogBytes = 16 << 20
	DefaultMaxUnreadBytes  = 256 << 20
	DefaultMaxUnsentBytes  = 256 << 10
	DefaultIdleTimeout     = time.Hour
	DefaultReadTimeout     = 10 * time.Second
	DefaultWriteTimeout    = 10 * time.Second
)

// Options bound a front. A field that is zero means its default. Immutable once given to New.
type Options struct {
	// MaxConnections bounds the connections that are open. A further one gets an error reply and is closed.
	MaxConnections int
	// MaxCommandBytes bounds one command with its arguments; a longer one ends its connection. The most is 512 MiB.
	MaxCommandBytes int
	// MaxArguments bounds the arguments of one command, its name among them.
	MaxArguments int
	// MaxPipeline bounds the requests of one connection that run, or whose replies wait for their turn. Commands
	// behind them wait unread.
	MaxPipeline int
	// MaxBacklogBytes bounds what waits unread, beside one command. A client that sends more loses its connection.
	MaxBacklogBytes int
	// MaxUnreadBytes bounds what waits unread, or is half a command, on all connections together. Beyond it a client that has more
	// than 16 KiB of it, and sends more, loses its connection.
	MaxUnreadBytes int
	// MaxUnsentBytes bounds the replies that wait for a client to read them. From there on no further command of that connection
	// begins, and the replies of the requests that run wait. A single reply may be longer.
	MaxUnsentBytes int
	// IdleTimeout is how long a connection may stay without a command. A negative one means for ever.
	IdleTimeout time.Duration
	// ReadTimeout is how long a command may take from its first byte to its last, and a TLS handshake.
	ReadTimeout time.Duration
	// WriteTimeout is how long a client may take no byte of what waits for it.
	WriteTimeout time.Duration
	// CancelAtEOF cancels the requests of a client that stops sending. Otherwise it gets its replies: over TCP a client
	// that has closed its socket looks the same, until it answers the first reply with a reset.
	CancelAtEOF bool
	// Version is rankd's version in INFO. Empty means the one that the build has recorded.
	Version string
	// Logger receives what no reply reports, such as a lack of descriptors. Nil means slog.Default().
	Logger *slog.Logger
}

// commandBytesMost is the most that MaxCommandBytes may be, as in Redis.
const commandBytesMost = 512 << 20

func (o Options) withDefaults() Options {
	for _, f := range [...]struct {
		value    *int
		standard int
	}{
		{&o.MaxConnections, DefaultMaxConnections},
		{&o.MaxCommandBytes, DefaultMaxCommandBytes},
		{&o.MaxArguments, DefaultMaxArguments},
		{&o.MaxPipeline, DefaultMaxPipeline},
		{&o.MaxBacklogBytes, DefaultMaxBacklogBytes},
		{&o.MaxUnreadBytes, DefaultMaxUnreadBytes},
		{&o.MaxUnsentBytes, DefaultMaxUnsentBytes},
	} {
		if *f.value <= 0 {
			*f.value = f.standard
		}
	}
	o.MaxCommandBytes = min(o.MaxCommandBytes, commandBytesMost)
	if o.IdleTimeout == 0 {
		o.IdleTimeout = DefaultIdleTimeout
	}
	if o.ReadTimeout <= 0 {
		o.ReadTimeout = DefaultReadTimeout
	}
	if o.WriteTimeout <= 0 {
		o.WriteTimeout = DefaultWriteTimeout
	}
	if o.Version == "" {
		o.Version = version.Read().Module
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}
