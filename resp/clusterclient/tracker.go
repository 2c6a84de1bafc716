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

// watchedEvery is how old the map may become on which a Tracker relies: reads from memory hear of no MOVED.
const watchedEvery = 5 * time.Second

// An Invalidator is a resp.Invalidator that may be told of a slot alone: a *rowcache.Table. Loop only.
type Invalidator interface {
	resp.Invalidator
	// InvalidatePart says that all keys of a slot may have changed.
	InvalidatePart(slot int, now clock.Time)
}

// A Tracker has the masters of a cluster tell which keys change, each on a connection of its own: a resp.Tracker for each master that has slots.
// What was read of a slot counts as changed when its master's connection ends, and when another master has the slot.
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

// Track returns a tracker of the cluster's masters that has not connected yet; a client has at most one. It is otherwise like resp.NewTracker, and with
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

// Track has the masters tell of keys that begin with one of the prefixes, as Track of a resp.Tracker.
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

// wants reports whether the map has to be known, and kept young.
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

// moved hears that a slot has another master.
func (t *Tracker) moved(slot int) {
	t.told.InvalidatePart(slot, t.client.loop.Now())
	if !t.deferred && !t.closed {
		t.deferred = true
		t.client.loop.Defer(t.syncFn)
	}
}

// asked hears that a command was sent on by ASK. Its reply comes from a node that does not have the slot yet, and may have none at all: nobody may tell of changes.
func (t *Tracker) asked(command []byte) {
	if t == nil {
		return
	}
	if key, ok := cluster.Key(command); ok {
		t.told.Invalidate(key)
	}
}

// sync has a tracker for each master that has slots, and for no other node.
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

// add begins to track a master.
func (t *Tracker) add(number int, addr string) {
	c, o := t.client, t.client.opts
	o.Addr = addr
	o.Seed += uint64(number)
	n := &trackedNode{tracker: t, number: number, addr: addr}
	n.Tracker = resp.NewTracker(c.loop, c.dialer, o, t.maxSilence, n, n.heard)
	n.Ask(isWhole, "CLUSTER", "INFO")
	if t.reads {
		n.TrackReads(c.node(number))
	}
	t.nodes[number] = n
	n.Track(t.prefixes)
}

// isWhole reports whether a node says nothing against its being part of the cluster. One that the others have left alone takes no writes, while a replica of
// it may take them; it tells of none.
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

// heard passes on how things are. While a master refuses, that is how they are.
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
