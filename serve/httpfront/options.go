package httpfront

import (
	"errors"
	"fmt"
	"time"

	"github.com/rankd/rankd/serve/access"
	"github.com/rankd/rankd/serve/session"
)

// The defaults of Options.
const (
	DefaultMaxConnections  = 10_000
	DefaultMaxHeaderBytes  = 4 << 10 // each connection keeps as much after its first request
	DefaultMaxRequestBytes = 1 << 20
	DefaultMaxBodyBytes    = 64 << 20
	DefaultBatchInflight   = 16
	DefaultIdleTimeout     = 75 * time.Second // longer than proxies keep an unused connection
	DefaultReadTimeout     = 10 * time.Second
	DefaultWriteTimeout    = 10 * time.Second
)

// Options bound a front. The zero value of a field means its default. New reads Options once. One goroutine at a time.
type Options struct {
	// MaxConnections bounds the open connections. A further one gets 503 and is closed.
	MaxConnections int
	// MaxHeaderBytes bounds the request line and the headers together. Beyond: 431.
	MaxHeaderBytes int
	// MaxRequestBytes bounds the body of a request, and each line of a batch. Beyond: 413.
	MaxRequestBytes int
	// MaxBodyBytes bounds the bytes of requests that have not begun, over all connections, apart from 16 KiB for
	// each. Most of these are incomplete bodies. Beyond: 503. So it bounds the memory that slow senders take.
	MaxBodyBytes int
	// BatchInflight bounds the requests of one batch that run at the same time.
	BatchInflight int

	// IdleTimeout bounds the wait for the next request of a connection, and for the next line of a batch.
	IdleTimeout time.Duration
	// ReadTimeout bounds the arrival of one request, or of one line of a batch, from its first byte to its last. It also bounds
	// the wait for the first byte of a connection, with the handshake of TLS.
	ReadTimeout time.Duration
	// WriteTimeout bounds the time that a client takes to read 64 KiB of its answer, or what is left of it.
	WriteTimeout time.Duration

	// Loops is the number of loops that the connections have to themselves, at most 64. Zero: they run on the engine's.
	Loops int

	// Hosts are the names that clients may ask for. Nil: all. Another one: 403.
	Hosts *access.Hosts
}

// backlogBytes is how many bytes that a client has sent ahead a connection holds, besides an incomplete head.
const backlogBytes = 64 << 10

// pieceBytes is what WriteTimeout counts for.
const pieceBytes = 64 << 10

// sessions returns the options of the sessions.
func (o *Options) sessions() session.Options {
	return session.Options{
		MaxConnections: o.MaxConnections, MaxRequestBytes: o.MaxRequestBytes, MaxUnreadBytes: o.MaxBodyBytes,
		MaxBacklogBytes: backlogBytes + 4*o.MaxHeaderBytes, HoldBack: true,
		IdleTimeout: o.IdleTimeout, FirstTimeout: o.ReadTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, PieceBytes: pieceBytes,
		Loops: o.Loops,
	}
}

// withDefaults fills in the defaults. The error names each field that is out of range.
func (o Options) withDefaults() (Options, error) {
	var problems []error
	for _, n := range [...]struct {
		name     string
		value    *int
		fallback int
	}{
		{"MaxConnections", &o.MaxConnections, DefaultMaxConnections}, {"MaxHeaderBytes", &o.MaxHeaderBytes, DefaultMaxHeaderBytes},
		{"MaxRequestBytes", &o.MaxRequestBytes, DefaultMaxRequestBytes}, {"MaxBodyBytes", &o.MaxBodyBytes, DefaultMaxBodyBytes},
		{"BatchInflight", &o.BatchInflight, DefaultBatchInflight}, {"Loops", &o.Loops, 0},
	} {
		switch {
		case *n.value < 0:
			problems = append(problems, fmt.Errorf("%s must not be negative", n.name))
		case *n.value == 0:
			*n.value = n.fallback
		}
	}
	for _, d := range [...]struct {
		name     string
		value    *time.Duration
		fallback time.Duration
	}{
		{"IdleTimeout", &o.IdleTimeout, DefaultIdleTimeout}, {"ReadTimeout", &o.ReadTimeout, DefaultReadTimeout},
		{"WriteTimeout", &o.WriteTimeout, DefaultWriteTimeout},
	} {
		switch {
		case *d.value < 0:
			problems = append(problems, fmt.Errorf("%s must not be negative", d.name))
		case *d.value == 0:
			*d.value = d.fallback
		}
	}
	return o, errors.Join(problems...)
}
