package httpfront

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/rankd/rankd/outcome"
	"github.com/rankd/rankd/serve"
	"github.com/rankd/rankd/serve/access"
)

// Front serves HTTP. Any goroutine.
type Front struct {
	service *serve.Service
	store   *access.Store
	options Options
	server  *fasthttp.Server
	openapi []byte // the document of GET /openapi.json

	exchanges sync.Pool    // of *exchange
	bodyBytes atomic.Int64 // what bodies on their way hold: see Options.MaxBodyBytes
	leaving   atomic.Bool  // each answer ends its connection

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	closing   bool          // no listener is accepted from any more
	stop      chan struct{} // closed with closing
	empty     chan struct{} // closed when closing, and no connection is left
	serving   sync.WaitGroup
}

// New makes a front of the service s for the callers of the store. The error names the options that are out of range.
func New(s *serve.Service, store *access.Store, o Options) (*Front, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("httpfront: options: %w", err)
	}
	f := &Front{
		service: s, store: store, options: o, openapi: openAPI(),
		listeners: map[net.Listener]struct{}{}, conns: map[*conn]struct{}{}, stop: make(chan struct{}), empty: make(chan struct{}),
	}
	f.exchanges.New = func() any { return newExchange(f) }
	f.server = &fasthttp.Server{
		Handler: f.handle, ErrorHandler: f.handleError, ConnState: connState,
		ReadBufferSize: o.MaxHeaderBytes, MaxRequestBodySize: math.MaxInt, StreamRequestBody: true, DisablePreParseMultipartForm: true,
		Concurrency: math.MaxInt32, ReduceMemoryUsage: true, // idle connections keep no write buffer
		NoDefaultServerHeader: true, NoDefaultContentType: true, SecureErrorLogMessage: true,
	}
	return f, nil
}

// connState tells a connection which phase begins.
func connState(nc net.Conn, state fasthttp.ConnState) {
	switch state {
	case fasthttp.StateActive:
		nc.(*conn).enter(busy)
	case fasthttp.StateIdle:
		nc.(*conn).enter(idle)
	}
}

// Pauses of accepting after an error that passes, such as too few file descriptors.
const (
	acceptPauseMin = 5 * time.Millisecond
	acceptPauseMax = time.Second
)

// Serve accepts connections of l, TCP or of tls.NewListener, until Drain or Close closes l. Several listeners may be
// served. The error is nil then, and otherwise the one that ended accepting.
func (f *Front) Serve(l net.Listener) error {
	if !f.addListener(l) {
		_ = l.Close()
		return nil
	}
	defer f.removeListener(l)
	pause := time.Duration(0)
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			f.accept(nc)
		case f.stopped():
			return nil
		case !passes(err):
			return fmt.Errorf("httpfront: accepting on %v: %w", l.Addr(), err)
		default:
			if pause == 0 {
				f.options.Logger.Warn("accepting pauses", "front", "http", "error", err.Error())
			}
			pause = min(max(2*pause, acceptPauseMin), acceptPauseMax)
			select {
			case <-time.After(pause):
			case <-f.stop:
			}
		}
	}
}

// passes reports whether accepting may succeed later: the connection was gone already, or the process or the system has
// too few descriptors or too little memory.
func passes(err error) bool {
	var temporary interface{ Temporary() bool }
	return errors.As(err, &temporary) && temporary.Temporary()
}

func (f *Front) addListener(l net.Listener) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closing {
		return false
	}
	f.listeners[l] = struct{}{}
	return true
}

func (f *Front) removeListener(l net.Listener) {
	_ = l.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.listeners, l)
}

func (f *Front) stopped() bool {
	select {
	case <-f.stop:
		return true
	default:
		return false
	}
}

// accept starts the goroutine of a connection, or refuses the connection.
func (f *Front) accept(nc net.Conn) {
	c := newConn(f, nc)
	f.mu.Lock()
	full := len(f.conns) >= f.options.MaxConnections
	if !full && !f.closing {
		f.conns[c] = struct{}{}
		f.serving.Add(1)
		f.mu.Unlock()
		c.number = f.service.ConnOpened(serve.HTTP)
		go f.serve(c)
		return
	}
	f.mu.Unlock()
	if full {
		f.refuseConn(nc)
	}
	_ = c.tcp.Close()
}

// refuseConn answers a connection that is one too many. The few bytes fit into its empty buffer, so that the write does not
// wait. A handshake of TLS would wait.
func (f *Front) refuseConn(nc net.Conn) {
	f.service.ConnCut(serve.HTTP, serve.CutLimit)
	if _, secure := nc.(*tls.Conn); secure {
		return
	}
	reply := f.service.Refuse(serve.HTTP, outcome.Overloaded, "", fmt.Sprintf("%d connections are open", f.options.MaxConnections))
	var response fasthttp.Response
	f.write(&response, &reply, reply.Class.Status())
	response.SetConnectionClose()
	_ = nc.SetWriteDeadline(time.Now().Add(acceptPauseMin))
	_, _ = response.WriteTo(nc)
}

// serve is the goroutine of a connection.
func (f *Front) serve(c *conn) {
	defer f.removeConn(c)
	defer func() {
		if recovered := recover(); recovered != nil {
			f.options.Logger.Error("panic in a connection", "front", "http", "panic", recovered, "stack", string(debug.Stack()))
		}
		_ = c.tcp.Close()
	}()
	_ = f.server.ServeConn(c) // The answer, if any, and the metrics have said what there is to say.
}

func (f *Front) removeConn(c *conn) {
	c.outbox.Close()
	f.service.ConnClosed(serve.HTTP)
	f.mu.Lock()
	delete(f.conns, c)
	f.closeEmpty()
	f.mu.Unlock()
	f.serving.Done()
}

// closeEmpty tells Drain that no connection is left. The caller holds mu.
func (f *Front) closeEmpty() {
	if !f.closing || len(f.conns) > 0 {
		return
	}
	select {
	case <-f.empty:
	default:
		close(f.empty)
	}
}

// Leave has each answer from now on end its connection, so that clients go elsewhere before Drain. The front goes on
// accepting.
func (f *Front) Leave() { f.leaving.Store(true) }

// Drain stops accepting and closes idle connections. Requests that have begun get their answers, and then their connections
// close. Drain returns when no connection is left, or with the cause of ctx when ctx ends.
func (f *Front) Drain(ctx context.Context) error {
	f.Leave()
	f.mu.Lock()
	f.stopAccepting()
	for c := range f.conns {
		c.interrupt()
	}
	f.mu.Unlock()
	select {
	case <-f.empty:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// stopAccepting closes the listeners, once. The caller holds mu.
func (f *Front) stopAccepting() {
	if f.closing {
		return
	}
	f.closing = true
	close(f.stop)
	for l := range f.listeners {
		_ = l.Close()
	}
	f.closeEmpty()
}

// Close cuts all connections, abandons their requests, and returns when nothing of the front runs any more. A request that
// the engine still has holds it up until that engine has ended it. The error is nil.
func (f *Front) Close() error {
	f.mu.Lock()
	f.stopAccepting()
	for c := range f.conns {
		c.cut()
	}
	f.mu.Unlock()
	f.serving.Wait()
	return nil
}
