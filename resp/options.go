package resp

import (
	"math"
	"time"

	"github.com/rankd/rankd/reactor/transport"
)

// Options say which server a client talks to and within which bounds. All but Addr
// may be zero, which means the default. Immutable once given to a client.
type Options struct {
	Addr string // "host:port", or "unix:/path" for a unix socket

	// ClientName is shown by CLIENT LIST. Empty means none.
	ClientName string
	// LibName and LibVersion are shown by CLIENT LIST of Redis 7.2 and later. Empty means none.
	LibName, LibVersion string
	// Username and Password go into AUTH on each new connection. Without a password
	// there is no AUTH. No username means the default user.
	Username, Password string
	// Database is selected on each new connection, if it is not 0.
	Database int

	// MaxInflight bounds the commands sent and unanswered, over all connections of
	// the client. Zero means 1024. Further commands wait in FIFO order.
	MaxInflight int
	// MaxWaiting bounds the calls that wait to be sent. Zero means 65,536, at some
	// 400 bytes each. If more wait, the server is far too slow for the load, and Do returns
	// ErrQueueFull.
	MaxWaiting int
	// Connections is the number of connections. Zero means 1. A blocking.Client always
	// has 1.
	Connections int

	// ConnectTimeout bounds one attempt to connect, with AUTH and SELECT, and how
	// long a call waits while there is no connection, pauses included. Zero means 1 s.
	ConnectTimeout time.Duration
	// RequestTimeout bounds a call, from Do to its last reply. Zero means 1 s.
	RequestTimeout time.Duration
	// StallTimeout is the age of the oldest unanswered command at which the client gives up a
	// connection, so that a hung server does not hold the in-flight slots for ever. Zero means
	// twice RequestTimeout: the command's call timed out long before, and so did all others that
	// were sent with it.
	StallTimeout time.Duration

	// BackoffMin and BackoffMax bound the pause after a failure: an attempt that made
	// no connection, or a connection that ended before it had answered a call and been
	// ready for BackoffMax. The pause doubles from failure to failure. Zero means
	// 10 ms and 250 ms. The upper bound is low on purpose: a server may be back for so long
	// before the client notices.
	BackoffMin, BackoffMax time.Duration
	// Seed seeds the jitter of the pauses. Jitter cuts each by up to half, so that
	// many processes do not return at once. One seed gives one sequence.
	Seed uint64

	// UnsentMaxBytes and UnreadMaxBytes bound what a connection buffers, see
	// transport.DialOptions. Zero means 64 MiB each. The replies to one batch have
	// to fit into UnreadMaxBytes.
	UnsentMaxBytes, UnreadMaxBytes int

	// Limits bound what a reply may look like.
	Limits Limits
}

// WithDefaults returns o with a default in each field that is zero. A client calls it once, when
// it is built.
func (o Options) WithDefaults() Options {
	setDefault(&o.MaxInflight, 1024)
	setDefault(&o.MaxWaiting, 64<<10)
	setDefault(&o.Connections, 1)
	setDefault(&o.ConnectTimeout, time.Second)
	setDefault(&o.RequestTimeout, time.Second)
	setDefault(&o.StallTimeout, 2*o.RequestTimeout)
	setDefault(&o.BackoffMin, 10*time.Millisecond)
	setDefault(&o.BackoffMax, max(o.BackoffMin, 250*time.Millisecond))
	setDefault(&o.UnsentMaxBytes, 64<<20)
	setDefault(&o.UnreadMaxBytes, 64<<20)
	o.UnreadMaxBytes = min(o.UnreadMaxBytes, math.MaxInt32) // A tape's offsets have 32 bits.
	o.Limits = o.Limits.withDefaults()
	return o
}

// setDefault sets *field to value unless it is positive.
func setDefault[T int | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

func (o *Options) dialOptions() transport.DialOptions {
	return transport.DialOptions{
		ConnectTimeout: o.ConnectTimeout,
		UnsentMaxBytes: o.UnsentMaxBytes,
		UnreadMaxBytes: o.UnreadMaxBytes,
	}
}

// partSize returns how many of the remaining commands of a batch of size commands are
// sent at once: all, unless the batch exceeds the in-flight bound. Then it is a
// quarter of the bound, so that later parts are on their way while the first is
// being answered.
func (o *Options) partSize(size, remaining int) int {
	if size <= o.MaxInflight {
		return remaining
	}
	return min(remaining, max(1, o.MaxInflight/4))
}
