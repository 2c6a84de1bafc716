package reactor

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/panjf2000/gnet/v2"
	gneterrors "github.com/panjf2000/gnet/v2/pkg/errors"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
)

// Config says what a reactor is built from. Immutable once given to New. The zero
// value works.
type Config struct {
	// Clock tells the loop the time. Nil means the machine's monotonic clock. Waits
	// are real whatever the clock: one that stands still is for looptest.
	Clock clock.Clock
	// OnPanic is told of contained panics: see loop.Config. A handler that panics
	// in OnConnect or OnData also loses its connection.
	OnPanic func(recovered any, stack []byte)
	// ReadBufferBytes is the most that one read takes from a socket; gnet rounds it
	// up to a power of two. There is one such buffer per reactor. Zero means 64 KiB,
	// gnet's default; echoing over loopback, 256 KiB and 1 MiB were no faster.
	ReadBufferBytes int
	// Logf is told what gnet has to say from warnings upwards: poller errors, events
	// of descriptors it no longer knows. Nil drops it. gnet's logger is global to the
	// process, so the reactor that was built last gets all. Called from any goroutine.
	Logf func(format string, args ...any)
}

// A Reactor is a running loop with connections. Start, Stop and Loop: any
// goroutine. Dial: loop only.
type Reactor struct {
	cfg  Config
	loop *loop.Loop

	mu      sync.Mutex // guards started
	started bool

	connectTo func(ctx context.Context, network, addr string) (net.Conn, error) // net.Dialer's

	// Set by Start, before the loop is.
	client  *gnet.Client
	poller  gnet.EventLoop
	hop     *hop
	timer   *time.Timer // wakes the loop for the earliest timer; see arm
	turning gnet.Runnable
	onTimer func()

	// Loop only.
	inside   int                // callbacks of gnet and turns on the stack: nested, as gnet calls back from within its calls
	armed    clock.Time         // when timer fires; 0 if it has fired or was never set
	conns    map[*conn]struct{} // neither failed nor closed, or not yet told so
	dialing  int                // goroutines that are connecting and have not reported
	dirty    []*conn            // have written and wait for the flush, each once
	draining bool               // the loop is stopping: no more dials
	broken   bool               // gnet's goroutine is ending without having been told to
	finished bool               // gnet's goroutine is to end
}

// New returns a reactor that is not started.
func New(cfg Config) *Reactor {
	r := &Reactor{
		cfg:   cfg,
		loop:  loop.New(loop.Config{Clock: cfg.Clock, OnPanic: cfg.OnPanic}),
		conns: make(map[*conn]struct{}),

		connectTo: new(net.Dialer).DialContext,
	}
	r.turning = runnable(r.turn)
	r.onTimer = func() { r.armed = 0 }
	return r
}

// Loop returns the reactor's loop.
func (r *Reactor) Loop() *loop.Loop { return r.loop }

// Start starts gnet and the loop. When it returns nil the loop accepts posts. A
// second Start does nothing; once the loop has stopped it returns loop.ErrStopped. An
// error, be it of the operating system (no descriptors left), leaves the reactor as
// it was.
func (r *Reactor) Start() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started {
		return r.loop.Start((*host)(r))
	}
	if err := r.startPoller(); err != nil {
		return fmt.Errorf("start reactor: %w", err)
	}
	if err := r.loop.Start((*host)(r)); err != nil {
		r.finished = true // gnet closes the hop as its goroutine ends: not a failure
		r.stopPoller()
		r.poller = nil
		return err
	}
	r.started = true
	return nil
}

// Stop is Loop().Stop(): connections are closed with loop.ErrStopped. It does not wait;
// once Loop().Done() is closed no goroutine, descriptor or timer is left.
func (r *Reactor) Stop() { r.loop.Stop() }

// startPoller starts gnet with the hop as its only connection. A gnet client is an
// event loop without a listener, and only a connection gives access to it.
func (r *Reactor) startPoller() error {
	client, err := gnet.NewClient(&events{Reactor: r},
		gnet.WithNumEventLoop(1),
		gnet.WithReadBufferCap(r.cfg.ReadBufferBytes),
		gnet.WithLogger(logger{r.cfg.Logf}),
	)
	if err != nil {
		return err
	}
	hop, end, err := newHop()
	if err != nil {
		return err
	}
	if err := client.Start(); err != nil {
		hop.close()
		_ = end.Close()
		return err
	}
	gc, err := client.EnrollContext(end, hop)
	if err != nil {
		hop.close()
		_ = client.Stop()
		return err
	}
	r.client, r.poller, r.hop = client, gc.EventLoop(), hop
	r.timer = time.AfterFunc(time.Hour, func() { r.loop.Post(r.onTimer) })
	r.timer.Stop()
	return nil
}

// stopPoller ends gnet and waits for its goroutine. It is not for that goroutine.
func (r *Reactor) stopPoller() {
	_ = r.client.Stop()
	r.hop.close()
}

// turn runs one turn of the loop and sees to it that the next one comes in time.
func (r *Reactor) turn() error {
	r.inside++
	wait := r.loop.Turn()
	r.inside--
	switch {
	case r.finished:
		return gneterrors.ErrEngineShutdown
	case wait == 0:
		r.hop.trigger()
	case wait > 0:
		r.arm(wait)
	}
	return nil
}

// arm sees to it that the loop wakes at its earliest timer, which is wait away. A
// Go timer that fires before that is left as it is: it costs one turn, once, while
// moving it at each turn, as request timeouts come and go, would cost each.
func (r *Reactor) arm(wait time.Duration) {
	due := r.loop.Due()
	if r.armed != 0 && r.armed <= due {
		return
	}
	r.armed = due
	r.timer.Reset(wait)
}

// submit has gnet run the turn after the present batch of events, or wakes it to do so.
func (r *Reactor) submit() {
	// The error is that of a poller that has ended, which the loop outlives by no call.
	_ = r.poller.Execute(context.Background(), r.turning)
}

// event runs a callback of gnet for c and sees to it that a turn follows.
func (r *Reactor) event(c *conn, fn func()) {
	if r.contain(c, fn) {
		r.submit()
	}
}

// contain runs a callback of gnet for c. A handler that has panicked is in no state to go
// on reading: its connection closes. It reports whether a turn has to be submitted.
func (r *Reactor) contain(c *conn, fn func()) (turn bool) {
	r.inside++
	turn, recovered := r.loop.Event(fn)
	r.inside--
	if recovered != nil {
		c.end(fmt.Errorf("connection handler panicked: %v", recovered))
	}
	return turn
}

// host is the reactor as the loop sees it.
type host Reactor

// Wake implements loop.Host.
func (h *host) Wake() { (*Reactor)(h).submit() }

// keepDirty bounds the list of dirty connections that a burst leaves behind: 8 KiB.
const keepDirty = 1 << 10

// Flush implements loop.Host: each connection with bytes writes what has not left
// earlier (see flushBytes), in one system call.
func (h *host) Flush() {
	for _, c := range h.dirty {
		c.dirty = false
		c.flush()
	}
	if cap(h.dirty) > keepDirty {
		h.dirty = nil
		return
	}
	clear(h.dirty)
	h.dirty = h.dirty[:0]
}

// Drain implements loop.Host: all connections close, and connects under way end.
func (h *host) Drain() (pending bool) {
	if !h.draining {
		h.draining = true
		for c := range h.conns {
			c.end(loop.ErrStopped)
		}
	}
	return !h.broken && (len(h.conns) > 0 || h.dialing > 0)
}

// Finish implements loop.Host. gnet's goroutine cannot wait for its own end, so
// another does.
func (h *host) Finish(done func()) {
	h.finished = true
	h.timer.Stop()
	go func() {
		(*Reactor)(h).stopPoller()
		done()
	}()
}

// events receives gnet's callbacks, all on the loop goroutine.
type events struct {
	gnet.BuiltinEventEngine
	*Reactor
}

// OnOpen implements gnet.EventHandler.
func (e *events) OnOpen(gc gnet.Conn) ([]byte, gnet.Action) {
	c, ok := gc.Context().(*conn)
	if !ok {
		return nil, gnet.None // the hop, before the loop has started
	}
	var action gnet.Action
	e.event(c, func() { action = c.opened(gc) })
	return nil, action
}

// OnTraffic implements gnet.EventHandler.
func (e *events) OnTraffic(gc gnet.Conn) gnet.Action {
	data, _ := gc.Next(-1) // all there is; gnet's own buffer, as nothing is ever left in its other one
	c, ok := gc.Context().(*conn)
	if (!ok || e.traffic(c, data)) && e.turn() != nil {
		return gnet.Shutdown
	}
	return gnet.None
}

// traffic hands data over. It reports whether the turn is to follow at once: the only
// connection is a batch of its own.
func (r *Reactor) traffic(c *conn, data []byte) (turn bool) {
	alone := len(r.conns) == 1
	turn = r.contain(c, func() { c.received(data) })
	if turn && !alone {
		r.submit()
		turn = false
	}
	return turn
}

// OnClose implements gnet.EventHandler. gnet calls it from within Write and Close,
// too. If the peer has ended the connection the iteration completes first, while the
// descriptor is open still: gnet may report the end before the turn that follows the last
// data, and what the handler has to say to that data leaves with that turn.
func (e *events) OnClose(gc gnet.Conn, err error) gnet.Action {
	c, ok := gc.Context().(*conn)
	if !ok {
		if !e.finished {
			e.abandon()
		}
		return gnet.None
	}
	if err != nil && e.inside == 0 && e.turn() != nil {
		return gnet.Shutdown
	}
	e.event(c, func() { c.closed(gc, err) })
	return gnet.None
}

// abandon winds the loop down while gnet's goroutine ends of itself, because its
// poller has failed: what was accepted runs, and handlers are told. Only the
// goroutines of connects under way are lost: gnet never lets go of them.
func (r *Reactor) abandon() {
	r.broken = true
	r.loop.Stop()
	for !r.finished {
		r.loop.Turn()
	}
}

// runnable adapts a function to gnet.Runnable.
type runnable func() error

// Run implements gnet.Runnable.
func (f runnable) Run(context.Context) error { return f() }
