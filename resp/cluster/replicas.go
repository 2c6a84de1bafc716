package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/resp"
)

// The rules of reads from replicas.
const (
	probeEvery  = time.Second     // from one round of questions to the next
	probeFresh  = 3 * time.Second // how long an answer counts, from its question on
	probeSmooth = 4               // a new round trip counts for one in so many
)

// A Replication is what a server says of its own replication. Immutable.
type Replication struct {
	Master bool  // it is a master
	LinkUp bool  // of a replica: it receives what its master writes
	Offset int64 // how many bytes of writes it has; -1: it does not say
}

var errNoRole = errors.New("INFO replication: the reply names no role")

// ParseReplication reads a reply to INFO replication.
func ParseReplication(reply resp.Reply) (Replication, error) {
	if err := reply.Err(); err != nil {
		return Replication{}, err
	}
	r, role, offset := Replication{Offset: -1}, "", map[string]string{}
	for line := range bytes.Lines(reply.Bytes()) {
		name, value, _ := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte{':'})
		switch string(name) {
		case "role":
			role = string(value)
		case "master_link_status":
			r.LinkUp = string(value) == "up"
		case "master_repl_offset", "slave_repl_offset":
			offset[string(name)] = string(value)
		}
	}
	name := "slave_repl_offset"
	switch role {
	case "master":
		r.Master, r.LinkUp, name = true, false, "master_repl_offset"
	case "slave":
	default:
		return Replication{}, errNoRole
	}
	if text, ok := offset[name]; ok {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return Replication{}, fmt.Errorf("INFO replication: %s is malformed", name)
		}
		r.Offset = n
	}
	return r, nil
}

// health is what a State knows of a node that may be read.
type health struct {
	Replication
	asked     clock.Time    // when the question left that it answered last; 0: it is not to be read
	roundTrip time.Duration // smoothed; 0: not measured
	denial    resp.Denial   // whether the node denies the question
}

// ReadFrom sets which nodes answer reads. It must come before the first map. maxLag bounds how many bytes a replica may be behind; zero means no bound.
func (s *State) ReadFrom(from resp.ReadFrom, maxLag int64) { s.from, s.maxLag = from, maxLag }

// Reader returns the number of the node for a read of a slot, or None if no node is known. That is the slot's master, unless the State reads from replicas
// and one of the master's replicas may be read: it has said within the last 3 s that its link to the master is up, and it is not too far behind. So equal
// reads go to the same node.
func (s *State) Reader(slot int, now clock.Time) int {
	master := s.Owner(slot)
	if master == None || s.from == resp.ReadMaster {
		return master
	}
	list := s.replicasOf[master]
	best, least := master, time.Duration(0)
	if h := &s.health[master]; s.from == resp.ReadNearest && h.fresh(now) {
		least = h.roundTrip
	}
	for i := range list {
		r := list[(slot+i)%len(list)]
		if !s.mayRead(r, master, now) {
			continue
		}
		if s.from == resp.ReadReplica {
			return r
		}
		if took := s.health[r].roundTrip; least == 0 || took < least {
			best, least = r, took
		}
	}
	return best
}

// For returns the number of the node that an encoded command is for first, and whether that is a replica. A command
// without a key, or of a slot without a known node, goes to any node: that node answers, or says who does, or that nobody
// does. None means that no node is known.
func (s *State) For(command []byte, now clock.Time) (node int, replica bool) {
	node = None
	switch slot := Route(command); {
	case slot == None:
	case s.from != resp.ReadMaster && resp.ReadOnly(command):
		node = s.Reader(slot, now)
	default:
		node = s.Owner(slot)
	}
	if node == None {
		node = s.Anyone()
	}
	return node, node != None && s.IsReplica(node)
}

// fresh reports whether the node has answered recently.
func (h *health) fresh(now clock.Time) bool { return h.asked != 0 && now.Sub(h.asked) <= probeFresh }

// mayRead reports whether a replica of a master may be read.
func (s *State) mayRead(replica, master int, now clock.Time) bool {
	h, of := &s.health[replica], &s.health[master]
	if !h.fresh(now) || !h.LinkUp {
		return false
	}
	return s.maxLag == 0 || of.fresh(now) && min(h.Offset, of.Offset) >= 0 && of.Offset-h.Offset <= s.maxLag
}

// IsReplica reports whether a number is that of a replica.
func (s *State) IsReplica(node int) bool { return s.isReplica[node] }

// Probe returns the nodes to which its owner must send INFO replication now, if any. The owner hands each answer to Probed. A replica comes before its master, so it
// seems further behind than it is, never less.
func (s *State) Probe(now clock.Time) (nodes []int) {
	if s.from == resp.ReadMaster || !s.mapped || !s.probeDue.Passed(now) {
		return nil
	}
	s.probeDue = now.Add(probeEvery)
	for master, list := range s.replicasOf {
		if len(list) == 0 || s.slots[master] == 0 {
			continue
		}
		nodes = append(nodes, list...)
		if s.from == resp.ReadNearest || s.maxLag > 0 {
			nodes = append(nodes, master)
		}
	}
	return slices.DeleteFunc(nodes, func(n int) bool { return s.health[n].denial.Pauses(now) })
}

// Unprobed takes why a node has not answered a question. It is not read until it answers the next one. A node that denies the user
// to ask is asked less often. news says that it has done so for the first time since its last answer, or for another reason.
func (s *State) Unprobed(node int, err error, now clock.Time) (news bool) {
	s.Distrust(node)
	return s.health[node].denial.Note(err, now)
}

// Probed takes a node's answer to a question sent at an instant. If the node has another role than the map says, it is not read, and the map becomes due.
func (s *State) Probed(node int, r Replication, asked, now clock.Time) {
	if r.Master == s.isReplica[node] {
		s.Distrust(node)
		s.Suspect(now)
		return
	}
	h := &s.health[node]
	took := max(now.Sub(asked), 1)
	if h.roundTrip > 0 {
		took = h.roundTrip + (took-h.roundTrip)/probeSmooth
	}
	*h = health{Replication: r, asked: asked, roundTrip: took}
}

// Distrust excludes a replica that has failed from reads until it answers the next question.
func (s *State) Distrust(node int) { s.health[node].asked = 0 }

// Missed says what becomes of a read that a node has not answered. If the read did not reach a replica, it goes to the master. hops is that of Judge.
func (s *State) Missed(node, slot int, reached bool, hops int) Verdict {
	if reached || slot == None || !s.isReplica[node] || s.Owner(slot) == None {
		return Verdict{}
	}
	return Verdict{Again: hops < hopsMax, Node: s.Owner(slot)}
}

// judgeReplica is Judge for errors of a replica that say why it does not answer: its master does.
func (s *State) judgeReplica(code string, from, slot, hops int) (v Verdict, ok bool) {
	switch code {
	case "MOVED", "ASK":
		s.Distrust(from) // Its master has other slots than it seemed, or it has another master.
	case "MASTERDOWN", "LOADING", "CLUSTERDOWN":
		s.Distrust(from)
		v = s.Missed(from, slot, false, hops)
		return v, v.Again
	}
	return Verdict{}, false
}

// follow takes over the replicas of a map. numbers are the numbers of its masters.
func (s *State) follow(m *Map, numbers []int) {
	s.replicas = s.replicas[:0]
	for i := range s.replicasOf {
		s.replicasOf[i] = nil
	}
	clear(s.inMap)
	for i, list := range m.replicas {
		s.replicas = append(s.replicas, list...)
		if s.from == resp.ReadMaster || numbers[i] == None {
			continue
		}
		for _, addr := range list {
			if n := s.number(server{addr, true}); n != None {
				s.inMap[n] = true
				s.replicasOf[numbers[i]] = append(s.replicasOf[numbers[i]], n)
			}
		}
	}
}
