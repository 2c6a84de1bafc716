package respfront

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/reactor"
	"github.com/rankd/rankd/reactor/transport"
	"github.com/rankd/rankd/serve"
	"github.com/rankd/rankd/serve/access"
)

// A Front answers clients in the protocol of Redis. Any goroutine except the loop's.
type Front struct {
	service *serve.Service
	store   *access.Store
	reactor *reactor.Reactor
	loop    *loop.Loop
	options Options

	connections atomic.Int64 // accepted, and not closed
	accepting   sync.WaitGroup
	streams     sync.WaitGroup
	stopping    context.Context // ends when no more connections are accepted
	stop        context.CancelFunc
	closing     context.Context // ends when streams without a loop must end
	closeAll    context.CancelFunc
	mu          sync.Mutex
	listeners   map[net.Listener]struct{} // guarded by mu

	// Loop only, but for table and began, which nobody changes.
	table       []command
	commands    map[string]*command // by name
	sessions    []*session
	free        slots
	argv        [][]byte // arguments of the command that runs
	text        []byte   // its reply
	encoded     []byte   // reply of a request
	unread      int      // bytes that sessions have left in their connections
	sweeper     *loop.Timer
	swept       int // index of the session that a sweep has looked at last
	lastID      int64
	commandsRun int64
	began       clock.Time
	draining    bool
	empty       chan struct{} // closed when draining and no session is left
	emptied     bool          // empty is closed
}

// New returns a front of a service whose engine runs on the reactor r. Clients log in with the tokens of store.
func New(service *serve.Service, store *access.Store, r *reactor.Reactor, o Options) *Front {
	f := &Front{
		service: service, store: store, reactor: r, loop: r.Loop(), options: o.withDefaults(),
		listeners: make(map[net.Listener]struct{}), table: commandTable(), commands: make(map[string]*command),
		began: r.Loop().Clock().Now(), empty: make(chan struct{}),
	}
	f.stopping, f.stop = context.WithCancel(context.Background())
	f.closing, f.closeAll = context.WithCancel(context.Background())
	for i := range f.table {
		f.commands[f.table[i].name] = &f.table[i]
	}
	return f
}

// Drain stops to accept. Connections close as soon as their clients have all replies that are due; commands that come
// meanwhile are refused. Drain returns nil when none is left, and otherwise the cause of ctx when that ends.
func (f *Front) Drain(ctx context.Context) error {
	f.stopAccepting()
	if !f.loop.Post(f.drain) {
		return nil // The reactor has closed all connections.
	}
	select {
	case <-f.empty:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close closes all connections, whatever is due, and returns when nothing of the front runs any more.
func (f *Front) Close() error {
	f.stopAccepting()
	if f.loop.Post(f.cutAll) {
		<-f.empty
	}
	f.closeAll()
	f.streams.Wait()
	return nil
}

// drain lets each session end.
func (f *Front) drain() {
	f.draining = true
	for _, s := range f.sessions {
		s.proceed()
	}
	f.tellIfEmpty()
}

// cutAll closes all sessions.
func (f *Front) cutAll() {
	f.draining = true
	for _, s := range f.sessions {
		s.conn.Close(errCutOff)
	}
	f.tellIfEmpty()
}

func (f *Front) tellIfEmpty() {
	if f.draining && !f.emptied && len(f.sessions) == 0 {
		f.emptied = true
		close(f.empty)
	}
}

// enter makes the session of a new connection.
func (f *Front) enter(conn transport.Accepted, remote string) *session {
	f.lastID++
	s := &session{front: f, conn: conn, index: len(f.sessions), id: f.lastID, remote: remote}
	s.outbox = f.service.NewOutbox(s)
	s.context, s.leave = context.WithCancel(context.Background())
	f.sessions = append(f.sessions, s)
	if len(f.sessions) == 1 {
		if f.sweeper == nil {
			f.sweeper = f.loop.NewTimer(f.sweep)
		}
		every := f.options.sweepEvery()
		_ = f.sweeper.Start(every, every) // It fails only on a stopping loop.
	}
	return s
}

// leave forgets a session that has ended.
func (f *Front) leave(s *session) {
	last := len(f.sessions) - 1
	f.sessions[s.index] = f.sessions[last]
	f.sessions[s.index].index = s.index
	f.sessions[last] = nil
	f.sessions = f.sessions[:last]
	f.connections.Add(-1)
	f.tellIfEmpty()
}

// trim gives buffers back that a rare giant has left.
func (f *Front) trim() {
	if cap(f.encoded) > keepBytes {
		f.encoded = nil
	}
	if cap(f.text) > keepBytes {
		f.text = nil
	}
}
