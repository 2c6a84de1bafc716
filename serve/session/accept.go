package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"syscall"
	"time"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/reactor/stream"
	"github.com/rankd/rankd/reactor/transport"
	"github.com/rankd/rankd/serve"
)

// Pauses after an Accept that failed because descriptors or memory ran out.
const (
	pauseFirst = 5 * time.Millisecond
	pauseMost  = time.Second
)

// goodbye is how long a client that is turned away may take to receive why.
const goodbye = 100 * time.Millisecond

// Serve accepts connections until Drain or Close closes the listener, and then returns nil. It returns any other
// error of the listener, except that it waits while descriptors have run out. Several listeners may be served at a
// time. Connections of package net go onto the loop; others, such as those of package crypto/tls, have two goroutines
// each.
func (v *Server) Serve(l net.Listener) error {
	if !v.track(l) {
		return l.Close()
	}
	defer v.accepting.Done()
	pause := pauseFirst
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			if err = v.admit(nc); err == nil {
				pause = pauseFirst
				continue
			}
			v.service.ConnCut(v.protocol.Front, serve.CutLimit)
			v.log("cannot take a connection", err)
			if mayPass(err) {
				v.wait(pause)
				pause = min(2*pause, pauseMost)
			}
		case v.stopping.Err() != nil:
			return nil
		case !mayPass(err):
			v.untrack(l)
			return fmt.Errorf("accepting connections: %w", err)
		default:
			if pause == pauseFirst {
				v.log("cannot accept connections, waiting", err)
			}
			v.wait(pause)
			pause = min(2*pause, pauseMost)
		}
	}
}

func (v *Server) log(message string, err error) {
	v.service.Log(v.protocol.Front, slog.LevelWarn, message, slog.Any("error", err))
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

// wait waits for a while, unless the server stops.
func (v *Server) wait(d time.Duration) {
	ctx, cancel := context.WithTimeout(v.stopping, d)
	defer cancel()
	<-ctx.Done()
}

// track notes a listener, to close it. It reports false if the server has stopped.
func (v *Server) track(l net.Listener) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.stopping.Err() != nil {
		return false
	}
	v.listeners[l] = struct{}{}
	v.accepting.Add(1)
	return true
}

func (v *Server) untrack(l net.Listener) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.listeners, l)
}

// stopAccepting closes all listeners, and waits until what they have accepted has been handed over.
func (v *Server) stopAccepting() {
	v.mu.Lock()
	v.stop()
	for l := range v.listeners {
		_ = l.Close()
	}
	clear(v.listeners)
	v.mu.Unlock()
	v.accepting.Wait()
}

// admit hands a connection to the loop, or turns it away if there are too many. An error means that the loop cannot
// take it.
func (v *Server) admit(nc net.Conn) error {
	if v.connections.Add(1) > int64(v.options.MaxConnections) {
		v.connections.Add(-1)
		v.turnAway(nc)
		return nil
	}
	remote := nc.RemoteAddr().String()
	switch nc.(type) {
	case *net.TCPConn, *net.UnixConn:
	default:
		v.streams.Add(1)
		go v.lane().serveStream(nc, remote)
		return nil
	}
	entered := false
	l := v.lane()
	err := l.reactor.Enroll(nc, transport.AcceptOptions{
		UnsentMaxBytes: unsentMost,
		UnreadMaxBytes: v.options.unreadMost(),
	}, func(conn transport.Accepted) transport.AcceptedHandler {
		entered = true
		return l.enter(conn, remote)
	})
	if !entered {
		v.connections.Add(-1)
	}
	if errors.Is(err, loop.ErrStopped) {
		return nil
	}
	return err
}

// streamReadBytes is how much a stream reads at a time. Each stream has a buffer of that size.
const streamReadBytes = 4 << 10

// serveStream serves a connection that the reactor cannot take, from its handshake to its end.
func (v *lane) serveStream(nc net.Conn, remote string) {
	defer v.streams.Done()
	st := stream.New(v.loop, stream.Options{
		ReadBytes: streamReadBytes, UnreadMaxBytes: min(v.options.unreadMost(), v.options.MaxRequestBytes+len("\r\n")), UnsentMaxBytes: unsentMost,
	})
	if !v.shakeHands(nc) {
		_ = nc.Close()
		v.connections.Add(-1)
		return
	}
	entered := false
	st.Run(v.closing, nc, func() transport.AcceptedHandler {
		entered = true
		return v.enter(st, remote)
	})
	if !entered {
		v.connections.Add(-1)
	}
}

// shakeHands does the handshake of TLS. Close ends it.
func (v *Server) shakeHands(nc net.Conn) bool {
	secure, ok := nc.(interface{ HandshakeContext(context.Context) error })
	if !ok {
		return true
	}
	ctx, cancel := context.WithTimeout(v.stopping, v.options.ReadTimeout)
	defer cancel()
	if secure.HandshakeContext(ctx) == nil {
		return true
	}
	v.service.ConnCut(v.protocol.Front, serve.CutProtocol)
	return false
}

// unreadMost returns how much a session may leave unread before its connection stops reading. Without HoldBack the
// session checks by itself.
func (o *Options) unreadMost() int {
	if o.HoldBack {
		return o.MaxBacklogBytes
	}
	return math.MaxInt
}

// unsentMost bounds the unsent bytes of a connection, one reply included.
const unsentMost = 1 << 30

// turnAway tells a client that there are too many. It does not wait for a handshake.
func (v *Server) turnAway(nc net.Conn) {
	v.service.ConnCut(v.protocol.Front, serve.CutLimit)
	switch nc.(type) {
	case *net.TCPConn, *net.UnixConn:
		if v.protocol.TurnAway != nil {
			_ = nc.SetWriteDeadline(time.Now().Add(goodbye))
			_, _ = nc.Write(v.protocol.TurnAway())
		}
	}
	_ = nc.Close()
}
