package clusterclient

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/rowcache"
	"github.com/rankd/rankd/internal/testing/clustertest"
	"github.com/rankd/rankd/internal/testing/simnet"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/cluster"
)

// A trackedWorld has the values of keys, which are versions, and reports changes as Redis does.
type trackedWorld struct {
	world    *world
	versions map[string]int
	acked    map[string][]ackOf
	sessions []*session
	alone    []bool // by node: the others have left it
	refuses  []bool // by node: it does not report changes
}

// An ackOf says when a version of a key had its OK.
type ackOf struct {
	at      clock.Time
	version int
}

// A session is a connection at its node.
type session struct {
	w        *trackedWorld
	server   *server
	peer     *simnet.Peer
	id       int
	prefixes []string
	told     int // the session that hears of changes of what is read here
	read     map[string]bool
	gone     bool
}

func (w *trackedWorld) session(s *server, p *simnet.Peer) *session {
	if w == nil {
		return nil
	}
	own := &session{w: w, server: s, peer: p, id: len(w.sessions) + 1, read: map[string]bool{}}
	w.sessions = append(w.sessions, own)
	closed := p.OnClose
	p.OnClose = func() { closed(); own.gone = true }
	return own
}

// answer answers the commands that concern tracking.
func (s *session) answer(args []string) (text string, ok bool) {
	if s == nil {
		return "", false
	}
	switch {
	case args[0] == "HELLO":
		return fmt.Sprintf("%%1\r\n$2\r\nid\r\n:%d\r\n", s.id), true
	case s.w.alone[s.server.number] && args[0] == "GET":
		return "-CLUSTERDOWN The cluster is down\r\n", true
	case args[0] == "CLUSTER" && args[1] == "INFO":
		state := "ok"
		if s.w.alone[s.server.number] {
			state = "fail"
		}
		text := "cluster_state:" + state + "\r\ncluster_slots_assigned:16384\r\n"
		return fmt.Sprintf("=%d\r\ntxt:%s\r\n", len(text)+4, text), true
	case args[0] != "CLIENT":
		return "", false
	case s.w.refuses[s.server.number]:
		return "-NOPERM this user has no permissions to run the 'client|tracking' command\r\n", true
	case len(args) > 3 && args[3] == "REDIRECT":
		id, _ := strconv.Atoi(args[4])
		if to := s.w.sessions[id-1]; to.gone || to.server != s.server {
			return "-ERR The client ID you want redirect to does not exist\r\n", true
		}
		s.told = id
	case len(args) > 3 && args[3] == "BCAST":
		for i := 5; i < len(args); i += 2 {
			s.prefixes = append(s.prefixes, args[i])
		}
	}
	return "+OK\r\n", true
}

// replied notes a read, and fills in the version.
func (s *session) replied(args []string, text string) string {
	if s == nil || args[0] != "GET" || !strings.HasPrefix(text, "$") {
		return text
	}
	if s.told > 0 {
		s.read[args[1]] = true
	}
	value := strconv.Itoa(s.w.versions[args[1]])
	return fmt.Sprintf("$%d\r\n%s\r\n", len(value), value)
}

// tell has a node report that a key has changed there.
func (w *trackedWorld) tell(node int, key string) {
	push := fmt.Sprintf(">2\r\n$10\r\ninvalidate\r\n*1\r\n$%d\r\n%s\r\n", len(key), key)
	for _, s := range w.sessions {
		if s.gone || s.server.number != node {
			continue
		}
		if slices.ContainsFunc(s.prefixes, func(p string) bool { return strings.HasPrefix(key, p) }) {
			s.peer.Write([]byte(push))
		}
		if s.read[key] {
			delete(s.read, key)
			if to := w.sessions[s.told-1]; !to.gone {
				to.peer.Write([]byte(push))
			}
		}
	}
}

// at returns the node that has a key.
func (w *trackedWorld) at(key string) int {
	slot := cluster.Slot([]byte(key))
	if target := w.world.Target[slot*spans/cluster.Slots]; target >= 0 && slot%2 == 0 {
		return target
	}
	return w.world.Owner[slot*spans/cluster.Slots]
}

// write changes a key at the node that has it.
func (w *trackedWorld) write(key string) {
	w.versions[key]++
	w.tell(w.at(key), key)
	w.acked[key] = append(w.acked[key], ackOf{w.world.sim.Now(), w.versions[key]})
}

// rearrange moves slots. Nodes from which keys move away report these as changed, unless the
// nodes are dead.
func (w *trackedWorld) rearrange(keys []string, change func()) {
	var before []int
	for _, key := range keys {
		before = append(before, w.at(key))
	}
	change()
	for i, key := range keys {
		if w.at(key) != before[i] {
			w.tell(before[i], key)
		}
	}
}

const simSilence = 300 * time.Millisecond

// TestTrackingRandomClusters has requests read from a table, and from a cluster to which others
// write. Slots move back and forth. Nodes join, die, fall silent and lose contact with the
// others, and replicas take over. A value from memory is never older than the last change whose
// writer had its OK a certain time before. The value of a redirected read is not kept. When all
// is calm, values come from memory.
func TestTrackingRandomClusters(t *testing.T) {
	hits, reads := 0, 0
	for seed := range uint64(120) {
		if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			h, r := trackingRandomCluster(t, seed)
			hits, reads = hits+h, reads+r
		}) {
			return
		}
	}
	t.Logf("%d reads, %d from memory", reads, hits)
	require.Greater(t, hits, reads/20)
}

func trackingRandomCluster(t *testing.T, seed uint64) (hits, reads int) {
	draw := rand.New(rand.NewPCG(seed, 11))
	network := simnet.Config{Split: 0.3 * float64(draw.IntN(2)), Latency: func() time.Duration { return time.Duration(draw.IntN(2000)) * time.Microsecond }}
	w := newWorld(t, seed, 5, network)
	tracked := &trackedWorld{world: w, versions: map[string]int{}, acked: map[string][]ackOf{}, alone: make([]bool, 5), refuses: make([]bool, 5)}
	w.tracked = tracked
	for i := range w.Owner {
		w.Owner[i] = i % 3 // Two nodes join later.
	}
	rng := w.rng
	c := w.client(resp.Options{
		Addr: addrOf(0) + "," + addrOf(1), Connections: 1 + rng.IntN(2), RequestTimeout: 60 * time.Millisecond, ConnectTimeout: 50 * time.Millisecond,
		StallTimeout: 200 * time.Millisecond, Seed: seed,
	})
	table := rowcache.NewDivided(2*rowcache.BytesMin, time.Hour, cluster.Slots)
	tracker := c.Track(simSilence, table, rng.IntN(2) == 0, func(error) {})
	table.Rely(tracker)
	table.Watch(tracker)
	shape, _ := table.Shape("GET")
	var keys []string
	for i := range 40 {
		keys = append(keys, fmt.Sprint("k", i))
	}
	w.sim.After(0, func() { table.Follow("k") })
	read := func() {
		key, found, now := keys[rng.IntN(len(keys))], make([][]byte, 1), w.sim.Now()
		reads++
		if n, _, _ := table.Find([]byte(key), []int32{int32(len(key))}, found, shape, now, 0); n == 1 {
			hits++
			version, _ := strconv.Atoi(string(found[0]))
			for _, a := range tracked.acked[key] {
				if now.Sub(a.at) > simSilence {
					require.GreaterOrEqual(t, version, a.version, "seed %d: %s is older than a change of %v ago", seed, key, now.Sub(a.at))
				}
			}
			return
		}
		call, token := new(resp.Call), table.Token()
		call.Batch.Cmd("GET", key)
		call.Done = func(call *resp.Call) {
			if call.Err == nil && call.Replies.At(0).Err() == nil {
				table.Put([]byte(key), shape, call.Replies.At(0).Bytes(), token, now)
			}
		}
		require.NoError(t, c.Do(call))
	}
	step := func() {
		w.sim.MoveTo(w.sim.Now().Add(time.Duration(rng.IntN(8000)) * time.Microsecond))
		require.NoError(t, w.sim.Settle())
	}
	for range 400 {
		switch n := rng.IntN(len(w.nodes)); rng.IntN(24) {
		case 0, 1:
			i := rng.IntN(spans)
			to := n
			if to == w.Owner[i] {
				to = -1
			}
			tracked.rearrange(keys, func() { w.Target[i] = to })
		case 2, 3:
			if i := rng.IntN(spans); w.Target[i] >= 0 {
				tracked.rearrange(keys, func() { w.Owner[i], w.Target[i] = w.Target[i], -1 })
			}
		case 4: // It dies, loses contact with the others, or is silent, and another one takes over; or it comes back.
			back, how := rng.IntN(2) == 0, rng.IntN(3)
			w.sim.After(0, func() { w.net.SetDown(addrOf(n), !back && how == 0) })
			w.nodes[n].mute = !back && how == 1
			tracked.alone[n] = !back && how == 2
			if !back {
				for i := range w.Owner {
					if w.Owner[i] == n || w.Target[i] == n {
						w.Owner[i], w.Target[i] = (n+1)%len(w.nodes), -1
					}
				}
			}
		case 5:
			for range 3 {
				tracked.write(keys[rng.IntN(len(keys))])
			}
		default:
			w.sim.After(0, read)
		}
		step()
	}
	for i, s := range w.nodes {
		s.mute, tracked.alone[i] = false, false
		w.sim.After(0, func() { w.net.SetDown(addrOf(i), false) })
	}
	for i := range w.Target { // The moves so far go on.
		if w.Target[i] >= 0 {
			tracked.rearrange(keys, func() { w.Owner[i], w.Target[i] = w.Target[i], -1 })
		}
	}
	calm := func(n int) (found int) {
		before := hits
		for range n {
			w.sim.After(0, read)
			step()
		}
		return hits - before
	}
	for range 8 { // The message of the next second is due, and the client asks for the map.
		w.run(func() bool { return true })
		w.sim.MoveTo(w.sim.Now().Add(time.Second))
		calm(40)
	}
	calm(400)
	require.Greater(t, calm(100), 90, "seed %d", seed)
	w.sim.After(0, tracker.Close)
	w.end(c)
	return hits, reads
}

// The tracker reports a master that refuses to report changes. A master that has left the
// cluster does not count as refusing any more.
func TestTrackingRefused(t *testing.T) {
	w := newWorld(t, 1, 3, simnet.Config{})
	w.tracked = &trackedWorld{world: w, versions: map[string]int{}, alone: make([]bool, 3), refuses: []bool{false, true, false}}
	c := w.client(resp.Options{})
	table := rowcache.NewDivided(2*rowcache.BytesMin, time.Hour, cluster.Slots)
	var last error
	tracker := c.Track(simSilence, table, false, func(err error) { last = err })
	w.sim.After(0, func() { w.net.SetDown(addrOf(2), true); tracker.Track([]string{"k"}) })
	key := func(node int) []byte { return []byte(w.keyOf(node, 0)) }
	zero, one, two := key(0), key(1), key(2)
	w.run(func() bool { return errors.Is(last, resp.ErrTrackingRefused) && tracker.Covers(zero) })
	w.sim.After(0, func() { w.net.SetDown(addrOf(2), false) })
	w.run(func() bool { return tracker.Covers(two) })
	require.ErrorIs(t, last, resp.ErrTrackingRefused)
	assert.ErrorContains(t, last, "n1:1")
	assert.False(t, tracker.Trusted())
	assert.False(t, tracker.Covers(one))
	assert.True(t, tracker.Trusts(tracker.Part(zero)))
	assert.False(t, tracker.Trusts(tracker.Part(one)))
	for i := range w.Owner {
		if w.Owner[i] == 1 {
			w.Owner[i] = 2
		}
	}
	before := w.sim.Now() // Nobody asks Redis for anything from here on.
	w.run(func() bool { return last == nil && tracker.Trusted() })
	assert.Less(t, w.sim.Now().Sub(before), 6*time.Second)
	assert.True(t, tracker.Covers(one))
	w.sim.After(0, tracker.Close)
	w.end(c)
}

// slotsTold notes the slots of which all keys may have changed.
type slotsTold map[int]bool

func (slotsTold) Invalidate([]byte)                       {}
func (slotsTold) InvalidateAll(clock.Time)                {}
func (s slotsTold) InvalidatePart(slot int, _ clock.Time) { s[slot] = true }

// A master that has lost contact with the others answers pings, but takes no writes. What was
// read there, in any of its slots, is not served, though no reply says that the slots have moved.
func TestAMasterThatLosesContact(t *testing.T) {
	w := newWorld(t, 1, 3, simnet.Config{})
	w.tracked = &trackedWorld{world: w, versions: map[string]int{}, alone: make([]bool, 3), refuses: make([]bool, 3)}
	c := w.client(resp.Options{})
	told, its, last := slotsTold{}, slotsTold{}, w.Owner[spans-1]
	for slot := range cluster.Slots {
		if w.Owner[clustertest.SpanOf(slot)] == last {
			its[slot] = true
		}
	}
	tracker := c.Track(simSilence, told, false, func(error) {})
	w.sim.After(0, func() { tracker.Track([]string{"k"}) })
	slot := tracker.Part([]byte(w.keyOf(last, 0)))
	w.run(tracker.Trusted)
	clear(told)
	w.tracked.alone[last] = true
	before := w.sim.Now()
	w.run(func() bool { return !tracker.Trusts(slot) })
	assert.Less(t, w.sim.Now().Sub(before), simSilence)
	assert.False(t, tracker.Trusted())
	assert.Equal(t, its, told)
	clear(told)
	w.tracked.alone[last] = false
	w.run(tracker.Trusted)
	assert.Equal(t, its, told, "others may have written meanwhile")
	w.sim.After(0, tracker.Close)
	w.end(c)
}

// What was read from a master that says nothing is not served.
func TestASilentMasterIsNotTrusted(t *testing.T) {
	w := newWorld(t, 1, 3, simnet.Config{})
	w.tracked = &trackedWorld{world: w, versions: map[string]int{}, alone: make([]bool, 3), refuses: make([]bool, 3)}
	c := w.client(resp.Options{})
	tracker := c.Track(simSilence, slotsTold{}, false, func(error) {})
	w.sim.After(0, func() { tracker.Track([]string{"k"}) })
	w.run(tracker.Trusted)
	silent, other := tracker.Part([]byte(w.keyOf(1, 0))), tracker.Part([]byte(w.keyOf(2, 0)))
	require.True(t, tracker.Trusts(silent))
	w.nodes[1].mute = true
	for end := w.sim.Now().Add(2 * simSilence); w.sim.Now() < end; {
		w.pass(simSilence / 10)
	}
	assert.False(t, tracker.Trusts(silent))
	assert.True(t, tracker.Trusts(other))
	w.sim.After(0, tracker.Close)
	w.end(c)
}
