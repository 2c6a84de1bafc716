package session

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/reactor"
	"github.com/rankd/rankd/reactor/transport"
	"github.com/rankd/rankd/serve"
)

// A Server runs the sessions of one protocol. Any goroutine except the loop's, unless a method says loop only.
type Server struct {
	service  *serve.Service
	reactor  *reactor.Reactor
	loop     *loop.Loop
	own      bool // nobody else has the reactor: answers come from other goroutines, and Close stops it
	protocol Protocol
	options  Options

	connections atomic.Int64 // accepted, and not closed
	accepting   sync.WaitGroup
	streams     sync.WaitGroup
	stopping    context.Context // ends when no more connections are accepted
	stop        context.CancelFunc
	closing     context.Context // ends when streams without a loop must end
	closeAll    context.CancelFunc
	mu          sync.Mutex
	listeners   map[net.Listener]struct{} // guarded by mu

	// Loop only.
	sessions []*Session
	free     slots
	encoded  []byte // reply of a request
	unread   int    // bytes that sessions have left in their connections
	sweeper  *loop.Timer
	swept    int // index of the session that a sweep has looked at last
	lastID   int64
	leaving  bool
	draining bool
	empty    chan struct{} // closed when draining and no session is left
	emptied  bool          // empty is closed
}

// New returns a server of a service whose engine runs on the reactor r. If r is nil, since that engine has no loop, the server starts a
// reactor of its own.
func New(service *serve.Service, r *reactor.Reactor, p Protocol, o Options) (*Server, error) {
	v := &Server{
		service: service, reactor: r, own: r == nil, protocol: p, options: o.WithDefaults(),
		listeners: make(map[net.Listener]struct{}), empty: make(chan struct{}),
	}
	if v.own {
		v.reactor = reactor.New(reactor.Config{OnPanic: v.panicked, BusyPoll: -1})
		if err := v.reactor.Start(); err != nil {
			return nil, fmt.Errorf("the loop of front %v: %w", p.Front, err)
		}
	}
	v.loop = v.reactor.Loop()
	v.stopping, v.stop = context.WithCancel(context.Background())
	v.closing, v.closeAll = context.WithCancel(context.Background())
	return v, nil
}

// panicked reports a panic on the loop of the server's own. Its connection is closed.
func (v *Server) panicked(recovered any, stack []byte) {
	v.options.Logger.Error("panic on the loop of a front", "front", v.protocol.Front.String(), "panic", recovered, "stack", string(stack))
}

// Loop returns the loop of the sessions.
func (v *Server) Loop() *loop.Loop { return v.loop }

// Connections returns the number of connections that are accepted and not closed.
func (v *Server) Connections() int { return int(v.connections.Load()) }

// Sessions returns the sessions in no order. It is valid until another one begins or ends. Loop only.
func (v *Server) Sessions() []*Session { return v.sessions }

// Entered returns how many sessions have begun so far. Loop only.
func (v *Server) Entered() int64 { return v.lastID }

// Unread returns how many bytes all sessions have left in their connections. Loop only.
func (v *Server) Unread() int { return v.unread }

// Leave has each connection end behind its next reply, so that clients go elsewhere before Drain. The server goes on accepting.
func (v *Server) Leave() { v.loop.Post(func() { v.leaving = true }) }

// Drain stops to accept. Connections close as soon as their clients have all replies that are due; requests that come
// meanwhile are refused by their codec. Drain returns nil when none is left, and otherwise the cause of ctx when that ends.
func (v *Server) Drain(ctx context.Context) error {
	v.stopAccepting()
	if !v.loop.Post(v.drain) {
		return nil // The reactor has closed all connections.
	}
	select {
	case <-v.empty:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close closes all connections, whatever is due, and returns when nothing of the server runs any more.
func (v *Server) Close() error {
	v.stopAccepting()
	if v.loop.Post(v.cutAll) {
		<-v.empty
	}
	v.closeAll()
	v.streams.Wait()
	if v.own {
		v.reactor.Stop()
		<-v.loop.Done()
	}
	return nil
}

// drain lets each session end.
func (v *Server) drain() {
	v.draining = true
	for _, s := range v.sessions {
		if !s.ending {
			s.codec.Stop(Drain)
		}
		s.proceed()
	}
	v.tellIfEmpty()
}

// cutAll closes all sessions.
func (v *Server) cutAll() {
	v.draining = true
	for _, s := range v.sessions {
		s.conn.Close(ErrCutOff)
	}
	v.tellIfEmpty()
}

func (v *Server) tellIfEmpty() {
	if v.draining && !v.emptied && len(v.sessions) == 0 {
		v.emptied = true
		close(v.empty)
	}
}

// Enter makes the session of a connection that somebody else has accepted. Loop only.
func (v *Server) Enter(conn transport.Accepted, remote string) *Session {
	v.connections.Add(1)
	return v.enter(conn, remote)
}

// enter makes the session of a new connection, which counts already.
func (v *Server) enter(conn transport.Accepted, remote string) *Session {
	v.lastID++
	s := &Session{server: v, conn: conn, index: len(v.sessions), id: v.lastID, remote: remote, most: v.options.MaxPipeline}
	s.outbox = v.service.NewOutbox(s)
	s.context, s.leave = context.WithCancel(context.Background())
	s.codec = v.protocol.NewCodec(s)
	v.sessions = append(v.sessions, s)
	if len(v.sessions) == 1 {
		if v.sweeper == nil {
			v.sweeper = v.loop.NewTimer(v.sweep)
		}
		every := v.options.sweepEvery()
		_ = v.sweeper.Start(every, every) // It fails only on a stopping loop.
	}
	return s
}

// leave forgets a session that has ended.
func (v *Server) leave(s *Session) {
	last := len(v.sessions) - 1
	v.sessions[s.index] = v.sessions[last]
	v.sessions[s.index].index = s.index
	v.sessions[last] = nil
	v.sessions = v.sessions[:last]
	v.connections.Add(-1)
	v.tellIfEmpty()
}

// trim gives a buffer back that a rare giant has left.
func (v *Server) trim() {
	if cap(v.encoded) > keepBytes {
		v.encoded = nil
	}
}
