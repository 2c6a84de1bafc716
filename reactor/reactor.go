package reactor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/panjf2000/gnet/v2"
	gneterrors "github.com/panjf2000/gnet/v2/pkg/errors"
	"golang.org/x/sys/unix"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
)

// Config says what a reactor is built from. Immutable once given to New. The zero
// value works.
type Config struct {
	// Clock tells the loop the time. Nil means the machine's monotonic clock. The poller
	// waits in real time whatever the clock says: use looptest for a clock that stands still.
	Clock clock.Clock
	// OnPanic receives contained panics: see loop.Config. A handler that panics in
	// OnConnect or OnData also loses its connection.
	OnPanic func(recovered any, stack []byte)
	// ReadBufferBytes bounds one read from a socket; gnet rounds it up to a power of two. A reactor has one such
	// buffer. Zero means 64 KiB, gnet's default: larger buffers did not make an echo over loopback faster.
	ReadBufferBytes int
	// BusyPoll is how long the loop looks for answers before it sleeps. Zero means DefaultBusyPoll; a negative value
	// means that it sleeps at once.
	BusyPoll time.Duration
	// Logf receives gnet's warnings and errors, such as poller errors and events of unknown descriptors. Nil drops
	// them. gnet's logger is global to the process, so the reactor started last gets all of them. Any goroutine calls
	// it.
	Logf func(format string, args ...any)
}

// A Reactor is a running loop with connections. Start, Stop and Loop: any
// goroutine. Enroll: any goroutine except the loop's. Dial: loop only.
type Reactor struct {
	cfg  Config
	loop *loop.Loop

	mu      sync.Mutex // guards started
	started bool

	connectTo func(ctx context.Context, network, addr string) (net.Conn, error) // net.Dialer's

	// Set by Start, before the loop is.
	client    *gnet.Client
	poller    gnet.EventLoop
	pipe      *selfPipe
	timer     *time.Timer // wakes the loop for the earliest timer; see arm
	iteration gnet.Runnable
	onTimer   func()

	// Loop only.
	inside  int                  // callbacks and iterations on the stack; they nest, because gnet calls back within its calls
	armed   clock.Time           // when timer fires; 0 if it has fired or was never set
	conns   map[*conn]struct{}   // those whose handler does not know yet of a failure or close
	secures map[*secure]struct{} // likewise
	dialing int                  // goroutines that are connecting or enrolling and have not reported, or that serve a secure connection
	dirty   []*conn              // connections that wait for the flush, each once
	spare   spareBuffers
	busy    busyPoll
	servers map[*conn]struct{} // of conns, those that Dial has made
	burst   int                // events of accepted connections since the last iteration
	// readInto is memory for reads beside gnet's; nil before the first.
	readInto []byte
	draining bool // the loop is stopping: no more dials
	broken   bool // gnet's goroutine ends because its poller has failed
	finished bool // gnet's goroutine shall end
}

// New returns a reactor that is not started.
func New(cfg Config) *Reactor {
	if cfg.BusyPoll == 0 {
		cfg.BusyPoll = DefaultBusyPoll
	}
	r := &Reactor{
		cfg:   cfg,
		busy:  newBusyPoll(cfg.BusyPoll),
		loop:  loop.New(loop.Config{Clock: cfg.Clock, OnPanic: cfg.OnPanic, ThreadCPU: clock.NewThreadCPU()}),
		conns: make(map[*conn]struct{}), servers: make(map[*conn]struct{}), secures: make(map[*secure]struct{}),

		connectTo: new(net.Dialer).DialContext,
	}
	r.iteration = runnable(r.iterate)
	r.onTimer = func() { r.armed = 0 }
	return r
}

// Loop returns the reactor's loop.
func (r *Reactor) Loop() *loop.Loop { return r.loop }

// Start starts gnet and the loop. When it returns nil the loop accepts posts. A second Start does nothing; once the
// loop has stopped it returns loop.ErrStopped. After any other error, such as too few descriptors, Start can be tried
// again.
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
		r.finished = true // gnet closes the self-pipe as its goroutine ends: not a failure
		r.stopPoller()
		r.poller = nil
		return err
	}
	r.started = true
	return nil
}

// Stop stops the loop, which closes all connections with loop.ErrStopped. It does not
// wait. Once Loop().Done() is closed, no goroutine, descriptor or timer is left.
func (r *Reactor) Stop() { r.loop.Stop() }

// startPoller starts gnet with the self-pipe as its only connection. A gnet client is an
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
	pipe, end, err := newSelfPipe()
	if err != nil {
		return err
	}
	if err := client.Start(); err != nil {
		pipe.close()
		_ = end.Close()
		return err
	}
	gc, err := client.EnrollContext(end, pipe)
	if err != nil {
		pipe.close()
		_ = client.Stop()
		return err
	}
	r.client, r.poller, r.pipe = client, gc.EventLoop(), pipe
	r.timer = time.AfterFunc(time.Hour, func() { r.loop.Post(r.onTimer) })
	r.timer.Stop()
	return nil
}

// stopPoller ends gnet and waits for its goroutine, which therefore must not call it.
func (r *Reactor) stopPoller() {
	_ = r.client.Stop()
	r.pipe.close()
}

// Bounds of the iterations that follow each other without a poll between them.
const (
	pollAfter     = 20 * time.Microsecond
	pollAfterRuns = 16 // the clock may stand still
)

// iterate runs the part of an iteration after the poll, and ensures that the next one comes in time. Work that the
// loop has posted to itself follows at once, within these bounds: the self-pipe costs three system calls, about as
// much as a chain of cheap nodes. A due timer waits for a poll: code that judges a silence starts a timer of zero, so
// that the sockets are read once more.
func (r *Reactor) iterate() error {
	r.burst = 0
	r.busy.begin()
	r.inside++
	wait := r.loop.Iterate()
	began := r.loop.Now()
	for runs := 1; wait == 0 && !r.timerDue() && runs < pollAfterRuns && r.loop.Now().Sub(began) < pollAfter; runs++ {
		wait = r.loop.Iterate()
	}
	r.inside--
	switch {
	case r.finished:
		return gneterrors.ErrEngineShutdown
	case wait == 0 && r.timerDue():
		r.submit() // after the ready sockets, and after the connections that wait to be taken over
		return nil
	case wait == 0:
		r.pipe.trigger()
		return nil
	case wait > 0:
		r.arm(wait)
	}
	r.busy.wait(r.conns)
	return nil
}

// timerDue reports whether a timer was due when the loop last looked at its clock.
func (r *Reactor) timerDue() bool { return r.loop.Due().Passed(r.loop.Now()) }

// arm ensures that the loop wakes at its earliest timer, which is due after wait. It does not move a Go timer that
// fires earlier. That costs one iteration, once; moving the Go timer with every request timeout would cost something
// in every iteration.
func (r *Reactor) arm(wait time.Duration) {
	due := r.loop.Due()
	if r.armed != 0 && r.armed <= due {
		return
	}
	r.armed = due
	r.timer.Reset(wait)
}

// submit has gnet run iterate after the present batch of events. It wakes a poller that waits.
func (r *Reactor) submit() {
	// Execute fails only after the poller has stopped; nothing is called after that.
	_ = r.poller.Execute(context.Background(), r.iteration)
}

// event runs a callback of gnet for c and ensures that the rest of the iteration follows.
func (r *Reactor) event(c *conn, fn func()) {
	if r.contain(c, fn) {
		r.submit()
	}
}

// contain runs a callback of gnet for c. It reports whether iterate has to be submitted. A
// handler that has panicked cannot go on reading, so its connection closes.
func (r *Reactor) contain(c *conn, fn func()) (submit bool) {
	r.busy.begin()
	r.inside++
	submit, recovered := r.loop.Event(fn)
	r.inside--
	if recovered != nil {
		c.end(panicked(recovered))
	}
	return submit
}

// panicked returns the reason for which a connection closes after a panic of its handler.
func panicked(recovered any) error {
	return errors.New("connection handler panicked: " + errtext.Text(fmt.Sprint(recovered)))
}

// host is the reactor as the loop sees it.
type host Reactor

// Wake implements loop.Host.
func (h *host) Wake() {
	h.busy.wake()
	(*Reactor)(h).submit()
}

// keepDirty bounds the memory of the list of dirty connections that stays after a burst: 8 KiB.
const keepDirty = 1 << 10

// Flush implements loop.Host: each connection sends its buffered bytes in one system
// call. Bytes beyond flushBytes have left earlier.
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

// Drain implements loop.Host: it closes all connections and cancels all attempts to connect.
func (h *host) Drain() (pending bool) {
	if !h.draining {
		h.draining = true
		for c := range h.conns {
			c.end(loop.ErrStopped)
		}
		for s := range h.secures {
			s.end(loop.ErrStopped)
		}
	}
	return !h.broken && (len(h.conns) > 0 || len(h.secures) > 0 || h.dialing > 0)
}

// Finish implements loop.Host. gnet's goroutine cannot wait for its own end, so
// another goroutine does.
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
		return nil, gnet.None // the self-pipe, before the loop has started
	}
	var action gnet.Action
	e.event(c, func() { action = c.opened(gc) })
	return nil, action
}

// OnTraffic implements gnet.EventHandler.
func (e *events) OnTraffic(gc gnet.Conn) gnet.Action {
	data, _ := gc.Next(-1) // everything; no copy, because gnet's ring buffer is always empty
	c, ok := gc.Context().(*conn)
	if (!ok || e.traffic(c, data)) && e.iterate() != nil {
		return gnet.Shutdown
	}
	return gnet.None
}

// traffic hands data over. It reports whether the iteration continues at once, without a task: an event of the only
// connection is a batch of its own.
func (r *Reactor) traffic(c *conn, data []byte) (atOnce bool) {
	alone := len(r.conns) == 1
	atOnce = r.contain(c, func() { c.received(data) })
	if atOnce && !alone {
		r.submit()
		atOnce = false
	}
	if c.direct == nil {
		return atOnce
	}
	if r.burst++; r.burst < burstMost {
		return atOnce
	}
	r.readServers()
	return true
}

// burstMost is how many events of accepted connections the loop handles before it looks at its servers again and goes
// on with running requests. gnet hands over up to 1,024 events at a time. When so many clients were refused, at some
// 10 µs each, running requests waited 10 ms for each answer of Redis, and many missed their deadlines (rankd bench
// overload).
const burstMost = 32

// readServers hands over what the connections that wait for an answer have received. gnet does not notice: it finds
// nothing left to read.
func (r *Reactor) readServers() {
	if r.readInto == nil {
		r.readInto = make([]byte, readIntoBytes)
	}
	for c := range r.servers {
		if c.gc == nil || !c.expecting {
			continue
		}
		if n, err := unix.Read(c.gc.Fd(), r.readInto); n > 0 && err == nil {
			r.contain(c, func() { c.received(r.readInto[:n]) })
		}
	}
}

// OnClose implements gnet.EventHandler. gnet calls it within Write and Close, too. If the peer has ended the
// connection, the iteration completes first, while the descriptor is still open. For gnet may report the end before
// it runs the task that follows the last data, and the handler's answer to that data leaves with that task.
func (e *events) OnClose(gc gnet.Conn, err error) gnet.Action {
	c, ok := gc.Context().(*conn)
	if !ok {
		if !e.finished {
			e.abandon()
		}
		return gnet.None
	}
	if err != nil && e.inside == 0 && e.iterate() != nil {
		return gnet.Shutdown
	}
	e.event(c, func() { c.closed(gc, err) })
	return gnet.None
}

// abandon winds the loop down while gnet's goroutine ends because its poller has failed.
// Accepted posts run, and handlers hear of the end. Only goroutines that are connecting are
// lost: gnet never answers them.
func (r *Reactor) abandon() {
	r.broken = true
	r.loop.Stop()
	for !r.finished {
		r.loop.Iterate()
	}
}

// runnable adapts a function to gnet.Runnable.
type runnable func() error

// Run implements gnet.Runnable.
func (f runnable) Run(context.Context) error { return f() }
