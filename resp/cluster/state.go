package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/resp"
)

// The rules of refreshes and of redirected commands.
const (
	refreshEvery   = 60 * time.Second       // at most; jitter cuts it by up to a quarter
	refreshApart   = 100 * time.Millisecond // from begin to begin
	refreshPartial = time.Second            // after a map that lacks slots
	refreshBackoff = 5 * time.Second        // at most, after refreshes to which nobody answered
	refreshAsks    = 3                      // nodes asked by one refresh
	refreshVoters  = 32                     // nodes asked by one that finds another cluster

	timeoutBurst  = 3 // timeouts within timeoutWindow are a burst
	timeoutWindow = time.Second

	hopsMax      = 12 // sendings of one command beyond the first
	hopPause     = 2 * time.Millisecond
	hopDoublings = 10
)

// None is the number of no node.
const None = -1

// A State is what a client knows of a cluster: who has each slot, which nodes there are, and when to ask again. Nodes have small
// numbers, so that a client can keep its data of each node in a slice. One goroutine at a time.
type State struct {
	startup  []string
	rng      *rand.Rand
	nodes    []string // addresses by number; "": the number is free
	numbers  map[server]int
	replicas []string
	owner    [Slots]int16 // the number of its node plus 1; 0: nobody is known
	slots    []int        // by the number of a node: how many it owns
	moved    func(slot int)
	every    time.Duration // between refreshes
	mapped   bool

	due      clock.Time // when to ask next
	began    clock.Time // the last refresh
	failures int        // refreshes in a row to which nobody answered
	err      error      // the last of these errors; nil after a map

	asking string   // the address that is asked; "": no refresh is under way
	toAsk  []string // by the same refresh, if asking gives no complete map
	asked  []string // by the same refresh
	best   *Map     // of those that it has
	hinted bool     // something has changed since it began

	parties     map[string]*party // by address
	ousted      map[string]error  // by address: see Ousted
	strangerDue clock.Time        // when a server with another id may be told of again

	masters   members                // of the last map
	strangers []stranger             // the maps of the same refresh that share no master with it
	voting    bool                   // the same refresh asks all nodes
	turned    func(resp.ClusterTurn) // see OnTurn
	refused   bool                   // a turn was refused since the last map was taken
	unsure    bool                   // the last map came from another cluster than that before, without the word of a node that was named

	timeouts   int
	timeoutsBy clock.Time // when the window ends in which they are counted

	from       resp.ReadFrom
	maxLag     int64      // bytes; 0: any
	probeDue   clock.Time // when nodes are asked next
	isReplica  []bool     // by number
	inMap      []bool     // by number, of replicas
	replicasOf [][]int    // by the number of a master
	health     []health   // by number
}

// A server is a node in a role. A node that has changed its role has two numbers for a while, because connections to replicas are of another kind.
type server struct {
	addr    string
	replica bool
}

// NewState returns the state of a client that knows only startup, the addresses ("host:port") of some nodes. seed seeds the
// choice of the nodes to ask, and jitter.
func NewState(startup []string, seed uint64) *State {
	return &State{
		startup: startup, rng: rand.New(rand.NewPCG(seed, 1)), numbers: make(map[server]int), parties: make(map[string]*party), ousted: make(map[string]error), due: clock.First, probeDue: clock.First, every: refreshEvery, moved: func(int) {}, turned: func(resp.ClusterTurn) {},
	}
}

// Watch makes the State call moved after each change of a slot's node, and refresh the map at least that often.
func (s *State) Watch(moved func(slot int), every time.Duration) {
	s.moved, s.every = moved, min(every, refreshEvery)
}

// Ready reports whether a map has come.
func (s *State) Ready() bool { return s.mapped }

// Err returns why the latest refresh brought no map, or nil.
func (s *State) Err() error { return s.err }

// Owner returns the number of the node that has a slot, or None if it is not known.
func (s *State) Owner(slot int) int { return int(s.owner[slot]) - 1 }

// Addr returns the address of a node.
func (s *State) Addr(node int) string { return s.nodes[node] }

// Node returns the number of the node at an address, as a master. It is None if there are too many.
func (s *State) Node(addr string) int { return s.number(server{addr, false}) }

// number returns the number of a node in a role. It is None if there are too many.
func (s *State) number(of server) int {
	if n, ok := s.numbers[of]; ok {
		return n
	}
	n := slices.Index(s.nodes, "")
	if n < 0 {
		if n = len(s.nodes); n == serversMax {
			return None
		}
		s.nodes = append(s.nodes, "")
		s.slots = append(s.slots, 0)
		s.isReplica, s.inMap = append(s.isReplica, false), append(s.inMap, false)
		s.replicasOf, s.health = append(s.replicasOf, nil), append(s.health, health{})
	}
	s.nodes[n], s.isReplica[n], s.health[n] = of.addr, of.replica, health{}
	s.numbers[of] = n
	return n
}

// Nodes returns a bound that exceeds all numbers of nodes.
func (s *State) Nodes() int { return len(s.nodes) }

// Owns returns how many slots a node is known to have.
func (s *State) Owns(node int) int { return s.slots[node] }

// move notes that a slot is at a node.
func (s *State) move(slot, node int) {
	from := s.Owner(slot)
	if from == node {
		return
	}
	if from != None {
		s.slots[from]--
	}
	s.slots[node]++
	s.owner[slot] = int16(node + 1)
	s.moved(slot)
}

// Forget frees a node's number, unless the node has slots or is a replica to be read, and reports whether it did. Its owner forgets what it has for it.
func (s *State) Forget(node int) bool {
	addr := s.nodes[node]
	if addr == "" || addr == s.asking || s.slots[node] > 0 || s.inMap[node] {
		return false
	}
	delete(s.numbers, server{addr, s.isReplica[node]})
	s.nodes[node], s.replicasOf[node] = "", nil
	return true
}

// Anyone returns the number of some node that is not a replica, or None if there is none.
func (s *State) Anyone() int {
	for n, addr := range s.nodes {
		if addr != "" && !s.isReplica[n] {
			return n
		}
	}
	return None
}

// Asked returns the address of the node that is asked for the map; empty: none is.
func (s *State) Asked() string { return s.asking }

// Suspects reports whether something says that the map has changed since it was asked for.
func (s *State) Suspects() bool { return s.hinted }

// Due returns when Ask will name a node, unless something changes before. It is zero while a refresh is under way.
func (s *State) Due() clock.Time {
	if s.asking != "" {
		return 0
	}
	return s.due
}

// Ask begins a refresh if one is due. ok says that its owner has to send CLUSTER SLOTS to addr, and to hand the reply to Answered.
func (s *State) Ask(now clock.Time) (addr string, ok bool) {
	if !s.Due().Passed(now) {
		return "", false
	}
	s.began, s.hinted, s.best = now, false, nil
	s.asked, s.strangers, s.voting = s.asked[:0], nil, false
	clear(s.ousted)
	s.toAsk = s.choose(refreshAsks)
	return s.next()
}

// choose returns whom a refresh asks: nodes that were known, at random, and at last one that the user has named. Names of
// users are resolved at each connection, so they find a cluster whose nodes have all moved.
func (s *State) choose(most int) []string {
	known := slices.DeleteFunc(slices.Concat(s.nodes, s.replicas), func(addr string) bool { return addr == "" })
	slices.Sort(known)
	known = slices.Compact(known)
	shuffle := func(list []string) {
		s.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	shuffle(known)
	startup := slices.Clone(s.startup)
	shuffle(startup)
	var chosen []string
	first := known[:min(len(known), most-1)]
	if s.unsure {
		first = nil
	}
	for _, addr := range slices.Concat(first, startup, known) {
		if len(chosen) < most && !slices.Contains(chosen, addr) && !slices.Contains(s.asked, addr) {
			chosen = append(chosen, addr)
		}
	}
	return chosen
}

// next takes the next node to ask.
func (s *State) next() (addr string, ok bool) {
	if s.asking = ""; len(s.toAsk) > 0 {
		s.asking, s.toAsk = s.toAsk[0], s.toAsk[1:]
		s.asked = append(s.asked, s.asking)
	}
	return s.asking, s.asking != ""
}

// Answered takes what the asked node answered: a map, or why there is none. ok says that its owner has to ask addr next;
// otherwise the refresh has ended.
func (s *State) Answered(m *Map, err error, now clock.Time) (addr string, ok bool) {
	s.hear(m, slices.Contains(s.startup, s.asking))
	if s.best == nil || s.best.missing > 0 {
		if addr, ok = s.next(); ok {
			return addr, true
		}
	}
	if len(s.strangers) > 0 && (s.best == nil || s.best.missing == Slots) {
		if addr, ok = s.vote(); ok {
			return addr, true
		}
	}
	s.asking, s.toAsk = "", nil
	wait := s.every
	switch best := s.best; {
	case best == nil || best.missing == Slots:
		wait = min(refreshApart<<min(s.failures, 16), refreshBackoff)
		s.failures++
		if s.err = err; best != nil {
			s.err = errNoSlots
		}
		if len(s.strangers) > 0 {
			s.err = errStrangers
		}
	default:
		s.failures, s.err = 0, nil
		s.install(best)
		if best.missing > 0 {
			wait = refreshPartial
		}
	}
	s.best, s.strangers = nil, nil
	s.due = max(now.Add(wait-time.Duration(s.rng.Int64N(int64(wait/4)))), s.began.Add(refreshApart))
	if s.hinted {
		s.Suspect(now)
	}
	return "", false
}

// install takes a map over. A slot that the map lacks stays where it was: that node answers better than nobody.
func (s *State) install(m *Map) {
	numbers := make([]int, len(m.masters))
	for i, addr := range m.masters {
		numbers[i] = s.Node(addr)
	}
	for slot, at := range m.owner {
		if at > 0 && numbers[at-1] != None {
			s.move(slot, numbers[at-1])
		}
	}
	s.follow(m, numbers)
	s.identities(m)
	s.masters.set(m)
	s.mapped, s.refused = true, false
}

// Suspect has the map asked for soon, because something says that it has changed: a connect that failed, for instance.
func (s *State) Suspect(now clock.Time) {
	s.hinted = true
	s.due = s.due.Earlier(max(now, s.began.Add(refreshApart)))
}

// TimedOut notes that a call got no answer in time. A burst of them says that a node may be gone.
func (s *State) TimedOut(now clock.Time) {
	if s.timeoutsBy.Passed(now) || s.timeoutsBy == 0 {
		s.timeouts, s.timeoutsBy = 0, now.Add(timeoutWindow)
	}
	if s.timeouts++; s.timeouts >= timeoutBurst {
		s.Suspect(now)
	}
}

// A Verdict says what becomes of a command to which a node has answered with an error. Immutable.
type Verdict struct {
	// Again says that the command is sent again: to Node, after Pause. Otherwise its owner gets the error.
	Again bool
	Node  int
	Pause time.Duration
	// Asking says that ASKING goes before the command.
	Asking bool
}

// Judge takes an error reply that a node gave to a command, without the leading '-'. slot is the command's, hops how often the
// command was sent again, and read says that it changes nothing. The first redirection is followed at once, to the node that was named.
// Later ones wait for 2 ms, doubling, since slots may be moving back and forth. A bound ends them, and the deadline of the call, which its owner
// keeps. A read that a replica refuses to answer goes to the master at once.
func (s *State) Judge(message []byte, from, slot, hops int, read bool, now clock.Time) Verdict {
	code, rest, _ := bytes.Cut(message, []byte{' '})
	pause := hopPause << min(hops, hopDoublings)
	if s.isReplica[from] {
		if v, ok := s.judgeReplica(string(code), from, slot, hops); ok {
			return v
		}
	}
	switch string(code) {
	case "MOVED", "ASK":
		moved := code[0] == 'M'
		if moved {
			s.Suspect(now)
		}
		to, node := s.redirection(rest, from)
		if node == None {
			return Verdict{}
		}
		if moved {
			s.move(to, node)
		}
		if hops == 0 && node != from {
			pause = 0
		} else if hops > 0 {
			pause /= 2
		}
		return Verdict{Again: hops < hopsMax, Node: node, Pause: pause, Asking: !moved}
	case "TRYAGAIN":
	case "READONLY":
		s.Suspect(now)
		if !read {
			return Verdict{}
		}
	case "CLUSTERDOWN":
		s.Suspect(now)
		return Verdict{}
	default:
		return Verdict{}
	}
	node := from
	if slot != None && s.Owner(slot) != None {
		node = s.Owner(slot)
	}
	return Verdict{Again: hops < hopsMax, Node: node, Pause: pause}
}

// Refusal returns the error of a reply that concerns the node and not the command, with the node's address; nil: the reply is no such error.
func (s *State) Refusal(node int, reply resp.Reply) error {
	var refusal *resp.ServerError
	if !errors.As(reply.Err(), &refusal) || refusal.Meaning() == "" {
		return nil
	}
	return fmt.Errorf("redis %s: %w", s.nodes[node], refusal)
}

// redirection reads "slot host:port", the rest of a MOVED or ASK that a node sent. The node is None if the text is malformed.
func (s *State) redirection(text []byte, from int) (slot, node int) {
	number, addr, _ := bytes.Cut(text, []byte{' '})
	colon := bytes.LastIndexByte(addr, ':')
	slot, err := strconv.Atoi(string(number))
	if err != nil || slot < 0 || slot >= Slots || colon < 0 {
		return 0, None
	}
	port, err := strconv.ParseUint(string(addr[colon+1:]), 10, 16)
	if err != nil {
		return 0, None
	}
	host, _, _ := net.SplitHostPort(s.nodes[from]) // It was dialed.
	to, err := Address(string(addr[:colon]), int64(port), host)
	if err != nil {
		return 0, None
	}
	return slot, s.Node(to)
}
