package remote

import (
	"crypto/tls"
	"net/http"
	"net/url"
	"time"
)

// Options say which service a client asks and within which bounds. All but URL may be zero, which means the
// default. Immutable once given to a client.
type Options struct {
	// URL is where requests are posted to: http:// or https://, with host, path and query. It has no user.
	URL *url.URL
	// Header goes with each request. Its values may be secret: no error shows them.
	Header http.Header

	// Connections is the number of connections, each with one request at a time. Zero means 16.
	Connections int
	// MaxInflight also bounds the requests in flight. Zero means 1024.
	MaxInflight int
	// MaxWaiting bounds the calls that wait to be sent. Zero means 65,536. If more wait, the service is far too
	// slow for the load, and a call fails with ErrQueueFull.
	MaxWaiting int
	// ConnectTimeout bounds one attempt to connect, TLS included. Zero means 1 s. It runs in real time.
	ConnectTimeout time.Duration
	// RequestTimeout bounds a call from its beginning to its end, waiting included. Zero means 1 s.
	RequestTimeout time.Duration
	// MaxRequestBytes bounds the body of a request. Zero means 16 MiB.
	MaxRequestBytes int
	// MaxAnswerBytes bounds the body of an answer. Zero means 16 MiB.
	MaxAnswerBytes int
	// Describe asks the service what it is, before the first request and again after an answer that did not fit. get
	// fetches a path of the same host by GET. A request is made only once Describe has succeeded; it learns the result as
	// Exchange.Known. An error of Malformedf is one of class ErrProtocol. Any goroutine. Nil: nobody asks.
	Describe func(get func(path string) (body []byte, err error)) (known string, err error)
	// TLS configures https. Nil means the certificates of the system.
	TLS *tls.Config
}

// The defaults of Options that other packages show.
const (
	DefaultConnections = 16
	DefaultMaxBytes    = 16 << 20
)

// withDefaults returns o with a default in each field that is zero.
func (o Options) withDefaults() Options {
	setDefault(&o.Connections, DefaultConnections)
	setDefault(&o.MaxInflight, 1024)
	setDefault(&o.MaxWaiting, 64<<10)
	setDefault(&o.ConnectTimeout, time.Second)
	setDefault(&o.RequestTimeout, time.Second)
	setDefault(&o.MaxRequestBytes, DefaultMaxBytes)
	setDefault(&o.MaxAnswerBytes, DefaultMaxBytes)
	return o
}

// setDefault sets *field to value unless it is positive.
func setDefault[T int | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// atOnce is the number of requests that may be on their way.
func (o *Options) atOnce() int { return min(o.Connections, o.MaxInflight) }
