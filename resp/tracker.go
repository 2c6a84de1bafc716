package resp

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/reactor/transport"
)

// refusedPause is the pause after a server has refused to track: an operator has to change something first.
const refusedPause = 30 * time.Second

// pingsPerSilence is how many pings a tracker sends within the silence that it allows.
const pingsPerSilence = 3

// An Invalidator keeps values that were read from a server, and learns which have changed there. Loop only.
type Invalidator interface {
	// Invalidate says that a key has changed, or may have. The key is a view until the call returns.
	Invalidate(key []byte)
	// InvalidateAll says so of all keys.
	InvalidateAll(now clock.Time)
}

// A Tracker makes a server report which keys change: CLIENT TRACKING, on one connection of its own with RESP3. The
// server reports all keys with some prefixes (broadcast), or those that a Client has read: see TrackReads. The
// tracker connects when it has prefixes to track, and again whenever the connection ends. Loop only.
//
//	AUTH … HELLO 3 ─▶ CLIENT TRACKING ON BCAST PREFIX … ─OK─▶ stands ──PING, a third of maxSilence later──▶ …
//	                                                            │
//	push invalidate ─▶ Invalidate of each key; of null (FLUSHALL), tracking begins, connection lost ─▶ InvalidateAll
//
// Redis queues the message of a change before the writer gets its OK, and answers a ping after all messages queued
// earlier. So a pong means that the tracker knows each change whose writer had its OK when the ping was sent. Keys
// may be served from memory while Trusted says so.
type Tracker struct {
	loop       *loop.Loop
	dialer     transport.Dialer
	opts       Options
	hellos     hellos
	hello3     Batch // HELLO 3
	ping       Batch
	maxSilence time.Duration
	told       Invalidator
	changed    func(error)
	reader     *Client // the server reports what it reads; nil: all keys with these prefixes
	believed   func(pong Reply) bool

	wanted    []string // sorted; none begins with another
	requested []string // of the server, on this connection
	tracked   []string // those of them that it has confirmed

	state    connState // connReady: the tracker stands
	id       int64     // of the connection at the server, if there is a reader
	tr       transport.Conn
	decoder  *Decoder
	asked    ring[trackerQuestion]
	pinging  bool       // a ping is among asked
	doubted  bool       // the last answer to one is not believed
	keys     int64      // of the present push, still to come
	reading  bool       // if OnData finds it set, a callback has panicked
	unread   int        // bytes that the transport keeps for later
	answered clock.Time // when the last ping was sent that was answered, or the command that tracks
	heardAt  clock.Time // when bytes last came
	readyBy  clock.Time // the current attempt fails at this instant
	backoff  Backoff
	pauseEnd clock.Time // after a refusal; otherwise 0
	said     trackerState
	timer    *loop.Timer
	ticked   clock.Time // when tick last ran: what had arrived by then has been read since
	closed   bool
	stats    TrackerStats
}

// A trackerQuestion is a command that is unanswered.
type trackerQuestion struct {
	greeting int      // command i of the greeting
	prefixes []string // of CLIENT TRACKING; nil: it is a command of the greeting, or a ping
	ping     bool
	sentAt   clock.Time
}

// A trackerState is the state last reported to the owner.
type trackerState uint8

const (
	trackerNew trackerState = iota
	trackerStands
	trackerLost
	trackerRefused
)

// TrackerStats counts what a tracker has done since it was built. A copy; any goroutine.
type TrackerStats struct {
	Connects      uint64 // attempts to connect
	Losses        uint64 // connections lost while tracking stood
	Keys          uint64 // that the server has named
	Flushes       uint64 // messages that all keys have changed
	BytesReceived uint64
}

// NewTracker returns a tracker that has not connected yet. It does not trust a server that has not answered a ping
// for maxSilence, some 1 s. changed, which may be nil, is called with nil when tracking begins to work. When tracking
// fails, its argument is an *OpError that matches ErrTrackingRefused, ErrConnect or ErrConnectionLost. Attempts that
// fail for the same reason are reported once.
func NewTracker(l *loop.Loop, d transport.Dialer, o Options, maxSilence time.Duration, told Invalidator, changed func(error)) *Tracker {
	o = o.WithDefaults()
	t := &Tracker{loop: l, dialer: d, opts: o, maxSilence: maxSilence, told: told, changed: changed, decoder: NewDecoder3(o.Limits)}
	t.backoff = NewBackoff(&t.opts, rand.New(rand.NewPCG(o.Seed, 1)))
	t.hello3.Cmd("HELLO", "3")
	t.ping.Cmd("PING")
	t.timer = l.NewTimer(t.tick)
	return t
}

// TrackReads makes the server report keys that a client has read, instead of prefixes: the client's connections send
// CLIENT TRACKING ON REDIRECT with the id of the tracker's. When a connection ends, the server forgets what it has
// read, so all its keys may have changed. Each connection is asked again as often as the tracker sends a ping: keys
// are trusted only while all of them answer. The owner calls it before Track.
func (t *Tracker) TrackReads(c *Client) {
	t.reader = c
	c.forgotten = func() { t.told.InvalidateAll(t.loop.Now()) }
}

// Ask makes the tracker send another command in place of PING. While believed returns false for the latest answer,
// the server is not trusted, and all keys may have changed. An error as the answer does not count. The owner calls it
// before Track.
func (t *Tracker) Ask(believed func(Reply) bool, command ...string) {
	t.believed = believed
	t.ping.Reset()
	t.ping.Cmd(command...)
}

// Track makes the server report changes of keys that begin with one of the prefixes, which replace those of the
// previous call; an empty prefix means all keys. The tracker asks for new prefixes on the same connection. If a new
// prefix begins an old one, Redis refuses the overlap, and the tracker connects anew. The server may continue to
// report prefixes that are no longer wanted.
func (t *Tracker) Track(prefixes []string) {
	t.wanted = shortestPrefixes(prefixes)
	if t.reader != nil && len(prefixes) > 0 {
		t.wanted = []string{""}
	}
	if t.closed {
		return
	}
	switch t.state {
	case connDown:
		t.connect(t.loop.Now())
	case connGreeting, connReady:
		fresh := slices.DeleteFunc(slices.Clone(t.wanted), func(p string) bool { return covers(t.requested, p) })
		switch {
		case len(fresh) == 0:
		case slices.ContainsFunc(t.requested, func(p string) bool { return covers(fresh, p) }):
			t.shut(errOverlap)
		default:
			t.request(fresh)
		}
	}
}

// Covers reports whether the server reports changes of a key, or of each key with this prefix, so that values read
// now may be kept. If the server reports what a client reads, values that a connection read before the server agreed
// are dropped when it agrees.
func (t *Tracker) Covers(key []byte) bool {
	return t.state == connReady && covers(t.tracked, key)
}

// Trusted reports whether the tracker knows all changes whose writers had their OK some time ago, at most maxSilence.
func (t *Tracker) Trusted() bool {
	since := t.loop.Now().Add(-t.maxSilence)
	return t.state == connReady && !t.doubted && t.answered >= since && (t.reader == nil || t.reader.redirects(since))
}

// Stats returns the counters as they are now.
func (t *Tracker) Stats() TrackerStats { return t.stats }

// Reset gives up the connection for a reason. All keys may have changed.
func (t *Tracker) Reset(reason error) { t.shut(reason) }

// Close closes the connection. A second Close does nothing. The owner closes the tracker before it stops the loop.
func (t *Tracker) Close() {
	if t.closed {
		return
	}
	t.closed = true
	t.shut(nil)
	t.timer.Close(nil)
}

// covers reports whether a key begins with one of the prefixes.
func covers[K string | []byte](prefixes []string, key K) bool {
	for _, p := range prefixes {
		if len(key) >= len(p) && string(key[:len(p)]) == p {
			return true
		}
	}
	return false
}

// shortestPrefixes returns the prefixes without those that begin with another one, sorted.
func shortestPrefixes(prefixes []string) (shortest []string) {
	for _, p := range slices.Sorted(slices.Values(prefixes)) {
		if !covers(shortest, p) {
			shortest = append(shortest, p)
		}
	}
	return shortest
}

// OnConnect implements transport.Handler.
func (t *Tracker) OnConnect(err error) {
	switch {
	case err != nil:
		t.lost(err)
	case t.state != connDialing:
		// Given up meanwhile; OnClose is to come.
	case len(t.wanted) == 0:
		t.shut(nil)
	default:
		t.state = connGreeting
		t.decoder.Reset(1)
		hello := t.hellos.begin().Batch
		for i := range hello.Len() + 1 {
			t.asked.push(trackerQuestion{greeting: i})
		}
		if hello.Len() > 0 {
			t.write(hello)
		}
		t.write(&t.hello3)
		t.request(t.wanted)
	}
}

// request asks the server to track prefixes.
func (t *Tracker) request(prefixes []string) {
	var b Batch
	args := []string{"CLIENT", "TRACKING", "ON"}
	if t.reader == nil {
		args = append(args, "BCAST")
		for _, p := range prefixes {
			args = append(args, "PREFIX", p)
		}
	}
	b.Cmd(args...)
	t.requested = append(t.requested, prefixes...)
	t.asked.push(trackerQuestion{prefixes: prefixes, sentAt: t.loop.Now()})
	t.write(&b)
}

func (t *Tracker) write(b *Batch) {
	if err := t.tr.Write(b.buf); err != nil {
		t.shut(err)
	}
}

// OnData implements transport.Handler. It takes the keys of a push one by one. So a push needs no more memory than
// its longest key, and an iteration handles only the keys of one read of a socket.
func (t *Tracker) OnData(data []byte) (consumed int) {
	if t.reading {
		t.shut(errPanicked)
	}
	t.stats.BytesReceived += uint64(len(data) - t.unread)
	t.heardAt = t.loop.Now()
	t.reading = true
	for consumed < len(data) && (t.state == connGreeting || t.state == connReady) {
		n, err := t.read(data[consumed:])
		if err != nil {
			t.shut(err)
		}
		if n == 0 {
			break
		}
		consumed += n
	}
	t.reading = false
	if t.state == connClosing {
		consumed = len(data) // The rest of a closed connection is ignored.
	}
	t.unread = len(data) - consumed
	return consumed
}

// invalidation begins each message of changed keys, which follow as an array.
const invalidation = ">2\r\n$10\r\ninvalidate\r\n*"

// read takes the next value, or the part of a push before its keys. It returns 0 if that has not arrived.
func (t *Tracker) read(data []byte) (n int, err error) {
	if t.keys == 0 {
		head := min(len(data), len(invalidation))
		if string(data[:head]) == invalidation[:head] {
			size, next, ok := header(data, head)
			switch {
			case ok && size >= 0:
				t.keys = size
				return next, nil
			case !ok && len(data) < head+maxHeaderDigits:
				return 0, nil
			} // Otherwise the decoder says what is wrong.
		}
	}
	n, done, err := t.decoder.Decode(data)
	if !done {
		return 0, err
	}
	reply := t.decoder.Replies().At(0)
	switch {
	case t.keys > 0 && reply.Kind() != Bulk:
		err = &ProtocolError{Reason: "changed key of kind " + reply.Kind().String()}
	case t.keys > 0:
		t.keys--
		t.stats.Keys++
		t.told.Invalidate(reply.Bytes())
	case reply.Kind() == Push:
		t.heard(reply)
	case t.asked.len == 0:
		err = ErrUnsolicited
	default:
		err = t.hear(t.asked.pop(), reply)
	}
	if err != nil {
		return 0, err
	}
	t.decoder.Reset(1)
	return n, nil
}

// heard takes a push without keys. The tracker asks only for pushes of changes.
func (t *Tracker) heard(push Reply) {
	if push.Len() == 2 && string(push.At(0).Bytes()) == "invalidate" && push.At(1).Kind() == Null {
		t.stats.Flushes++
		t.told.InvalidateAll(t.loop.Now())
	}
}

// hear takes the reply to a question, and returns the reason why the connection cannot be used.
func (t *Tracker) hear(q trackerQuestion, reply Reply) error {
	switch {
	case q.ping: // Even an error shows that the server has come so far.
		t.pinging = false
		t.answered = q.sentAt
		t.believe(reply)
		t.backoff.Answered()
		t.schedule(t.pingAt())
	case q.prefixes != nil:
		if err := reply.Err(); err != nil {
			return refusal(err.(*ServerError))
		}
		t.tracked = append(t.tracked, q.prefixes...)
		// A read that was sent before may have been answered before the server began to track.
		t.told.InvalidateAll(t.loop.Now())
		if t.state == connGreeting {
			t.stands(q.sentAt)
		}
	case q.greeting < t.hellos.now.Batch.Len():
		return t.hellos.now.Check(q.greeting, reply)
	default: // HELLO
		if err := reply.Err(); err != nil {
			return refusal(err.(*ServerError))
		}
		for name, value := range reply.Pairs() {
			if string(name.Bytes()) == "id" {
				t.id, _ = value.ParseInt()
			}
		}
		if t.reader != nil && t.id == 0 {
			return refusal(&ServerError{Message: "HELLO names no id of the connection"})
		}
	}
	return nil
}

// believe takes the answer to a ping.
func (t *Tracker) believe(reply Reply) {
	if t.believed != nil && reply.Err() == nil && t.believed(reply) == t.doubted {
		t.doubted = !t.doubted
		t.told.InvalidateAll(t.loop.Now())
	}
}

// A trackingRefusal is a reply that will not change by itself: the server is too old, is a proxy, or does not permit
// CLIENT to the user.
type trackingRefusal struct{ *ServerError }

// refusal returns the reason for which HELLO 3 or CLIENT TRACKING has failed.
func refusal(err *ServerError) error {
	switch code := err.Code(); {
	case code == "LOADING", code == "BUSY", code == "MASTERDOWN", err.refusesAll():
		return err
	}
	return trackingRefusal{err}
}

// stands begins to trust the server, which has confirmed the first prefixes.
func (t *Tracker) stands(since clock.Time) {
	now := t.loop.Now()
	t.state = connReady
	t.answered = since
	t.backoff.Ready(now)
	t.schedule(t.pingAt())
	t.redirect(t.id)
	t.say(trackerStands, nil)
}

// redirect makes the reader ask for reports of what it reads to connection id; 0: none.
func (t *Tracker) redirect(id int64) {
	if t.reader != nil {
		t.reader.redirect(id)
	}
}

// pingAt returns when the next ping is due.
func (t *Tracker) pingAt() clock.Time { return t.answered.Add(t.maxSilence / pingsPerSilence) }

// OnClose implements transport.Handler.
func (t *Tracker) OnClose(reason error) { t.lost(reason) }

// shut gives the connection up. From now on nothing is trusted.
func (t *Tracker) shut(reason error) {
	if t.state == connDown || t.state == connClosing {
		return
	}
	t.unstand(reason)
	t.state = connClosing
	t.tr.Close(reason)
}

// unstand drops what was kept, if tracking stood.
func (t *Tracker) unstand(reason error) {
	if t.state != connReady {
		return
	}
	t.state = connClosing
	t.stats.Losses++
	t.redirect(0)
	t.told.InvalidateAll(t.loop.Now())
	t.say(trackerLost, &OpError{Addr: t.opts.Addr, Kind: ErrConnectionLost, Cause: reason})
}

// lost is the one way back to down: the attempt has failed, or the connection ended.
func (t *Tracker) lost(reason error) {
	now := t.loop.Now()
	t.unstand(reason)
	t.state = connDown
	t.requested, t.tracked = nil, nil
	t.asked, t.pinging, t.doubted, t.keys, t.reading, t.unread = ring[trackerQuestion]{}, false, false, 0, false, 0
	t.decoder.Reset(0)
	t.backoff.Ended(now)
	t.pauseEnd = 0
	var refused trackingRefusal
	switch {
	case len(t.wanted) == 0:
	case errors.As(reason, &refused):
		t.pauseEnd = now.Add(refusedPause)
		t.say(trackerRefused, &OpError{Addr: t.opts.Addr, Kind: ErrTrackingRefused, Cause: refused.ServerError})
	case t.said != trackerLost:
		t.say(trackerLost, &OpError{Addr: t.opts.Addr, Kind: ErrConnect, Cause: reason})
	}
	t.schedule(max(t.backoff.RetryAt(), t.pauseEnd))
}

// say reports the state to the owner, if it has changed.
func (t *Tracker) say(state trackerState, err error) {
	if state == t.said || t.closed {
		return
	}
	t.said = state
	if t.changed != nil {
		t.changed(err)
	}
}

// connect dials, now or when the pause is over, if there is something to track.
func (t *Tracker) connect(now clock.Time) {
	if len(t.wanted) == 0 {
		return
	}
	if retryAt := max(t.backoff.RetryAt(), t.pauseEnd); now < retryAt {
		t.schedule(retryAt)
		return
	}
	t.stats.Connects++
	t.state = connDialing
	t.readyBy = now.Add(t.opts.ConnectTimeout)
	options := t.opts.dialOptions()
	options.UnreadMaxBytes, options.Prepare = t.opts.MaxReplyBytes, t.hellos.prepare(&t.opts)
	t.tr = t.dialer.Dial(t.opts.Addr, options, t)
	t.schedule(t.readyBy)
}

// schedule makes tick run at an instant, or before.
func (t *Tracker) schedule(at clock.Time) {
	if !t.closed && t.timer.StartBy(at) != nil {
		t.loop.Defer(t.Close) // The loop is stopping.
	}
}

// tick does what is due. As for a Client, a silence counts only if the loop has read its sockets after the limit.
func (t *Tracker) tick() {
	now, looked := t.loop.Now(), t.ticked
	t.ticked = now
	switch t.state {
	case connDown:
		t.connect(now)
	case connGreeting:
		if t.readyBy.Passed(looked) {
			t.shut(transport.ErrConnectTimeout)
			return
		}
		t.schedule(t.readyBy)
	case connReady:
		switch {
		case t.pinging:
			stalledBy := max(t.asked.front().sentAt, t.heardAt).Add(t.opts.StallTimeout)
			if stalledBy.Passed(looked) {
				t.shut(errStalled)
				return
			}
			t.schedule(stalledBy)
		case t.pingAt().Passed(now):
			t.pinging = true
			t.asked.push(trackerQuestion{ping: true, sentAt: now})
			t.write(&t.ping)
			t.redirect(t.id)
			t.schedule(now.Add(t.opts.StallTimeout))
		default:
			t.schedule(t.pingAt())
		}
	}
}
