package cluster

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/rankd/rankd/resp"
)

// The bounds of a map: a cluster has at most 1,000 masters by the recommendation of Redis.
const (
	rangesMax   = Slots
	replicasMax = 1 << 10 // of one range
	serversMax  = 1 << 12 // addresses in a map, and addresses that a State knows
	hostMax     = 253     // bytes
	idMax       = 64      // bytes; Redis's ids have 40
)

// A Map says which server has each slot, as one node of the cluster sees it. Immutable once built; any goroutine.
type Map struct {
	masters  []string          // addresses
	replicas [][]string        // addresses, by the position of their master
	ids      map[string]string // by address; "": it has told none
	lost     map[string]bool   // ids of servers that have no address any more
	owner    [Slots]uint16     // the position in masters plus 1; 0: nobody
	missing  int
}

// Missing returns the number of slots that nobody has.
func (m *Map) Missing() int { return m.missing }

// Master returns the address of the server that has a slot, "host:port". It is empty if nobody has it.
func (m *Map) Master(slot int) string {
	if at := m.owner[slot]; at > 0 {
		return m.masters[at-1]
	}
	return ""
}

// ParseSlots reads a reply to CLUSTER SLOTS of the server at the address asked ("host:port"). A host that is null, empty or ?
// is the asked one, because a node says so that does not know its own address. A server at port 0 has lost its address
// to another one: a master's slots have nobody then. Any other deviation from the form is an error:
//
//	[ [first, last, [host, port, id, …], [replica's host, port, …]…]… ]
//
// The id of a node may lack.
func ParseSlots(reply resp.Reply, asked string) (*Map, error) {
	if err := reply.Err(); err != nil {
		return nil, err
	}
	if reply.Kind() != resp.Array || reply.Len() > rangesMax {
		return nil, fmt.Errorf("CLUSTER SLOTS: the reply is %s of %d, want an array of at most %d", reply.Kind(), reply.Len(), rangesMax)
	}
	host, _, err := net.SplitHostPort(asked)
	if err != nil {
		return nil, fmt.Errorf("CLUSTER SLOTS: asked at %q: %w", asked, err)
	}
	p := slotsParser{m: &Map{missing: Slots, ids: make(map[string]string), lost: make(map[string]bool)}, host: host, at: make(map[string]uint16), replicas: make(map[follower]struct{})}
	i := 0
	for entry := range reply.All() {
		if err := p.entry(entry); err != nil {
			return nil, fmt.Errorf("CLUSTER SLOTS: entry %d: %w", i, err)
		}
		i++
	}
	return p.m, nil
}

// slotsParser fills a Map.
type slotsParser struct {
	m        *Map
	host     string            // of the asked server
	at       map[string]uint16 // address → position in m.masters plus 1
	replicas map[follower]struct{}
}

// A follower is a replica of the master at a position.
type follower struct {
	master uint16 // plus 1
	addr   string
}

// entry reads one range of slots.
func (p *slotsParser) entry(entry resp.Reply) error {
	if entry.Kind() != resp.Array || entry.Len() < 3 || entry.Len() > 3+replicasMax {
		return fmt.Errorf("is %s of %d", entry.Kind(), entry.Len())
	}
	var bounds [2]int64
	var owner uint16
	i := 0
	for part := range entry.All() {
		switch {
		case i < 2:
			if part.Kind() != resp.Integer || part.Int() < 0 || part.Int() >= Slots {
				return fmt.Errorf("has no slot from 0 to %d at %d", Slots-1, i)
			}
			bounds[i] = part.Int()
		default:
			addr, err := p.address(part)
			if err != nil {
				return fmt.Errorf("server %d: %w", i-2, err)
			}
			if addr == "" {
				p.m.lost[idOf(part)] = true
				break
			}
			if _, known := p.m.ids[addr]; !known {
				p.m.ids[addr] = idOf(part)
			}
			switch {
			case i == 2:
				owner, err = p.master(addr)
			case owner > 0:
				err = p.replica(follower{owner, addr})
			}
			if err != nil {
				return err
			}
		}
		i++
	}
	if bounds[0] > bounds[1] {
		return fmt.Errorf("goes from %d down to %d", bounds[0], bounds[1])
	}
	if owner == 0 {
		return nil
	}
	for slot := bounds[0]; slot <= bounds[1]; slot++ {
		if p.m.owner[slot] != 0 {
			return fmt.Errorf("has slot %d, as an earlier one does", slot)
		}
		p.m.owner[slot] = owner
		p.m.missing--
	}
	return nil
}

// master returns the number of a master.
func (p *slotsParser) master(addr string) (uint16, error) {
	at, ok := p.at[addr]
	if !ok {
		if len(p.m.masters) >= serversMax {
			return 0, fmt.Errorf("more than %d masters", serversMax)
		}
		p.m.masters, p.m.replicas = append(p.m.masters, addr), append(p.m.replicas, nil)
		at = uint16(len(p.m.masters))
		p.at[addr] = at
	}
	return at, nil
}

// idOf returns the id of a server; "" if there is none.
func idOf(server resp.Reply) string {
	if server.Len() < 3 {
		return ""
	}
	id := server.At(2)
	if k := id.Kind(); k != resp.Bulk && k != resp.SimpleString || len(id.Bytes()) > idMax {
		return ""
	}
	return string(id.Bytes())
}

// replica notes a replica.
func (p *slotsParser) replica(f follower) error {
	if _, ok := p.replicas[f]; ok {
		return nil
	}
	if len(p.replicas) >= serversMax {
		return fmt.Errorf("more than %d replicas", serversMax)
	}
	p.replicas[f] = struct{}{}
	p.m.replicas[f.master-1] = append(p.m.replicas[f.master-1], f.addr)
	return nil
}

// address reads [host, port, …]. It is empty if the port is 0.
func (p *slotsParser) address(server resp.Reply) (string, error) {
	if server.Kind() != resp.Array || server.Len() < 2 {
		return "", fmt.Errorf("is %s of %d, want host and port", server.Kind(), server.Len())
	}
	host, port := server.At(0), server.At(1)
	if port.Kind() != resp.Integer {
		return "", fmt.Errorf("the port is %s", port.Kind())
	}
	name := ""
	switch host.Kind() {
	case resp.Null:
	case resp.Bulk, resp.SimpleString:
		name = string(host.Bytes())
	default:
		return "", fmt.Errorf("the host is %s", host.Kind())
	}
	if port.Int() == 0 {
		return "", nil
	}
	return Address(name, port.Int(), p.host)
}

var (
	errAddress = errors.New("the address is malformed")
	errNoSlots = errors.New("no node of the Redis Cluster has slots")
)

// Address returns "host:port" as a server tells of another one. A host that is empty or ? is the asked one. The error
// says why it is none.
func Address(host string, port int64, asked string) (string, error) {
	if host == "" || host == "?" {
		host = asked
	}
	malformed := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"'/@[]\`, r) }
	if port < 1 || port > 65535 || host == "" || len(host) > hostMax || strings.ContainsFunc(host, malformed) {
		return "", errAddress
	}
	return net.JoinHostPort(host, strconv.FormatInt(port, 10)), nil
}
