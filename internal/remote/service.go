package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rankd/rankd/loop/clock"
)

// Service makes requests to one service, through a connection pool of net/http. Any goroutine.
type Service struct {
	opts      Options
	addr      string
	header    http.Header
	transport *http.Transport
	buffers   sync.Pool // of *bytes.Buffer for answers
	described atomic.Pointer[description]
	pause     atomic.Int64 // the instant until which no request leaves
	counters
}

// A description is what Options.Describe has returned. Immutable.
type description struct{ known string }

// newService returns a service that has not connected yet.
func newService(o Options) *Service {
	s := &Service{opts: o, addr: addrOf(o), header: o.Header.Clone()}
	if s.header == nil {
		s.header = make(http.Header)
	}
	s.header.Set("Content-Type", "application/json")
	s.header.Set("Accept", "application/json")
	if s.header.Get("User-Agent") == "" {
		s.header.Set("User-Agent", "rankd")
	}
	// An empty list sends no header, and makes net/http treat the request as one that it may repeat.
	s.header["Idempotency-Key"] = nil
	s.buffers.New = func() any { return new(bytes.Buffer) }
	s.transport = &http.Transport{
		DialContext:            s.dial,
		DialTLSContext:         s.dialTLS,
		MaxConnsPerHost:        o.atOnce(),
		MaxIdleConnsPerHost:    o.atOnce(),
		IdleConnTimeout:        90 * time.Second,
		DisableCompression:     true, // The bound of an answer counts bytes as received.
		MaxResponseHeaderBytes: 64 << 10,
	}
	return s
}

// addrOf returns the address of a service as errors show it.
func addrOf(o Options) string {
	port := o.URL.Port()
	if port == "" {
		port = "80"
		if o.URL.Scheme == "https" {
			port = "443"
		}
	}
	return net.JoinHostPort(o.URL.Hostname(), port)
}

// dial connects. Its context ends if nobody waits for the connection any more.
func (s *Service) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	s.count(func(s *Stats) { s.Connects++ })
	dialer := net.Dialer{Timeout: s.opts.ConnectTimeout}
	conn, err := dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, &dialError{err}
	}
	return conn, nil
}

// dialTLS connects and shakes hands, both within ConnectTimeout.
func (s *Service) dialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.ConnectTimeout)
	defer cancel()
	plain, err := s.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	config := s.opts.TLS.Clone()
	if config == nil {
		config = new(tls.Config)
	}
	if config.ServerName == "" {
		config.ServerName = s.opts.URL.Hostname()
	}
	conn := tls.Client(plain, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = plain.Close()
		return nil, &dialError{err}
	}
	return conn, nil
}

// exchange makes one request, and returns how long its answer was. When ctx is cancelled, it soon ends with the cause.
func (s *Service) exchange(ctx context.Context, x *Exchange) (received int, err error) {
	if x.Known, err = s.describe(ctx); err != nil {
		return 0, err
	}
	// The body has memory of its own: net/http may still read it when the answer has come.
	body, err := x.Request(nil)
	if err != nil {
		if op := (*OpError)(nil); errors.As(err, &op) && op.Addr == "" { // of TooLarge
			op.Addr = s.addr
		}
		return 0, err
	}
	received, err = s.send(ctx, http.MethodPost, s.opts.URL, x.Header, body, func(header http.Header, body []byte) error {
		if x.Wants != "" {
			x.Got = header.Get(x.Wants)
		}
		return x.Answer(body)
	})
	if status := (*StatusError)(nil); errors.Is(err, ErrProtocol) || errors.As(err, &status) && status.Code < 429 {
		s.described.Store(nil) // It may have become another.
	}
	return received, err
}

// describe returns what Options.Describe has learned, or asks.
func (s *Service) describe(ctx context.Context) (known string, err error) {
	if s.opts.Describe == nil {
		return "", nil
	}
	if d := s.described.Load(); d != nil {
		return d.known, nil
	}
	known, err = s.opts.Describe(func(path string) (body []byte, err error) {
		parsed, err := url.ParseRequestURI(path)
		if err != nil {
			return nil, err
		}
		at := *s.opts.URL
		at.Path, at.RawPath = parsed.Path, parsed.RawPath
		_, err = s.send(ctx, http.MethodGet, &at, nil, nil, func(_ http.Header, answer []byte) error {
			body = bytes.Clone(answer)
			return nil
		})
		return body, err
	})
	if err != nil {
		return "", s.asProtocol(err)
	}
	s.described.Store(&description{known})
	return known, nil
}

// Once makes an exchange without a client. A nil x only asks the service what it is: without Options.Describe, nothing.
func Once(ctx context.Context, o Options, x *Exchange) (err error) {
	o = o.withDefaults()
	s := newService(o)
	defer s.transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeoutCause(ctx, o.RequestTimeout, s.late(false, nil))
	defer cancel()
	if x == nil {
		_, err = s.describe(ctx)
		return err
	}
	x.Left = o.RequestTimeout
	_, err = s.exchange(ctx, x)
	return err
}

// asProtocol gives an error of Malformedf its class.
func (s *Service) asProtocol(err error) error {
	if errors.As(err, new(*malformedError)) {
		return s.opError(ErrProtocol, &shownError{err})
	}
	return err
}

// send makes one HTTP request, and returns how long its answer was. take gets a good answer, and must not keep it.
func (s *Service) send(ctx context.Context, method string, to *url.URL, own http.Header, body []byte, take func(header http.Header, body []byte) error) (received int, err error) {
	if len(body) > s.opts.MaxRequestBytes {
		return 0, s.opError(ErrTooLarge, fmt.Errorf("the request has %d bytes, and may have %d", len(body), s.opts.MaxRequestBytes))
	}
	request, err := http.NewRequestWithContext(ctx, method, "", bytes.NewReader(body))
	if err != nil {
		return 0, s.opError(ErrProtocol, err)
	}
	request.URL, request.Host, request.Header = to, to.Host, s.header
	if own != nil {
		request.Header = s.header.Clone()
		maps.Copy(request.Header, own)
	}
	answer, err := s.transport.RoundTrip(request)
	if err != nil {
		return 0, s.failure(ctx, err)
	}
	defer answer.Body.Close()
	s.count(func(s *Stats) { s.BytesSent += uint64(len(body)) })
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return 0, s.badStatus(ctx, answer)
	}
	buffer := s.buffers.Get().(*bytes.Buffer)
	defer s.keep(buffer)
	if err := s.read(buffer, answer); err != nil {
		if errors.Is(err, ErrTooLarge) {
			return 0, err
		}
		return 0, s.failure(ctx, err)
	}
	s.count(func(s *Stats) { s.BytesReceived += uint64(buffer.Len()) })
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	return buffer.Len(), s.asProtocol(take(answer.Header, buffer.Bytes()))
}

// answerHint bounds the memory that is allocated for the announced length of an answer.
const answerHint = 1 << 20

// read reads the body of an answer, which leaves the connection ready for the next request.
func (s *Service) read(buffer *bytes.Buffer, answer *http.Response) error {
	most := int64(s.opts.MaxAnswerBytes)
	if answer.ContentLength <= most {
		buffer.Grow(int(min(max(answer.ContentLength, 0)+bytes.MinRead, answerHint)))
		n, err := buffer.ReadFrom(io.LimitReader(answer.Body, most+1))
		if n <= most {
			return err
		}
	}
	return s.opError(ErrTooLarge, fmt.Errorf("the answer has more than %d bytes", most))
}

// keepBuffer bounds the buffer that one answer leaves to the next.
const keepBuffer = 256 << 10

// keep returns the buffer of an answer for reuse.
func (s *Service) keep(buffer *bytes.Buffer) {
	if buffer.Cap() <= keepBuffer {
		buffer.Reset()
		s.buffers.Put(buffer)
	}
}

// messageBytes is how much of the body of an error answer is read. If the body is longer, the connection is closed.
const messageBytes = 4 << 10

// badStatus returns the error of an answer with another status than 2xx.
func (s *Service) badStatus(ctx context.Context, answer *http.Response) error {
	message, err := io.ReadAll(io.LimitReader(answer.Body, messageBytes))
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	bad := &StatusError{Code: answer.StatusCode, Message: string(bytes.TrimSpace(message))}
	if bad.Code == http.StatusTooManyRequests {
		bad.RetryAfter = retryAfter(answer.Header.Get("Retry-After"), time.Now())
	}
	return s.opError(ErrStatus, bad)
}

// pauseMost bounds the pause that a service may ask for.
const pauseMost = time.Minute

// retryAfter returns the time that the header Retry-After says, in seconds or as a date; zero if it says nothing.
func retryAfter(value string, now time.Time) time.Duration {
	seconds, err := strconv.ParseUint(value, 10, 31)
	if err == nil || errors.Is(err, strconv.ErrRange) { // Out of range, seconds is the largest.
		return min(time.Duration(seconds)*time.Second, pauseMost)
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(now), 0), pauseMost)
	}
	return 0
}

// heed begins the pause for which the answer to a request asks, if it does.
func (s *Service) heed(err error, now clock.Time) {
	if status := (*StatusError)(nil); errors.As(err, &status) && status.RetryAfter > 0 {
		s.pause.Store(max(s.pause.Load(), int64(now.Add(status.RetryAfter)))) // Of two at once either may win.
	}
}

// paused returns the error of a call that comes while a pause lasts.
func (s *Service) paused(now clock.Time) error {
	if left := clock.Time(s.pause.Load()).Sub(now); left > 0 {
		s.count(func(s *Stats) { s.Paused++ })
		return s.opError(ErrPaused, fmt.Errorf("it has answered 429, and wants no request for another %v", left.Round(time.Millisecond)))
	}
	return nil
}

// failure returns the error of a request that net/http could not bring to its end.
func (s *Service) failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return s.opError(kindOf(err), &shownError{err})
}

// opError returns the failure of a call to this service.
func (s *Service) opError(kind, cause error) error {
	return &OpError{Addr: s.addr, Kind: kind, Cause: cause}
}

// late returns the error of a call that has waited too long. notSent says why it is still queued; nil: it is in
// flight.
func (s *Service) late(byDeadline bool, notSent error) error {
	limit := error(ErrDeadline)
	if !byDeadline {
		limit = fmt.Errorf("not done within %v", s.opts.RequestTimeout)
	}
	if notSent != nil {
		limit = fmt.Errorf("%w: %w", limit, notSent)
	}
	return s.opError(ErrTimeout, limit)
}

// queuedBehind says that a call was not sent because so many requests are in flight.
func queuedBehind(inflight int) error {
	return fmt.Errorf("not sent, %d requests are on their way", inflight)
}
