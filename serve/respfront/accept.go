package respfront

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"syscall"
	"time"

	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/reactor/transport"
	"github.com/rankd/rankd/serve"
)

// Pauses after an Accept that failed for a lack of descriptors or memory.
const (
	pauseFirst = 5 * time.Millisecond
	pauseMost  = time.Second
)

// goodbye is how long a client that is turned away may take to receive why.
const goodbye = 100 * time.Millisecond

// Serve accepts connections until Drain or Close closes the listener, and then returns nil. It returns any other error
// of the listener, except a lack of descriptors, which it waits out. Several listeners may be served at a time. Connections of package
// net go onto the loop; others, as those of package crypto/tls, have two goroutines each.
func (f *Front) Serve(l net.Listener) error {
	if !f.track(l) {
		return l.Close()
	}
	defer f.accepting.Done()
	pause := pauseFirst
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			pause = pauseFirst
			f.admit(nc)
		case f.stopping.Err() != nil:
			return nil
		case !mayPass(err):
			f.untrack(l)
			return fmt.Errorf("accepting connections: %w", err)
		default:
			f.options.Logger.Warn("cannot accept connections, waiting", "front", serve.RESP.String(), "error", err, "pause", pause)
			f.wait(pause)
			pause = min(2*pause, pauseMost)
		}
	}
}

// mayPass reports whether accepting may succeed later.
func mayPass(err error) bool {
	for _, passing := range [...]error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EINTR} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// wait waits for a while, unless the front stops.
func (f *Front) wait(d time.Duration) {
	ctx, cancel := context.WithTimeout(f.stopping, d)
	defer cancel()
	<-ctx.Done()
}

// track notes a listener, to close it. It reports false if the front has stopped.
func (f *Front) track(l net.Listener) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopping.Err() != nil {
		return false
	}
	f.listeners[l] = struct{}{}
	f.accepting.Add(1)
	return true
}

func (f *Front) untrack(l net.Listener) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.listeners, l)
}

// stopAccepting closes all listeners, and waits until what they have accepted has been handed over.
func (f *Front) stopAccepting() {
	f.mu.Lock()
	f.stop()
	for l := range f.listeners {
		_ = l.Close()
	}
	clear(f.listeners)
	f.mu.Unlock()
	f.accepting.Wait()
}

// admit hands a connection to the loop, if there is room for it.
func (f *Front) admit(nc net.Conn) {
	if f.connections.Add(1) > int64(f.options.MaxConnections) {
		f.connections.Add(-1)
		f.turnAway(nc)
		return
	}
	remote := nc.RemoteAddr().String()
	switch nc.(type) {
	case *net.TCPConn, *net.UnixConn:
	default:
		f.streams.Add(1)
		go f.serveStream(nc, remote)
		return
	}
	entered := false
	err := f.reactor.Enroll(nc, transport.AcceptOptions{
		UnsentMaxBytes: unsentMost,
		UnreadMaxBytes: math.MaxInt, // The session looks itself, and says so.
	}, func(conn transport.Accepted) transport.AcceptedHandler {
		entered = true
		return f.enter(conn, remote)
	})
	if !entered {
		f.connections.Add(-1)
	}
	if err != nil && !errors.Is(err, loop.ErrStopped) {
		f.options.Logger.Warn("cannot take a connection", "front", serve.RESP.String(), "error", err)
	}
}

// unsentMost bounds the unsent bytes of a connection, one reply included.
const unsentMost = 1 << 30

// turnAway tells a client that there are too many. It does not wait for a handshake.
func (f *Front) turnAway(nc net.Conn) {
	f.service.ConnCut(serve.RESP, serve.CutLimit)
	switch nc.(type) {
	case *net.TCPConn, *net.UnixConn:
		_ = nc.SetWriteDeadline(time.Now().Add(goodbye))
		_, _ = nc.Write(redcon.AppendError(nil, "ERR max number of clients reached"))
	}
	_ = nc.Close()
}
