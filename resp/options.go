package resp

import (
	"math"
	"time"

	"github.com/rankd/rankd/reactor/transport"
)

// DefaultMaxReplyBytes is the default of Options.MaxReplyBytes.
const DefaultMaxReplyBytes = 64 << 20

// MaxReplyBytesLimit is the largest Options.MaxReplyBytes: a tape's offsets have 32 bits.
const MaxReplyBytesLimit = math.MaxInt32

// Options say which server a client talks to and within which bounds. All but Addr
// may be zero, which means the default. Immutable once given to a client.
type Options struct {
	Addr string // "host:port", or "unix:/path" for a unix socket
	// Master says that Addr lists sentinels, "host:port,host:port", and that the server is the master which they know
	// by this name. A connection to a server that is not a master is refused. Empty: Addr is the server.
	Master string

	// Sentinel says that the server is a sentinel. Errors say so.
	Sentinel bool

	// Sentinels say how those that Addr lists are reached, with Master.
	Sentinels SentinelOptions
	// ReadFrom says which nodes of a Redis Cluster answer reads. Empty: masters.
	ReadFrom ReadFrom
	// ReplicaMaxLagBytes bounds how many bytes of its master's writes a replica may lack that is read. Zero means any number.
	ReplicaMaxLagBytes int64
	// ReadsReplica says that the server is a replica in a Redis Cluster, and answers reads (READONLY). One that refuses is not connected to.
	ReadsReplica bool

	// Identify, if set, makes each new connection ask the server for its id in a Redis Cluster (CLUSTER MYID). It takes the
	// id, or why the server has told none, and its error refuses the connection. The owner of the connection calls it.
	Identify func(id string, err error) error

	// Secure adds TLS to each new connection: see transport.DialOptions. Nil means no TLS.
	Secure transport.Secure

	// ClientName is shown by CLIENT LIST. Empty means none.
	ClientName string
	// LibName and LibVersion are shown by CLIENT LIST of Redis 7.2 and later. Empty means none.
	LibName, LibVersion string
	// Username and Password go into AUTH on each new connection. Without a password
	// there is no AUTH. No username means the default user.
	Username, Password string
	// Login, if set, returns both for each new connection instead: for passwords that change. It is called off the
	// loop, and may take as long as ConnectTimeout allows. Its error fails the attempt to connect.
	Login func() (username, password string, err error)
	// Database is selected on each new connection, if it is not 0.
	Database int

	// MaxInflight bounds the commands sent and unanswered, over all connections of
	// the client. Zero means 1024. Further commands wait: calls of one Flow in order, and
	// flows in turns. A call of more than a quarter of MaxInflight (and more than 16) leaves in
	// parts, and all such calls together have half of it.
	MaxInflight int
	// MaxWaiting bounds the calls that wait to be sent. Zero means 65,536, at some
	// 400 bytes each. If more wait, the server is far too slow for the load, and Do returns
	// ErrQueueFull.
	MaxWaiting int
	// Connections is the number of connections. Zero means 1.
	Connections int

	// ConnectTimeout bounds one attempt to connect, with AUTH and SELECT, and how
	// long a call waits while there is no connection, pauses included. Zero means 1 s.
	ConnectTimeout time.Duration
	// RequestTimeout bounds how long the server may send no byte while commands of a call are out, or while there is
	// no connection. A call that waits behind others has only its Deadline. Zero means 1 s.
	RequestTimeout time.Duration
	// StallTimeout bounds how long the server may send no byte while any command is out. Then the client gives up the
	// connection, so that a hung server does not hold the in-flight slots forever. Zero means twice RequestTimeout:
	// by then all calls with commands there have timed out.
	StallTimeout time.Duration

	// BackoffMin and BackoffMax bound the pause after a failure: an attempt that made no connection, or a connection
	// that ended before it had answered a call and been ready for BackoffMax. The pause doubles from failure to
	// failure. Zero means 10 ms and 250 ms. The upper bound is low on purpose: a client may notice that late that a
	// server is back.
	BackoffMin, BackoffMax time.Duration
	// Seed seeds the jitter of the pauses. Jitter cuts each by up to half, so that
	// many processes do not return at once. One seed gives one sequence.
	Seed uint64

	// UnsentMaxBytes bounds the commands that a connection buffers, see transport.DialOptions. Zero
	// means 64 MiB.
	UnsentMaxBytes int
	// MaxReplyBytes bounds the replies to one call. A call whose replies grow beyond it fails with
	// ErrTooLarge. Zero means DefaultMaxReplyBytes; the most is 2 GiB.
	MaxReplyBytes int
	// NoCoalesceReads sends every command. Otherwise equal reads of the same iteration that have not been sent are
	// one command.
	NoCoalesceReads bool

	// OnTurn is called when all masters of a Redis Cluster have changed, or when a node answers for another cluster. The
	// client calls it on the loop, or on some goroutine, and it must not wait. Nil: nobody is told.
	OnTurn func(ClusterTurn)
	// OnDenied is called when a server denies what the client needs beside its calls: READONLY and INFO of nodes that may
	// be read in place of a master, SUBSCRIBE of sentinels, the id of a node (ErrUnidentified). No call fails for it. err is
	// told once for each server until the server has done it. It is called on the loop, or on some goroutine, and must not wait.
	OnDenied func(addr string, err error)

	// Limits bound what a reply may look like.
	Limits Limits
}

// SentinelOptions say how sentinels are reached; the fields are those of Options. Immutable once given to a client.
type SentinelOptions struct {
	Secure             transport.Secure
	Username, Password string
	Login              func() (username, password string, err error)
}

// ReadFrom says which nodes of a Redis Cluster answer the commands that ReadOnly knows. All others go to masters.
type ReadFrom string

// The nodes that answer reads.
const (
	ReadMaster  ReadFrom = ""        // the master
	ReadReplica ReadFrom = "replica" // a replica; the master, if none may be read
	ReadNearest ReadFrom = "nearest" // of the master and its replicas that may be read, the one with the shortest round trip
)

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
	setDefault(&o.MaxReplyBytes, DefaultMaxReplyBytes)
	o.MaxReplyBytes = min(o.MaxReplyBytes, MaxReplyBytesLimit)
	o.Limits = o.Limits.withDefaults()
	if o.OnTurn == nil {
		o.OnTurn = func(ClusterTurn) {}
	}
	if o.OnDenied == nil {
		o.OnDenied = func(string, error) {}
	}
	return o
}

// setDefault sets *field to value unless it is positive.
func setDefault[T int | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

func (o *Options) dialOptions() transport.DialOptions {
	timeout := o.ConnectTimeout
	if o.Secure != nil {
		// The attempt ends before the calls that wait for it, because only the attempt knows how far the handshake came.
		timeout -= timeout / handshakeShare
	}
	return transport.DialOptions{
		ConnectTimeout: timeout,
		UnsentMaxBytes: o.UnsentMaxBytes,
		UnreadMaxBytes: math.MaxInt, // The client bounds replies by call.
		Secure:         o.Secure,
	}
}

// handshakeShare is the part of ConnectTimeout by which an attempt with TLS ends earlier.
const handshakeShare = 10

// wholeCommands is the largest number of commands that leave in one part.
func (o *Options) wholeCommands() int { return min(o.MaxInflight, max(firstPart, o.MaxInflight/4)) }

// partCommands is the largest number of commands in a part of a large call.
func (o *Options) partCommands() int { return max(1, o.MaxInflight/16) }

// bulkCommands bounds the commands that all large calls together have in flight.
func (o *Options) bulkCommands() int { return max(1, o.MaxInflight/2) }

// A ClusterTurn says that a node answers for another Redis Cluster: by a map that shares no master with the last one, or by its
// id. Immutable; any goroutine.
type ClusterTurn struct {
	Asked   string   // the address of the node that has answered
	Err     error    // why a connection to it was refused; nil: it has answered a map
	Masters []string // their addresses
	Refused bool     // the last map stays: neither a node that the user has named nor most nodes say so, or Err is set
}
