package cluster

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/resp"
)

// A node's address may come to belong to another cluster: a replica that was reset and has slots of its own, a pod whose
// address is used again. So a map that shares no master with the last one needs more than one voice: that of a node that the
// user has named, if one answers, or else that of most nodes that answer. A master is the same if its id is. Until a map
// says so, a server at the address of a node is believed only if it has the node's id: each new connection asks for it.

// strangerEvery is the least time between two tellings of servers with another id.
const strangerEvery = 30 * time.Second

var errStranger = errors.New("another server is at the address of a node of the Redis Cluster")

// A party is what is known of who is at an address.
type party struct {
	id      string // of the node, by the last map that had the address; "": it has told none
	told    string // by the server, on the latest connection that may be used; "": it has told none
	strange bool   // the latest connection was refused
	silent  bool   // the server does not tell its id
}

// partyAt returns what is known of an address that has a number, or that the map has.
func (s *State) partyAt(addr string) *party {
	p := s.parties[addr]
	if p == nil {
		p = new(party)
		s.parties[addr] = p
	}
	return p
}

// Identify takes the id that the server at an address has told on a new connection, or why it has told none. refused says
// why the connection must not be used. unknown says for the first time that the server does not tell its id, so that another
// one would not be noticed.
func (s *State) Identify(addr, id string, err error, now clock.Time) (refused error, unknown bool) {
	p := s.partyAt(addr)
	var refusal *resp.ServerError
	switch isRefusal := errors.As(err, &refusal); {
	case isRefusal && strings.Contains(refusal.Message, "cluster support disabled"):
		id = "" // That is the id of no node.
	case isRefusal && refusal.Code() != "ERR" && !refusal.Denied():
		return err, false // It may tell its id soon: it is loading, for instance.
	case err != nil:
		unknown = !p.silent
		p.told, p.strange, p.silent = "", false, true
		return nil, unknown
	}
	if p.strange = p.id != "" && p.id != id; !p.strange {
		p.told, p.silent = id, false
		return nil, false
	}
	refused = fmt.Errorf("%w: its id is %q, and that of the node %q", errStranger, id, p.id)
	if err != nil {
		refused = fmt.Errorf("%w: %w", errStranger, err)
	}
	if s.strangerDue == 0 || s.strangerDue.Passed(now) {
		s.strangerDue = now.Add(strangerEvery)
		s.turned(resp.ClusterTurn{Asked: addr, Err: refused, Refused: true})
	}
	s.Suspect(now)
	return refused, false
}

// Strange reports whether another server was at the address of a node when it was last connected to. It may be asked for
// the map all the same.
func (s *State) Strange(addr string) bool { return s.partyAt(addr).strange }

// Ousted returns why all connections to an address must end, since the map that the last refresh has brought has another id
// for it than the server had told. Nil: they need not.
func (s *State) Ousted(addr string) error { return s.ousted[addr] }

// identities takes over the ids of a map. Nodes that it lacks keep theirs while they have a number.
func (s *State) identities(m *Map) {
	for addr, id := range m.ids {
		p := s.partyAt(addr)
		p.strange = p.strange && p.id == id
		p.id = id
	}
	for addr, p := range s.parties {
		if p.told != "" && (p.id != "" && p.told != p.id || m.lost[p.told]) {
			s.ousted[addr] = fmt.Errorf("%w: a map has another id for it than %q, which it had told", errStranger, p.told)
			p.told = ""
		}
	}
	maps.DeleteFunc(s.parties, func(addr string, _ *party) bool {
		_, known := m.ids[addr]
		_, master := s.numbers[server{addr, false}]
		_, replica := s.numbers[server{addr, true}]
		return !known && !master && !replica
	})
}

var errStrangers = errors.New("the nodes that answer belong to another Redis Cluster, or do not agree to which")

// OnTurn makes the State call turned when all masters have changed, and when it first refuses such a map.
func (s *State) OnTurn(turned func(resp.ClusterTurn)) { s.turned = turned }

// stranger is an answer that shares no master with the last map.
type stranger struct {
	*Map
	addr  string
	named bool // the user has named its address
}

// members are the masters of a map. The zero value has none.
type members struct {
	ids   map[string]struct{}
	addrs map[string]struct{} // of all of them
	bare  map[string]struct{} // of those without an id
}

func (k *members) set(m *Map) {
	*k = members{map[string]struct{}{}, map[string]struct{}{}, map[string]struct{}{}}
	for _, addr := range m.masters {
		k.addrs[addr] = struct{}{}
		if id := m.ids[addr]; id != "" {
			k.ids[id] = struct{}{}
		} else {
			k.bare[addr] = struct{}{}
		}
	}
}

// share reports whether a map has one of them. Where one side has told no id, the address counts.
func (k *members) share(m *Map) bool {
	for _, addr := range m.masters {
		among, key := k.ids, m.ids[addr]
		if key == "" {
			among, key = k.addrs, addr
		}
		if _, ok := among[key]; ok {
			return true
		}
		if _, ok := k.bare[addr]; ok {
			return true
		}
	}
	return false
}

// hear takes a map that the asked node has answered; nil: none. named says that the user has named the node.
func (s *State) hear(m *Map, named bool) {
	switch {
	case m == nil:
		return
	case s.mapped && m.missing < Slots && !s.masters.share(m):
		if !named || !s.unsure || m.missing > 0 {
			s.strangers = append(s.strangers, stranger{m, s.asking, named})
			return
		}
		s.best = m // The user's own cluster is back.
		s.turn(resp.ClusterTurn{Asked: s.asking, Masters: m.masters})
	case s.best == nil || m.missing < s.best.missing:
		s.best = m
	}
	if named && m.missing < Slots {
		s.unsure = false
	}
}

// turn tells of a turn: of the first one that is refused, until a map is taken.
func (s *State) turn(t resp.ClusterTurn) {
	if !t.Refused || !s.refused {
		s.turned(t)
	}
	s.refused = t.Refused
}

// vote takes the map of another cluster if those who count agree. ok says that addr has to be asked before.
func (s *State) vote() (addr string, ok bool) {
	if !s.voting {
		s.voting, s.toAsk = true, s.choose(refreshVoters)
		if addr, ok = s.next(); ok {
			return addr, true
		}
	}
	voters := s.strangers
	if named := slices.DeleteFunc(slices.Clone(voters), func(v stranger) bool { return !v.named }); len(named) > 0 {
		voters = named
	}
	turn := resp.ClusterTurn{Refused: true}
	for i := range voters {
		var cluster members
		cluster.set(voters[i].Map)
		votes, whole := 0, voters[i]
		for _, v := range voters {
			if cluster.share(v.Map) {
				if votes++; v.missing < whole.missing {
					whole = v
				}
			}
		}
		turn.Asked, turn.Masters = whole.addr, whole.masters
		if votes > len(voters)/2 {
			turn.Refused, s.best, s.unsure = false, whole.Map, !whole.named
			break
		}
	}
	s.turn(turn)
	return "", false
}
