package scheduler

import (
	"bytes"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/plan"
)

// stuckAfter is how long the loop may make no progress before the watchdog says so, and how often it looks. Nodes
// of 10 ms are long on the loop already.
const stuckAfter = time.Second

// Stuck says that one callback holds up the loop, such as the body of a node that never returns: nothing else
// happens on the loop meanwhile, and no deadline ends anything. Immutable.
type Stuck struct {
	For  time.Duration // so far; for a callback that has ended: the total, as the watchdog saw it
	Over bool          // the callback has ended
	// Node is the node whose body runs. Nil if the callback is another one, or has ended.
	Node *plan.Node
	// Stack has the stacks of the loop's goroutine and of the body's. Empty if the callback has ended.
	Stack string
}

// logStuck is the OnStuck of an engine that was given none.
func logStuck(s Stuck) { s.Log(slog.Default()) }

// Log writes what s says.
func (s Stuck) Log(l *slog.Logger) {
	switch {
	case s.Over:
		l.Warn("the loop goes round again", "stuck_for", s.For)
	case s.Node == nil:
		l.Error("a callback holds up the loop", "stuck_for", s.For, "stack", s.Stack)
	default:
		l.Error("the body of a node holds up the loop", "stuck_for", s.For,
			"node", s.Node.ID, "op", s.Node.Op, "source_span", s.Node.SourceSpan, "stack", s.Stack)
	}
}

// watchdog checks a loop from a goroutine of its own. It costs the loop one atomic store each time that a body starts
// or continues. Any goroutine, except where a field or method says otherwise. A nil watchdog does nothing.
type watchdog struct {
	loop      *loop.Loop
	onStuck   func(Stuck)
	running   atomic.Pointer[plan.Node] // whose body has begun or gone on last
	goroutine atomic.Pointer[string]    // "goroutine 7 [", of the loop; nil: not known yet
	last      atomic.Pointer[Metrics]   // the last copy

	// Of the goroutine that looks.
	progress uint64
	looked   time.Time // the last time
	since    time.Time // progress has been as it is

	mu     sync.Mutex
	stuck  time.Time     // since when the loop is stuck; zero: it is not; guarded by mu
	begins chan struct{} // closed while the loop is stuck; guarded by mu
	times  uint64        // that the loop was stuck; guarded by mu

	end, ended chan struct{}
}

func newWatchdog(l *loop.Loop, onStuck func(Stuck)) *watchdog {
	if onStuck == nil {
		onStuck = logStuck
	}
	return &watchdog{loop: l, onStuck: onStuck, begins: make(chan struct{}), end: make(chan struct{}), ended: make(chan struct{})}
}

// start starts a goroutine that calls look at each tick, until close.
func (w *watchdog) start(ticks <-chan time.Time) {
	w.loop.Post(w.learnGoroutine)
	go func() {
		defer close(w.ended)
		for {
			select {
			case now := <-ticks:
				w.look(now)
			case <-w.end:
				return
			}
		}
	}()
}

// close ends the goroutine, and waits for its end. Once.
func (w *watchdog) close() {
	close(w.end)
	<-w.ended
}

// learnGoroutine runs on the loop.
func (w *watchdog) learnGoroutine() {
	var head [64]byte
	name, _, _ := bytes.Cut(head[:runtime.Stack(head[:], false)], []byte("["))
	goroutine := string(name) + "["
	w.goroutine.Store(&goroutine)
}

// look checks whether the loop has done anything since the last check. A long pause between two checks means that the
// process itself was stopped; the watchdog then begins anew. Only the watchdog's goroutine calls it.
func (w *watchdog) look(now time.Time) {
	progress, waits := w.loop.Progress()
	paused := now.Sub(w.looked) > 2*stuckAfter
	w.looked = now
	if waits || progress != w.progress || paused && w.StuckFor() == 0 {
		w.progress, w.since = progress, now
		w.over(now)
		return
	}
	if now.Sub(w.since) >= stuckAfter && w.begin() {
		s := Stuck{For: now.Sub(w.since)}
		s.Node, s.Stack = w.where()
		w.onStuck(s)
	}
}

// begin notes that the loop is stuck. It reports false if that was known.
func (w *watchdog) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stuck.IsZero() {
		return false
	}
	w.stuck = w.since
	w.times++
	close(w.begins)
	return true
}

// over notes that the loop is no longer stuck, if it was.
func (w *watchdog) over(now time.Time) {
	w.mu.Lock()
	since := w.stuck
	if !since.IsZero() {
		w.stuck, w.begins = time.Time{}, make(chan struct{})
	}
	w.mu.Unlock()
	if !since.IsZero() {
		w.onStuck(Stuck{For: now.Sub(since), Over: true})
	}
}

// StuckFor returns for how long the loop has been stuck now. Zero means that it is not.
func (w *watchdog) StuckFor() time.Duration {
	if w == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stuck.IsZero() {
		return 0
	}
	return time.Since(w.stuck)
}

// frozen returns a channel that is closed once the loop is stuck.
func (w *watchdog) frozen() <-chan struct{} {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.begins
}

// count adds what the watchdog has counted.
func (w *watchdog) count(m *Metrics) {
	if w == nil {
		return
	}
	m.StuckFor = w.StuckFor()
	w.mu.Lock()
	defer w.mu.Unlock()
	m.Stuck = w.times
}

// keep keeps a copy of m for times when the loop is stuck.
func (w *watchdog) keep(m *Metrics) {
	if w == nil {
		return
	}
	own := m.clone()
	w.last.Store(&own)
}

// The frames by which a body is found in stacks.
const (
	resumeFrame = "scheduler.(*coroutine).resume("
	inlineFrame = "scheduler.(*run).runInline("
	bodyFrame   = "scheduler.(*loopBody).run("
	suspended   = "[coroutine"
)

// where returns whose body holds up the loop, and the stacks of the loop and of the body. A coroutine has a stack of
// its own, and all except the running one are suspended.
func (w *watchdog) where() (node *plan.Node, stack string) {
	goroutine := w.goroutine.Load()
	if goroutine == nil {
		return nil, ""
	}
	var found []string
	for _, s := range strings.Split(allStacks(), "\n\n") {
		state := s[strings.IndexByte(s, '[')+1:]
		switch {
		case strings.HasPrefix(s, *goroutine):
			if found = append(found, s); strings.Contains(s, resumeFrame) || strings.Contains(s, inlineFrame) {
				node = w.running.Load()
			}
		case strings.Contains(s, bodyFrame) && !strings.HasPrefix(state, suspended[1:]):
			found = append(found, s)
		}
	}
	return node, strings.Join(found, "\n\n")
}

// allStacks returns the stacks of all goroutines, up to 64 MB.
func allStacks() string {
	for size := 1 << 20; ; size *= 2 {
		buffer := make([]byte, size)
		if n := runtime.Stack(buffer, true); n < size || size == 64<<20 {
			return string(buffer[:n])
		}
	}
}

// StuckFor returns how long one callback, such as a body that never returns, has held up the loop. Zero means that
// the loop runs. The watchdog of OpenAsync notices after one or two seconds; other engines have none. Any goroutine.
func (e *Async) StuckFor() time.Duration { return e.watchdog.StuckFor() }

// noteRunning notes whose body begins or goes on, on the loop.
func (e *Async) noteRunning(node *plan.Node) {
	if e.watchdog != nil {
		e.watchdog.running.Store(node)
	}
}
