package session

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/reactor"
	"github.com/rankd/rankd/reactor/transport"
	"github.com/rankd/rankd/serve"
)

// A Server runs the sessions of one protocol, on one loop or on several. Any goroutine except the loops'.
type Server struct {
	service  *serve.Service
	protocol Protocol
	options  Options
	lanes    []*lane

	connections atomic.Int64  // accepted, and not closed
	lastID      atomic.Int64  // of a session
	unread      atomic.Int64  // bytes that sessions have left in their connections, or hold
	next        atomic.Uint64 // chooses the lane of the next connection
	accepting   sync.WaitGroup
	streams     sync.WaitGroup
	stopping    context.Context // ends when no more connections are accepted
	stop        context.CancelFunc
	closing     context.Context // ends when streams without a loop must end
	closeAll    context.CancelFunc
	mu          sync.Mutex
	listeners   map[net.Listener]struct{} // guarded by mu
}

// A lane is the sessions of one loop. Loop only, unless a method says any goroutine.
type lane struct {
	*Server
	reactor  *reactor.Reactor
	loop     *loop.Loop
	own      bool // the engine does not run on the loop: answers come from other goroutines, and Close stops it
	newCodec func(*Session) Codec

	sessions []*Session
	free     slots
	encoded  []byte // reply of a request
	sweeper  *loop.Timer
	swept    int // index of the session that a sweep has looked at last
	leaving  bool
	draining bool
	empty    chan struct{} // closed when draining and no session is left
	emptied  bool          // empty is closed
}

// New returns a server of a service whose engine runs on the reactor r. Options may ask for loops of the server's
// own. If r is nil the engine has no loop, and the server starts one.
func New(service *serve.Service, r *reactor.Reactor, p Protocol, o Options) (*Server, error) {
	v := &Server{service: service, protocol: p, options: o.WithDefaults(), listeners: make(map[net.Listener]struct{})}
	v.stopping, v.stop = context.WithCancel(context.Background())
	v.closing, v.closeAll = context.WithCancel(context.Background())
	if v.options.Loops == 0 && r != nil {
		v.addLane(r, false)
		return v, nil
	}
	for range max(v.options.Loops, 1) {
		own := reactor.New(reactor.Config{OnPanic: v.panicked, BusyPoll: -1})
		if err := own.Start(); err != nil {
			_ = v.Close()
			return nil, fmt.Errorf("a loop of front %v: %w", p.Front, err)
		}
		v.addLane(own, true)
	}
	return v, nil
}

func (v *Server) addLane(r *reactor.Reactor, own bool) {
	v.lanes = append(v.lanes, &lane{
		Server: v, reactor: r, loop: r.Loop(), own: own, newCodec: v.protocol.NewCodecs(), empty: make(chan struct{}),
	})
}

// lane returns the lane of the next connection.
func (v *Server) lane() *lane { return v.lanes[v.next.Add(1)%uint64(len(v.lanes))] }

// panicked reports a panic on a loop of the server's own. Its connection is closed.
func (v *Server) panicked(recovered any, stack []byte) {
	v.service.Log(v.protocol.Front, slog.LevelError, "panic on the loop of a front", slog.Any("panic", recovered), slog.String("stack", string(stack)))
}

// Loop returns the loop of the sessions; of several, the first.
func (v *Server) Loop() *loop.Loop { return v.lanes[0].loop }

// Connections returns the number of connections that are accepted and not closed.
func (v *Server) Connections() int { return int(v.connections.Load()) }

// Sessions returns the sessions of Loop in no order. It is valid until another one begins or ends. Loop only.
func (v *Server) Sessions() []*Session { return v.lanes[0].sessions }

// Entered returns how many sessions have begun so far.
func (v *Server) Entered() int64 { return v.lastID.Load() }

// Unread returns how many bytes all sessions have left in their connections, or keep of requests that have not begun.
func (v *Server) Unread() int { return int(v.unread.Load()) }

// Leave makes each connection end after its next reply, so that clients go elsewhere before Drain. The server goes on
// accepting.
func (v *Server) Leave() {
	for _, l := range v.lanes {
		l.loop.Post(func() { l.leaving = true })
	}
}

// Drain stops accepting. Connections close as soon as their clients have all replies that are due; their codec
// refuses requests that come meanwhile. Drain returns nil when no connection is left, or the cause of ctx when ctx
// ends first.
func (v *Server) Drain(ctx context.Context) error {
	v.stopAccepting()
	posted := make([]bool, len(v.lanes))
	for i, l := range v.lanes {
		posted[i] = l.loop.Post(l.drain)
	}
	for i, l := range v.lanes {
		if !posted[i] {
			continue // The reactor has closed all connections.
		}
		select {
		case <-l.empty:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Close closes all connections, even if replies are due, and returns when nothing of the server runs any more.
func (v *Server) Close() error {
	v.stopAccepting()
	for _, l := range v.lanes {
		if l.loop.Post(l.cutAll) {
			<-l.empty
		}
	}
	v.closeAll()
	v.streams.Wait()
	for _, l := range v.lanes {
		if l.own {
			l.reactor.Stop()
			<-l.loop.Done()
		}
	}
	return nil
}

// Enter makes the session of a connection that somebody else has accepted. Loop only.
func (v *Server) Enter(conn transport.Accepted, remote string) *Session {
	v.connections.Add(1)
	return v.lanes[0].enter(conn, remote)
}

// drain lets each session end.
func (l *lane) drain() {
	l.draining = true
	for _, s := range l.sessions {
		if s.phase == open {
			s.codec.Stop(Drain)
		}
		s.proceed()
	}
	l.tellIfEmpty()
	later := l.loop.NewTimer(func() {
		for _, s := range l.sessions {
			s.proceed()
		}
	})
	_ = later.Start(freshGrace, 0) // It fails only on a stopping loop.
}

// cutAll closes all sessions.
func (l *lane) cutAll() {
	l.draining = true
	for _, s := range l.sessions {
		s.conn.Close(ErrCutOff)
	}
	l.tellIfEmpty()
}

func (l *lane) tellIfEmpty() {
	if l.draining && !l.emptied && len(l.sessions) == 0 {
		l.emptied = true
		close(l.empty)
	}
}

// enter makes the session of a new connection, which counts already.
func (l *lane) enter(conn transport.Accepted, remote string) *Session {
	s := &Session{server: l, conn: conn, index: len(l.sessions), id: l.lastID.Add(1), remote: remote, pipeline: l.options.MaxPipeline}
	s.times.active = s.now() // A sweep may look at it before it is connected.
	s.outbox = l.service.NewOutbox(s)
	s.context, s.leave = context.WithCancel(context.Background())
	s.codec = l.newCodec(s)
	l.sessions = append(l.sessions, s)
	if len(l.sessions) == 1 {
		if l.sweeper == nil {
			l.sweeper = l.loop.NewTimer(l.sweep)
		}
		every := l.options.sweepEvery()
		_ = l.sweeper.Start(every, every) // It fails only on a stopping loop.
	}
	return s
}

// leave forgets a session that has ended.
func (l *lane) leave(s *Session) {
	last := len(l.sessions) - 1
	l.sessions[s.index] = l.sessions[last]
	l.sessions[s.index].index = s.index
	l.sessions[last] = nil
	l.sessions = l.sessions[:last]
	l.connections.Add(-1)
	l.tellIfEmpty()
}

// trim frees a buffer that has grown for a rare giant.
func (l *lane) trim() {
	if cap(l.encoded) > keepBytes {
		l.encoded = nil
	}
}
