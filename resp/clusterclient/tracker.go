package clusterclient

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/cluster"
)

// watchedEvery bounds the age of the map that a Tracker relies on, because reads from memory never get a MOVED.
const watchedEvery = 5 * time.Second

// An Invalidator is a resp.Invalidator that can invalidate a single slot: a *rowcache.Table. Loop only.
type Invalidator interface {
	resp.Invalidator
	// InvalidatePart says that all keys of a slot may have changed.
	InvalidatePart(slot int, now clock.Time)
}

// A Tracker makes the masters of a cluster tell which keys change. It has a resp.Tracker, with a connection of its own, for each master that has slots.
// All values of a slot count as changed when its master's connection ends, and when the slot moves to another master.
//
//	owner of the slot tracked? ─yes─▶ keep the reply ─▶ serve it while the owner's tracker is trusted
//	    │ no, or ASK was followed                            │ slot moves, connection lost, cluster_state:fail
//	    └──▶ answer, keep nothing                            └──▶ drop what was read of these slots
//
// Loop only.
type Tracker struct {
	client     *Client
	maxSilence time.Duration
	told       Invalidator
	changed    func(error)
	reads      bool
	prefixes   []string
	nodes      []*trackedNode // by the numbers of the client's state; nil: it has no slots
	refused    int            // of nodes
	syncFn     func()
	deferred   bool // sync is to run: nodes may lack one, or have one too many
	closed     bool
}

// A trackedNode is a master with slots.
type trackedNode struct {
	*resp.Tracker
	tracker *Tracker
	number  int
	addr    string
	refused bool // it refuses to tell
}

// Track returns a tracker of the cluster's masters that has not connected yet. A client has at most one. It is otherwise like resp.NewTracker, and with
// reads like one whose owner has called TrackReads. It panics if the client reads from replicas: a master tells of a change before they have it.
func (c *Client) Track(maxSilence time.Duration, told Invalidator, reads bool, changed func(error)) *Tracker {
	if c.opts.ReadFrom != resp.ReadMaster {
		panic("clusterclient: a client that reads from replicas has no tracker")
	}
	t := &Tracker{client: c, maxSilence: maxSilence, told: told, changed: changed, reads: reads}
	t.syncFn = t.sync
	c.tracker = t
	c.state.Watch(t.moved, watchedEvery)
	return t
}

// Track makes the masters tell of keys that begin with one of the prefixes, as Track of a resp.Tracker does.
func (t *Tracker) Track(prefixes []string) {
	if t.closed || t.client.closed {
		return
	}
	t.prefixes = slices.Clone(prefixes)
	for _, n := range t.nodes {
		if n != nil {
			n.Track(t.prefixes)
		}
	}
	if t.wants() {
		t.client.refresh(t.client.loop.Now())
		t.client.schedule(t.client.state.Due())
	}
}

// Covers reports whether the master that has a key's slot tells of its changes.
func (t *Tracker) Covers(key []byte) bool {
	n := t.owner(cluster.Slot(key))
	return n != nil && n.Covers(key)
}

// Trusted reports whether all masters are trusted.
func (t *Tracker) Trusted() bool {
	return !t.deferred && t.client.state.Ready() && !slices.ContainsFunc(t.nodes, func(n *trackedNode) bool { return n != nil && !n.Trusted() })
}

// Part returns the slot of a key.
func (t *Tracker) Part(key []byte) int { return cluster.Slot(key) }

// Trusts reports whether the master that has a slot is trusted.
func (t *Tracker) Trusts(slot int) bool {
	n := t.owner(slot)
	return n != nil && n.Trusted()
}

// Close closes all connections. A second Close does nothing.
func (t *Tracker) Close() {
	t.closed = true
	for i, n := range t.nodes {
		if n != nil {
			n.Close()
			t.nodes[i] = nil
		}
	}
}

// wants reports whether the client must have a map, and keep it up to date.
func (t *Tracker) wants() bool { return t != nil && !t.closed && len(t.prefixes) > 0 }

// owner returns the master of a slot, or nil if it is not tracked yet.
func (t *Tracker) owner(slot int) *trackedNode {
	state := t.client.state
	if number := state.Owner(slot); number != cluster.None && number < len(t.nodes) {
		if n := t.nodes[number]; n != nil && n.addr == state.Addr(number) {
			return n
		}
	}
	return nil
}

// moved is called when a slot has moved to another master.
func (t *Tracker) moved(slot int) {
	t.told.InvalidatePart(slot, t.client.loop.Now())
	if !t.deferred && !t.closed {
		t.deferred = true
		t.client.loop.Defer(t.syncFn)
	}
}

// asked is called when a command follows an ASK. Its reply comes from a node that does not own the slot yet and may not be tracked, so nobody would tell of changes.
func (t *Tracker) asked(command []byte) {
	if t == nil {
		return
	}
	if key, ok := cluster.Key(command); ok {
		t.told.Invalidate(key)
	}
}

// sync makes a tracker for each master that has slots, and removes the others.
func (t *Tracker) sync() {
	t.deferred = false
	c := t.client
	if t.closed || c.closed {
		return
	}
	for len(t.nodes) < c.state.Nodes() {
		t.nodes = append(t.nodes, nil)
	}
	for number, n := range t.nodes {
		addr, owns := c.state.Addr(number), c.state.Owns(number) > 0
		if n != nil && (!owns || n.addr != addr) {
			n.heard(nil)
			n.Close()
			n, t.nodes[number] = nil, nil
		}
		if n == nil && owns {
			t.add(number, addr)
		}
	}
}

// reset ends the connection to a master that is another server than the map has.
func (t *Tracker) reset(number int, reason error) {
	if t != nil && number < len(t.nodes) && t.nodes[number] != nil {
		t.nodes[number].Reset(reason)
	}
}

// add begins to track a master.
func (t *Tracker) add(number int, addr string) {
	c := t.client
	o := c.optionsOf(number)
	n := &trackedNode{tracker: t, number: number, addr: addr}
	n.Tracker = resp.NewTracker(c.loop, c.dialer, o, t.maxSilence, n, n.heard)
	n.Ask(isWhole, "CLUSTER", "INFO")
	if t.reads {
		n.TrackReads(c.node(number))
	}
	t.nodes[number] = n
	n.Track(t.prefixes)
}

// isWhole reports whether a node still belongs to the cluster, by its own account. A master that the others have lost takes no writes, but a replica of
// it may have taken over: the old master then tells of no changes.
func isWhole(info resp.Reply) bool {
	return !bytes.Contains(info.Bytes(), []byte("cluster_state:fail"))
}

// Invalidate implements resp.Invalidator.
func (n *trackedNode) Invalidate(key []byte) { n.tracker.told.Invalidate(key) }

// InvalidateAll implements resp.Invalidator.
func (n *trackedNode) InvalidateAll(now clock.Time) {
	t := n.tracker
	for slot := range cluster.Slots {
		if t.client.state.Owner(slot) == n.number {
			t.told.InvalidatePart(slot, now)
		}
	}
}

// heard passes on the state of the trackers. If a master refuses, the state is its refusal.
func (n *trackedNode) heard(err error) {
	t := n.tracker
	if n.refused {
		t.refused--
	}
	if n.refused = errors.Is(err, resp.ErrTrackingRefused); n.refused {
		t.refused++
	}
	if n.refused || t.refused == 0 {
		t.changed(err)
	}
}
