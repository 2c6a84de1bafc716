package rowcache_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/internal/rowcache"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/internal/testing/loopsim"
	"github.com/rankd/rankd/internal/testing/simnet"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/resp"
)

var (
	seeds     = flag.Uint64("seeds", 150, "worlds of TestTrackingSimulation")
	firstSeed = flag.Uint64("first_seed", 0, "the first of these")
)

const (
	simAddr    = "redis:6379"
	maxSilence = 300 * time.Millisecond
	maxAge     = 800 * time.Millisecond
	simulated  = 3 * time.Second
)

// TestTrackingSimulation has requests read from a table and from a server, as tasks do. Others
// write the server's keys. Connections are slow, cut anywhere, lost and silent. Prefixes
// change, and the table evicts. In every second world the server only reports changes of keys
// that were read, and forgets some. The server keeps versions of each key. So each value from
// memory can be compared with these promises:
//
//   - it is no older than the last change of the key that the loop has read;
//   - it is no older than the last change whose writer had its OK maxSilence before;
//   - its read was sent within maxAge, and within the time that the request allows;
//   - it is of the key and of the meaning that the request wants.
func TestTrackingSimulation(t *testing.T) {
	reads, hits := 0, 0
	played := []uint64{287} // In this world a value that was read before tracking began would be kept, if anything allowed it.
	for i := range *seeds {
		played = append(played, *firstSeed+i)
	}
	for _, seed := range played {
		w := newWorld(t, seed)
		w.play()
		reads, hits = reads+w.reads, hits+w.hits
	}
	t.Logf("%d reads, %d of them from memory", reads, hits)
	require.Greater(t, hits, reads/20, "the table is of use") // In a few worlds it is a tenth, more or less.
}

// A world is a server, clients that write there, and a loop that reads through a table.
type world struct {
	t    *testing.T
	seed uint64
	rng  *rand.Rand
	sim  *loopsim.Sim
	net  *simnet.Net
	end  clock.Time

	table   *rowcache.Table
	ahead   time.Duration // by which the clock of reads is ahead of the loop's time
	tracker *resp.Tracker
	client  *resp.Client
	flushes uint64 // that the loop has read
	reads   int
	hits    int

	pad      string // after each value
	between  time.Duration
	lag      float64
	keys     []*record
	sessions []*session
	tracking *session  // the last that asked for RESP3
	ids      int       // of connections so far
	inCycle  bool      // the server's cycle ends later
	unacked  []*record // written in it
}

// A record is a key of the server.
type record struct {
	key     string
	version int
	acked   []ack // ascending
	told    int   // the version of the last change that the loop has read
}

type ack struct {
	at      clock.Time
	version int
}

// A notice is a message of the server that the loop has not read.
type notice struct {
	record   *record // nil: of all keys
	version  int
	versions []int
}

// A session is the server's end of a connection.
type session struct {
	w        *world
	peer     *simnet.Peer
	id       int
	prefixes []string
	told     int              // the id of the session that hears of changes of what is read here; 0: none does
	read     map[*record]bool // read here, and reported there when it changes
	changes  []notice         // of this cycle
	notices  []notice         // sent, in order
	out      []byte
	silentBy clock.Time // output that left before then waits until then
	held     []byte
	gone     bool
	dead     bool // gone at the server, and the loop does not know
}

func newWorld(t *testing.T, seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 7))
	w := &world{t: t, seed: seed, rng: rng, between: w0(rng, 20*time.Millisecond)}
	w.sim = loopsim.New(rng, func(recovered any, stack []byte) { t.Fatalf("seed %d: panic: %v\n%s", seed, recovered, stack) })
	slow := w0(rng, 5*time.Millisecond)
	w.net = simnet.New(w.sim, rng, simnet.Config{
		Latency: func() time.Duration { return w0(rng, slow) },
		Refuse:  0.2 * float64(rng.IntN(2)),
		Split:   0.3 * float64(rng.IntN(3)),
		Loss:    0.002 * float64(rng.IntN(2)),
	})
	w.net.Listen(simAddr, w.accept)
	w.end = w.sim.Now().Add(simulated)
	w.lag = 0.002 * float64(rng.IntN(2))
	count := 3 + rng.IntN(8)
	if rng.IntN(5) == 0 {
		count, w.pad = 300, strings.Repeat("x", 5000) // more than the table has room for
	}
	for _, prefix := range []string{"a:", "b:", "c:"} {
		for i := range count {
			w.keys = append(w.keys, &record{key: prefix + strconv.Itoa(i)})
		}
	}
	w.table = rowcache.NewTable(rowcache.BytesMin, maxAge)
	options := resp.Options{Addr: simAddr, Connections: 1 + rng.IntN(2), StallTimeout: time.Second, Seed: seed}
	if rng.IntN(2) == 0 {
		options.MaxInflight = 4 // Larger calls leave in parts.
	}
	w.client = resp.NewClient(w.sim.Loop, w.net, options)
	w.tracker = resp.NewTracker(w.sim.Loop, w.net, options, maxSilence, w, nil)
	if rng.IntN(2) == 0 {
		w.tracker.TrackReads(w.client)
	}
	w.table.Rely(w.tracker)
	w.table.Watch(w.tracker)
	w.again(2*time.Millisecond, w.read)
	w.again(w.between, func() { w.write(w.any()) })
	w.again(200*time.Millisecond, w.disturb)
	return w
}

// w0 draws a duration up to d.
func w0(rng *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(d) + 1))
}

// again runs fn from time to time.
func (w *world) again(spread time.Duration, fn func()) {
	w.sim.After(w0(w.rng, 2*spread), func() {
		if w.sim.Now() < w.end {
			fn()
			w.again(spread, fn)
		}
	})
}

func (w *world) any() *record { return w.keys[w.rng.IntN(len(w.keys))] }

// ofPrefix returns a record whose key has the same prefix as another one's.
func (w *world) ofPrefix(of *record) *record {
	for {
		if r := w.any(); r.key[:len("a:")] == of.key[:len("a:")] {
			return r
		}
	}
}

// play lets everything happen.
func (w *world) play() {
	closed := false
	for {
		require.NoError(w.t, w.sim.Settle())
		at, ok := w.sim.Next()
		if !closed && at >= w.end {
			closed = true
			w.sim.After(0, func() { w.client.Close(); w.tracker.Close() })
			continue
		}
		if !ok {
			break
		}
		if w.rng.Float64() < w.lag {
			at = at.Add(w0(w.rng, 500*time.Millisecond))
		}
		w.sim.MoveTo(at)
	}
	require.Zero(w.t, w.net.Open())
}

// Now implements clock.Clock for requests. The loop's time lags behind it.
func (w *world) Now() clock.Time { return w.sim.Loop.Now().Add(w.ahead) }

// read is a request for what a command says of some keys. The values may have the age that it
// allows.
func (w *world) read() {
	if w.sim.Now() >= w.end {
		return
	}
	w.ahead = w0(w.rng, 2*time.Millisecond)
	wanted := []*record{w.any()}
	for w.rng.IntN(10) == 0 || len(wanted) > 1 && len(wanted) < 8 {
		wanted = append(wanted, w.ofPrefix(wanted[0]))
	}
	command := []string{"GET", "HGETALL"}[w.rng.IntN(2)]
	allowed := []time.Duration{0, 0, 100 * time.Millisecond, time.Hour}[w.rng.IntN(4)]
	recall := new(taskrun.Recall)
	rule := taskrun.RecallRule{Shape: command, Prefix: wanted[0].key[:len("a:")], MaxAge: allowed}
	require.True(w.t, recall.Open(w.table, w, 0, new(rowcache.Use), &rule))
	values := recall.Find(0, len(wanted), records(wanted))
	call := new(resp.Call)
	var missing []*record
	for i, r := range wanted {
		w.reads++
		if value := values[i]; value != nil {
			w.hits++
			w.check(r, command, string(value), allowed)
			continue
		}
		missing = append(missing, r)
		call.Batch.Cmd(command, r.key)
	}
	if missing == nil {
		return
	}
	recall.Sending()
	sent := w.Now()
	call.Done = func(c *resp.Call) {
		if c.Err != nil {
			return
		}
		w.ahead = w0(w.rng, 2*time.Millisecond)
		for i := range missing {
			recall.Put(i, records(missing), fmt.Append(nil, int64(sent), " ", string(c.Replies.At(i).Bytes())))
		}
	}
	require.NoError(w.t, w.client.Do(call))
}

// records are the keys of a read.
type records []*record

func (rs records) Key(dst []byte, i int) []byte { return append(dst, rs[i].key...) }

// check compares a value from memory with the promises.
func (w *world) check(r *record, command, value string, allowed time.Duration) {
	var sent int64
	var version int
	var of, key string
	_, err := fmt.Sscan(value, &sent, &of, &key, &version)
	require.NoError(w.t, err)
	require.Equal(w.t, command+" "+r.key, of+" "+key, "seed %d", w.seed)
	require.GreaterOrEqual(w.t, version, r.told, "seed %d: %s is older than the change that the loop has read", w.seed, r.key)
	least, now := 0, w.sim.Loop.Now()
	for _, a := range r.acked {
		if now.Sub(a.at) > maxSilence {
			least = a.version
		}
	}
	require.GreaterOrEqual(w.t, version, least, "seed %d: %s is older than a change of long ago", w.seed, r.key)
	age := w.Now().Sub(clock.Time(sent))
	require.LessOrEqual(w.t, age, maxAge, "seed %d: %s was read long ago", w.seed, r.key)
	require.True(w.t, allowed == 0 || age <= allowed, "seed %d: %s is %v old, for a request that allows %v", w.seed, r.key, age, allowed)
}

// disturb does one of the things that go wrong rarely.
func (w *world) disturb() {
	switch w.rng.IntN(11) {
	case 0:
		for _, s := range w.sessions {
			if s == w.tracking || w.rng.IntN(4) == 0 {
				s.silentBy = w.sim.Now().Add(w0(w.rng, 1500*time.Millisecond))
			}
		}
	case 1:
		w.flush()
	case 2:
		w.net.SetDown(simAddr, true)
		w.sim.After(w0(w.rng, 300*time.Millisecond), func() { w.net.SetDown(simAddr, false) })
	case 3:
		if w.tracking != nil {
			w.tracking.peer.Close(nil)
		}
	case 4:
		w.tracker.Track([][]string{{"a:"}, {"a:", "b:"}, {"b:", "a:1"}, {""}}[w.rng.IntN(4)])
	case 5: // The replies come after all keys have changed.
		for _, s := range w.sessions {
			if s != w.tracking {
				s.silentBy = w.sim.Now().Add(w0(w.rng, 500*time.Millisecond))
			}
		}
		w.sim.After(w0(w.rng, 50*time.Millisecond), func() {
			if w.tracking == nil || w.rng.IntN(3) == 0 {
				w.flush()
				return
			}
			w.tracking.peer.Close(nil)
			for range 30 {
				w.sim.After(w0(w.rng, 20*time.Millisecond), w.read)
				w.sim.After(w0(w.rng, 20*time.Millisecond), func() { w.write(w.any()) })
			}
		})
	case 6:
		for range w.rng.IntN(50) {
			w.write(w.any())
		}
	case 7: // The server gives a connection up, and the loop hears of it at once or late.
		if s := w.anySession(); s != nil {
			s.gone, s.dead = true, true
			w.sim.After(w0(w.rng, 1500*time.Millisecond)*time.Duration(w.rng.IntN(2)), func() { s.peer.Close(nil) })
			w.cycle()
		}
	case 9: // A connection that reads is lost. No new one can be made for a while.
		if s := w.anySession(); s != nil && s != w.tracking {
			w.net.SetFull(simAddr, true)
			w.sim.After(w0(w.rng, time.Second), func() { w.net.SetFull(simAddr, false) })
			s.gone = true
			s.peer.Close(nil)
			w.cycle()
		}
	case 8: // The server has too many keys to remember.
		for range w.rng.IntN(20) {
			w.tell(w.any())
		}
		w.cycle()
	}
}

// anySession returns one of the server's sessions, or nil.
func (w *world) anySession() *session {
	if len(w.sessions) == 0 {
		return nil
	}
	return w.sessions[w.rng.IntN(len(w.sessions))]
}

// Invalidate implements resp.Invalidator.
func (w *world) Invalidate(key []byte) {
	n := w.nextNotice()
	require.NotNil(w.t, n.record, "seed %d: a key that is all keys", w.seed)
	require.Equal(w.t, n.record.key, string(key), "seed %d", w.seed)
	n.record.told = n.version
	w.table.Invalidate(key)
}

// InvalidateAll implements resp.Invalidator.
func (w *world) InvalidateAll(now clock.Time) {
	if flushes := w.tracker.Stats().Flushes; flushes > w.flushes {
		w.flushes = flushes
		for i, version := range w.nextNotice().versions {
			w.keys[i].told = version
		}
	}
	w.table.InvalidateAll(now)
}

func (w *world) nextNotice() notice {
	require.NotEmpty(w.t, w.tracking.notices, "seed %d", w.seed)
	n := w.tracking.notices[0]
	w.tracking.notices = w.tracking.notices[1:]
	return n
}

// write changes a key. The writer gets its OK at the end of the server's cycle.
func (w *world) write(r *record) {
	r.version++
	w.unacked = append(w.unacked, r)
	for _, s := range w.sessions {
		if slices.ContainsFunc(s.prefixes, func(p string) bool { return strings.HasPrefix(r.key, p) }) {
			s.changes = append(s.changes, notice{record: r, version: r.version})
		}
	}
	w.tell(r)
	w.cycle()
}

// tell tells those who have read a key, and forgets them.
func (w *world) tell(r *record) {
	for _, s := range w.sessions {
		if !s.gone && s.read[r] {
			delete(s.read, r)
			if to := w.session(s.told); to != nil {
				to.changes = append(to.changes, notice{record: r, version: r.version})
			}
		}
	}
}

// session returns the session that has an id, or nil.
func (w *world) session(id int) *session {
	for _, s := range w.sessions {
		if s.id == id && !s.gone {
			return s
		}
	}
	return nil
}

// flush changes all keys.
func (w *world) flush() {
	var versions []int
	for _, r := range w.keys {
		r.version++
		versions = append(versions, r.version)
	}
	w.unacked = append(w.unacked, w.keys...)
	for _, s := range w.sessions {
		clear(s.read)
		to := s
		if s.told != 0 {
			to = w.session(s.told)
		}
		if to != nil && !s.gone && (len(s.prefixes) > 0 || s.told != 0) {
			to.notices = append(to.notices, notice{versions: versions})
			to.out = append(to.out, ">2\r\n$10\r\ninvalidate\r\n_\r\n"...)
		}
	}
	w.cycle()
}

// cycle has the server end its cycle soon.
func (w *world) cycle() {
	if !w.inCycle {
		w.inCycle = true
		w.sim.After(w0(w.rng, time.Millisecond), w.endCycle)
	}
}

// endCycle sends what Redis sends before it sleeps: messages of changes first, and then all replies.
func (w *world) endCycle() {
	w.inCycle = false
	for _, s := range w.sessions {
		if len(s.changes) > 0 {
			s.out = redcon.AppendArray(append(s.out, ">2\r\n$10\r\ninvalidate\r\n"...), len(s.changes))
			for _, c := range s.changes {
				s.out = redcon.AppendBulkString(s.out, c.record.key)
			}
			s.notices = append(s.notices, s.changes...)
			s.changes = nil
		}
		s.send()
	}
	for _, r := range w.unacked {
		r.acked = append(r.acked, ack{w.sim.Now(), r.version})
	}
	w.unacked = nil
	w.sessions = slices.DeleteFunc(w.sessions, func(s *session) bool { return s.gone })
}

// send lets the output leave, now or after the silence.
func (s *session) send() {
	if s.dead || len(s.out) == 0 && len(s.held) == 0 {
		return
	}
	s.held = append(s.held, s.out...)
	s.out = nil
	if now := s.w.sim.Now(); now < s.silentBy {
		s.w.sim.At(s.silentBy, s.send)
		return
	}
	s.peer.Write(s.held)
	s.held = nil
}

func (w *world) accept(p *simnet.Peer) {
	w.ids++
	s := &session{w: w, peer: p, id: w.ids, read: map[*record]bool{}}
	w.sessions = append(w.sessions, s)
	p.OnClose = func() { s.gone = true }
	p.OnData = func(data []byte) int {
		if s.dead {
			return len(data)
		}
		rest := data
		for len(rest) > 0 {
			complete, args, _, left, err := redcon.ReadNextCommand(rest, nil)
			require.NoError(w.t, err)
			if !complete {
				break
			}
			rest = left
			s.execute(args)
		}
		w.cycle()
		return len(data) - len(rest)
	}
}

func (s *session) execute(args [][]byte) {
	switch command := string(args[0]); command {
	case "GET", "HGETALL":
		i := slices.IndexFunc(s.w.keys, func(r *record) bool { return r.key == string(args[1]) })
		if s.told != 0 {
			s.read[s.w.keys[i]] = true
		}
		s.out = redcon.AppendBulkString(s.out, fmt.Sprint(command, " ", string(args[1]), " ", s.w.keys[i].version, " ", s.w.pad))
	case "HELLO":
		s.w.tracking = s
		s.out = append(s.out, fmt.Sprintf("%%2\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:%d\r\n", s.id)...)
	case "CLIENT": // TRACKING ON, and REDIRECT id or BCAST PREFIX p …
		if len(args) == 3 {
			s.told = s.id
		}
		if len(args) == 3 || string(args[3]) == "REDIRECT" {
			if len(args) > 3 {
				s.told, _ = strconv.Atoi(string(args[4]))
			}
			if s.w.session(s.told) == nil {
				s.told = 0
				s.out = redcon.AppendError(s.out, "ERR The client ID you want redirect to does not exist")
				return
			}
			s.out = redcon.AppendOK(s.out)
			return
		}
		require.Equal(s.w.t, "TRACKING ON BCAST", string(bytes.Join(args[1:4], []byte(" "))))
		for i := 5; i < len(args); i += 2 {
			fresh := string(args[i])
			for _, p := range s.prefixes {
				require.False(s.w.t, strings.HasPrefix(p, fresh) || strings.HasPrefix(fresh, p), "seed %d: %q overlaps %q", s.w.seed, fresh, p)
			}
			s.prefixes = append(s.prefixes, fresh)
		}
		s.out = redcon.AppendOK(s.out)
	default:
		require.Equal(s.w.t, "PING", command)
		s.out = append(s.out, "+PONG\r\n"...)
	}
}
