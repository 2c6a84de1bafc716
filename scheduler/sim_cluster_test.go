package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/rankd/rankd/internal/sentinel"
	"github.com/rankd/rankd/internal/testing/clustertest"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
	"github.com/rankd/rankd/resp/cluster"
	"github.com/rankd/rankd/resp/clusterclient"
)

// This file has what the simulation knows of endpoints of several servers: a Redis Cluster and
// a master that sentinels name. The cluster's slots move and its masters die. The sentinels'
// master changes.

// simCluster is the Redis Cluster behind the first endpoint of a world. One goroutine.
type simCluster struct {
	clustertest.Cluster
	w     *simWorld
	rng   *rand.Rand // for what concerns clusters, so that worlds without them stay as they are; nil: there is none
	nodes int        // masters, and from then on those that take over

	lacks    float64 // probability that an answer to CLUSTER SLOTS leaves out a span
	stale    float64 // probability that it is the first map
	tryAgain float64 // probability that the owner of a moving span answers TRYAGAIN
	deaths   int     // of masters
	dead     map[int]bool
	former   [clustertest.Spans]int // Owner at the beginning
	changes  int                    // that make the clients' knowledge stale: moves begun and ended, failovers, wrong answers

	stranger int        // the node whose answer to CLUSTER SLOTS is of another cluster from some time on; 0: none
	strange  bool       // that time has come
	whims    *rand.Rand // for what the stranger answers
	usurped  bool       // a server of another cluster takes over the address of simUnnamed when it dies
	foreign  map[int]bool
	follows  bool // the client has told that it follows another cluster

	asks     commandCounts // commands that were redirected
	met      map[string]int
	promoted int // the next node to take over
}

const (
	simMasters   = 3
	simUnnamed   = simMasters - 1 // which no user has named: nobody asks it for the first map, which is believed
	simDeathsMax = 2
)

// simNodeAddr is the address of a node of the cluster.
func simNodeAddr(node int) string { return fmt.Sprintf("node%d:7000", node) }

// drawCluster draws whether the first endpoint is a cluster.
func (w *simWorld) drawCluster() {
	rng := rand.New(rand.NewPCG(w.seed, 0x636c7573746572))
	c := &w.cluster
	c.w = w
	if rng.Float64() >= 0.15 {
		return
	}
	c.rng, c.met, c.dead, c.promoted = rng, map[string]int{}, map[int]bool{}, simMasters
	c.Cluster = clustertest.New(simMasters, simNodeAddr)
	c.nodes = simMasters + simDeathsMax
	c.former = c.Owner
	if rng.Float64() < 0.3 {
		c.lacks = 0.3 * rng.Float64()
	}
	if rng.Float64() < 0.3 {
		c.stale = rng.Float64()
	}
	if rng.Float64() < 0.3 {
		c.tryAgain = 0.3 * rng.Float64()
	}
	c.whims = rand.New(rand.NewPCG(w.seed, 0x737472616e676572))
	if c.whims.Float64() < 0.3 {
		c.stranger = simUnnamed
	}
	if w.cfg.redisTrouble() && rng.Float64() < 0.5 {
		c.deaths = 1 + rng.IntN(simDeathsMax)
	}
	if c.usurped = c.whims.Float64() < 0.5; c.usurped {
		c.foreign, c.lacks = map[int]bool{}, 0 // Of a node that no map has named yet, a client does not know the id.
	}
}

// exists reports whether the world has a cluster.
func (c *simCluster) exists() bool { return c.rng != nil }

// between draws a duration.
func (c *simCluster) between(from, to time.Duration) time.Duration {
	return from + time.Duration(c.rng.Int64N(int64(to-from)+1))
}

// open starts the nodes and returns the client.
func (c *simCluster) open(o resp.Options) *clusterclient.Client {
	for node := range c.nodes {
		c.w.net.Listen(simNodeAddr(node), func(p *simPeer) { c.w.accept(p).node = node })
	}
	c.w.net.Listen(simElsewhere, func(p *simPeer) {
		p.OnData = func(data []byte) int {
			p.Close(nil)
			return len(data)
		}
		c.met["elsewhere"]++
		c.w.check(c.w.cfg.redisTrouble(), "a client has gone to another cluster although a node that was named answers")
	})
	o.Addr, o.Database = simNodeAddr(0)+","+simNodeAddr(1), 0
	o.OnTurn = func(turn resp.ClusterTurn) {
		if turn.Err != nil {
			c.met["strangers"]++
		}
		c.follows = c.follows || !turn.Refused
	}
	return clusterclient.New(c.w.sim.Loop, c.w.net, o)
}

// populate schedules the moves of slots and the deaths of masters.
func (c *simCluster) populate() {
	if !c.exists() {
		return
	}
	spread := c.w.cfg.spread
	if c.stranger > 0 {
		c.w.sim.After(time.Duration(c.whims.Int64N(int64(spread)+1)), func() { c.strange = true })
	}
	for range c.rng.IntN(6) {
		span, to := c.rng.IntN(clustertest.Spans), c.rng.IntN(simMasters)
		from := c.between(0, spread)
		c.w.sim.After(from, func() { c.move(span, to, c.between(0, 30*time.Millisecond)) })
	}
	for range c.deaths {
		master := c.rng.IntN(simMasters)
		c.w.sim.After(c.between(0, spread), func() { c.die(master) })
	}
}

// move has a span of slots go to another node, which takes a while.
func (c *simCluster) move(span, to int, takes time.Duration) {
	from := c.Owner[span]
	if c.Target[span] != clustertest.Nobody || from == to || c.dead[to] || c.dead[from] {
		return
	}
	c.w.logf("span %d moves from %d to %d", span, from, to)
	c.changes++
	c.Target[span] = to
	c.w.sim.After(takes, func() {
		if c.Target[span] == to && c.Owner[span] == from {
			c.w.logf("span %d is at %d", span, to)
			c.changes++
			c.Owner[span], c.Target[span] = to, clustertest.Nobody
		}
	})
}

// die kills a master. Another node takes over its slots. The dead node comes back without
// slots.
func (c *simCluster) die(master int) {
	if c.dead[master] {
		return
	}
	next := c.promoted
	c.promoted++
	c.w.logf("node %d dies", master)
	c.dead[master] = true
	c.w.net.SetDown(simNodeAddr(master), true)
	for span := range c.Owner {
		if c.Target[span] == master || c.Owner[span] == master {
			c.Target[span] = clustertest.Nobody
		}
	}
	takes := c.between(time.Millisecond, 40*time.Millisecond)
	if c.usurped && master == simUnnamed {
		c.w.sim.After(time.Duration(c.whims.Int64N(int64(takes))), func() {
			c.w.logf("another server is at the address of node %d", master)
			c.foreign[master] = true
			c.w.net.SetDown(simNodeAddr(master), false)
		})
	}
	c.w.sim.After(takes, func() {
		c.w.logf("node %d takes over from %d", next, master)
		c.changes++
		for span := range c.Owner {
			if c.Owner[span] == master {
				c.Owner[span] = next
			}
		}
		c.met["failovers"]++
		c.w.sim.After(c.between(0, 40*time.Millisecond), func() { c.w.net.SetDown(simNodeAddr(master), false) })
	})
}

// answer is what a node answers because it belongs to a cluster. It is empty for a command that
// the node executes.
func (c *simCluster) answer(s *simServer, args [][]byte, command []byte) string {
	if c.foreign[s.node] {
		return c.answerForeign(s.node, args)
	}
	asked := s.asking
	s.asking = false
	switch string(args[0]) {
	case "ASKING":
		s.asking = true
		return "+OK\r\n"
	case "CLUSTER":
		if string(args[1]) == "MYID" {
			return c.MyID(s.node)
		}
		return c.slots(s.node)
	}
	if own(args) {
		return ""
	}
	slot := cluster.Slot(args[1])
	span := clustertest.SpanOf(slot)
	if owner := c.Owner[span]; c.dead[owner] && s.node != owner {
		c.met["slots without a master"]++
		return fmt.Sprintf("-CLUSTERDOWN injected by %s\r\n", args[1])
	}
	if c.Target[span] != clustertest.Nobody && c.Owner[span] == s.node && c.rng.Float64() < c.tryAgain {
		c.redirected(args, command, "TRYAGAIN")
		return "-TRYAGAIN Multiple keys request during rehashing of slot\r\n"
	}
	text, ok := c.Redirect(s.node, slot, asked)
	if !ok {
		return ""
	}
	c.redirected(args, command, text[1:4])
	return text
}

// answerForeign is what a server of another cluster answers at the address of a node. It says that it has all slots, and
// gets no command of a task unless the client has told that it follows that cluster.
func (c *simCluster) answerForeign(node int, args [][]byte) string {
	other := clustertest.New(1, func(int) string { return simNodeAddr(node) })
	other.ID = func(int) string { return "foreign" }
	switch {
	case string(args[0]) == "CLUSTER" && string(args[1]) == "MYID":
		return other.MyID(0)
	case string(args[0]) == "CLUSTER":
		return other.Slots(nil)
	}
	c.w.check(own(args) || c.follows, "%s %s was sent to a server of another cluster", args[0], args[1])
	return ""
}

// redirected checks that a command is redirected only for a reason: each time, the client knew
// too little.
func (c *simCluster) redirected(args [][]byte, command []byte, how string) {
	c.met[how]++
	if how == "TRYAGAIN" {
		return
	}
	times, asked := c.asks.of(command), c.w.asked.of(command)
	*times++
	c.w.check(int(*times) <= int(*asked)*(2+2*c.changes), "%s %s was redirected %d times and asked for %d times, and the cluster has changed %d times",
		args[0], args[1], *times, *asked, c.changes)
}

// simElsewhere is the address of the nodes of another cluster.
const simElsewhere = "elsewhere:7000"

// slots is the answer of a node to CLUSTER SLOTS, which may be wrong.
func (c *simCluster) slots(node int) string {
	c.met["maps"]++
	told := c.Cluster
	if c.strange && node == c.stranger {
		c.met["maps of another cluster"]++
		told.Addr = func(int) string { return simElsewhere }
		told.ID = func(int) string { return "foreign" }
		if c.whims.Float64() < 0.5 {
			return told.Slots(nil)
		}
		return told.Slots(func(int) bool { return c.whims.Float64() < 0.3 })
	}
	if c.rng.Float64() < c.stale {
		c.met["stale maps"]++
		c.changes++
		told.Owner = c.former
	}
	if c.lacks == 0 {
		return told.Slots(nil)
	}
	c.met["half maps"]++
	c.changes++
	return told.Slots(func(int) bool { return c.rng.Float64() < c.lacks })
}

// simMaster is the master behind the second endpoint of a world, which sentinels name. One goroutine.
type simMaster struct {
	w         *simWorld
	rng       *rand.Rand // nil: no sentinel names it
	dialer    *sentinel.Dialer
	now       int        // which of the two servers is the master
	since     clock.Time // when the dialer was told of it; zero: it was not
	epoch     int64      // the number of switches
	state     *blocking.SentinelState
	sentinels map[string]*simSentinel
	whims     *rand.Rand // for what concerns sentinels alone
	met       map[string]int
}

// A simSentinel is a sentinel that may have other news than the others, or belong to somebody else.
type simSentinel struct {
	down  bool
	liar  bool // its address belongs to somebody else by now
	old   bool // it has come back from an hour ago, before all switches
	tells []string
}

// Sentinels of the simulation: the user has named two. Those have told of three others, of which one is a liar by now, and
// later of two more that replace them.
const (
	simNamedSentinels   = 2
	simHonestSentinels  = 2 // of which the named ones tell, at first
	simLaterSentinels   = 2
	simLiars            = 2 // the first of which honest sentinels tell, too
	simSomebodysMaster  = "somebodys:6379"
	simSentinelsAnswers = 2 * time.Millisecond // at most, each
)

// simMasterAddr is the address of a server that is, or was, the master.
func simMasterAddr(server int) string { return fmt.Sprintf("server%d:6379", server) }

// drawMaster draws whether sentinels name the server of the second endpoint.
func (w *simWorld) drawMaster() {
	rng := rand.New(rand.NewPCG(w.seed, 0x73656e74696e656c))
	if w.master.w = w; rng.Float64() < 0.15 {
		w.master.rng, w.master.met = rng, map[string]int{}
	}
}

// exists reports whether sentinels name the master.
func (m *simMaster) exists() bool { return m.rng != nil }

// open starts both servers and returns the client.
func (m *simMaster) open(o resp.Options) *resp.Client {
	w := m.w
	for server := range 2 {
		w.net.Listen(simMasterAddr(server), func(p *simPeer) {
			s := w.accept(p)
			s.server, s.role = server, func() string {
				if server == m.now {
					return "master"
				}
				m.met["roles of an old master"]++
				s.refused = true
				return "slave"
			}
		})
	}
	w.net.Listen(simSomebodysMaster, func(p *simPeer) {
		s := w.accept(p)
		s.role = func() string { return "master" }
		w.violate("a client has gone to the master of somebody else, of whom a liar has told")
	})
	m.openSentinels()
	o.Master = "m"
	m.dialer = sentinel.NewDialerBy(w.sim.Loop, w.net, func(_ time.Duration, named func(error)) { m.ask(named) })
	return resp.NewClient(w.sim.Loop, m.dialer, o)
}

// openSentinels makes the sentinels.
func (m *simMaster) openSentinels() {
	m.whims, m.sentinels = rand.New(rand.NewPCG(m.w.seed, 0x6c69617273)), map[string]*simSentinel{}
	add := func(kind string, n int) (addrs []string) {
		for i := range n {
			addr := fmt.Sprintf("%s%d:26379", kind, i)
			m.sentinels[addr] = &simSentinel{liar: kind == "liar"}
			addrs = append(addrs, addr)
		}
		return addrs
	}
	named, honest, later, liars := add("named", simNamedSentinels), add("honest", simHonestSentinels), add("later", simLaterSentinels), add("liar", simLiars)
	for addr, s := range m.sentinels {
		if s.liar {
			s.tells = slices.Concat([]string{addr}, liars)
		} else {
			s.tells = slices.Concat([]string{addr}, named, honest, liars[:1])
		}
	}
	for _, addr := range later {
		m.sentinels[addr].down = true
	}
	m.state = blocking.NewSentinelState(named)
	if !m.trusts(0.7) {
		return
	}
	// All that were named are replaced, and one of the others comes back from an hour ago.
	m.ask(func(error) {})
	soon := simSentinelsAnswers + m.w.cfg.spread/4
	m.w.sim.After(simSentinelsAnswers+m.within(soon), func() {
		m.w.logf("two sentinels join")
		for addr, s := range m.sentinels {
			if !s.liar {
				s.tells = slices.Concat([]string{addr}, named, honest, later, liars[:1])
			}
		}
		for _, addr := range later {
			m.sentinels[addr].down = false
		}
		m.ask(func(error) {})
		m.w.sim.After(simSentinelsAnswers+m.within(soon), func() {
			m.w.logf("the sentinels that were named are gone")
			m.met["named ones gone"]++
			for _, addr := range named {
				m.sentinels[addr].down = true
			}
			m.sentinels[honest[0]].old = true
			m.ask(func(error) {}) // It listens to another one now, and asks then.
		})
	})
}

// trusts draws whether the world has something.
func (m *simMaster) trusts(probability float64) bool { return m.whims.Float64() < probability }

// within draws a duration.
func (m *simMaster) within(most time.Duration) time.Duration {
	return time.Duration(m.whims.Int64N(int64(most)))
}

// ask has the client ask sentinels for the master, as blocking.Sentinels does.
func (m *simMaster) ask(named func(error)) { m.askNext(m.state.Named(), named) }

func (m *simMaster) askNext(order []string, named func(error)) {
	m.w.sim.After(m.within(simSentinelsAnswers), func() {
		if m.w.sim.Ended() {
			return
		}
		if len(order) == 0 {
			named(m.askMore())
			return
		}
		n := m.says(order[0])
		if n == nil {
			m.askNext(order[1:], named)
			return
		}
		m.state.Believe(n)
		m.tell(m.state.Master())
		named(nil)
	})
}

// askMore asks those of which others have told. If most of those that answer know the latest master, so does the client.
func (m *simMaster) askMore() error {
	var said []*blocking.Naming
	latest := 0
	for _, addr := range m.state.More() {
		if n := m.says(addr); n != nil {
			said = append(said, n)
			if n.Epoch == m.epoch {
				latest++
			}
		}
	}
	m.met["votes"]++
	err := m.state.Vote(said)
	m.w.check(latest <= len(said)/2 || err == nil && m.state.Master() == simMasterAddr(m.now), "%d of %d sentinels know the latest master, and %s is believed: %v",
		latest, len(said), m.state.Master(), err)
	for _, addr := range m.state.More() {
		m.w.check(!strings.HasPrefix(addr, "liar1"), "%s is known, of which only liars tell", addr)
	}
	if err == nil {
		m.tell(m.state.Master())
	}
	return err
}

// says is what a sentinel answers; nil: nothing.
func (m *simMaster) says(addr string) *blocking.Naming {
	s := m.sentinels[addr]
	switch {
	case s.down:
		return nil
	case s.liar && m.trusts(0.5): // It is of the same mind, and tells of others of its kind.
		m.met["liars that agree"]++
		return &blocking.Naming{Master: simMasterAddr(m.now), Epoch: m.epoch + 1000, Tells: s.tells}
	case s.liar:
		m.met["liars"]++
		return &blocking.Naming{Master: simSomebodysMaster, Epoch: m.epoch + 1000, Tells: s.tells}
	case s.old:
		m.met["old hands"]++
		return &blocking.Naming{Master: simMasterAddr(0), Epoch: 0, Tells: s.tells[:1+simNamedSentinels]}
	case m.w.cfg.redisTrouble() && m.epoch > 0 && m.trusts(0.4): // It does not know the latest master yet.
		m.met["old names"]++
		return &blocking.Naming{Master: simMasterAddr(1 - m.now), Epoch: m.epoch - 1, Tells: s.tells}
	}
	return &blocking.Naming{Master: simMasterAddr(m.now), Epoch: m.epoch, Tells: s.tells}
}

// populate schedules the changes of the master.
func (m *simMaster) populate() {
	if !m.exists() || !m.w.cfg.redisTrouble() { // A change ends connections, which fails calls.
		return
	}
	for range m.rng.IntN(4) {
		m.w.sim.After(time.Duration(m.rng.Int64N(int64(m.w.cfg.spread)+1)), m.change)
	}
}

// change makes the other server the master. Sentinels say so soon, or never.
func (m *simMaster) change() {
	if m.w.sim.Ended() {
		return
	}
	m.now = 1 - m.now
	m.since = 0
	m.epoch++
	m.met["changes"]++
	m.w.logf("server %d is the master", m.now)
	if m.rng.Float64() < 0.7 {
		at := m.now
		m.w.sim.After(time.Duration(m.rng.Int64N(int64(5*time.Millisecond))), func() {
			if at == m.now && !m.w.sim.Ended() {
				m.ask(func(error) {})
			}
		})
	}
}

// tell tells the client which server is the master.
func (m *simMaster) tell(addr string) {
	if m.since = 0; addr == simMasterAddr(m.now) {
		m.since = m.w.sim.Now()
	}
	m.dialer.Switched(addr)
}

// executes checks that a command may have been sent to a server: the client had not heard of
// another master.
func (m *simMaster) executes(s *simServer, args [][]byte) {
	if s.role == nil || own(args) || s.server == m.now {
		return
	}
	m.w.check(!s.refused, "%s %s was sent to a server that has said that it is no master", args[0], args[1])
	known := m.since != 0 && !m.w.stalled && m.w.cfg.lag == 0 && m.w.sim.Now().Sub(m.since) > 2*m.w.cfg.netMax+10*time.Millisecond
	m.w.check(!known, "%s %s was sent to the old master %v after the switch was heard", args[0], args[1], m.w.sim.Now().Sub(m.since))
}

// own reports whether a command is the client's own.
func own(args [][]byte) bool {
	switch string(args[0]) {
	case "AUTH", "SELECT", "CLIENT", "ROLE", "ASKING", "CLUSTER", "READONLY":
		return true
	}
	return false
}

// openRedis returns the client of an endpoint.
func (w *simWorld) openRedis(ep *registry.Endpoint, o resp.Options) Caller {
	switch {
	case ep.Index == 0 && w.cluster.exists():
		return w.cluster.open(o)
	case ep.Index == 1 && w.master.exists():
		return w.master.open(o)
	}
	w.net.Listen(o.Addr, func(p *simPeer) { w.accept(p) })
	return resp.NewClient(w.sim.Loop, w.net, o)
}
