package cluster

import (
	"errors"
	"slices"

	"github.com/rankd/rankd/resp"
)

// A node's address may come to belong to another cluster: a replica that was reset and has slots of its own, a pod whose
// address is used again. So a map that shares no master with the last one needs more than one voice: that of a node that the
// user has named, if one answers, or else that of most nodes that answer. A master is the same if its id is.

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
	for i, addr := range m.masters {
		k.addrs[addr] = struct{}{}
		if id := m.ids[i]; id != "" {
			k.ids[id] = struct{}{}
		} else {
			k.bare[addr] = struct{}{}
		}
	}
}

// share reports whether a map has one of them. Where one side has told no id, the address counts.
func (k *members) share(m *Map) bool {
	for i, addr := range m.masters {
		among, key := k.ids, m.ids[i]
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
