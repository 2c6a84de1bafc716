package blocking

import (
	"cmp"
	"errors"
	"slices"
)

// sentinelsMore bounds the sentinels that are known because others have told of them.
const sentinelsMore = 32

// A Naming is what a sentinel says. Immutable.
type Naming struct {
	Master string   // its address
	Epoch  int64    // of the master's config; a sentinel with a lower one does not know of the latest switch
	Tells  []string // the addresses of sentinels, and the sentinel's own
}

// A SentinelState is what a client knows of sentinels, and has the rules by which it believes them. It has neither
// sockets nor timers, so that a simulation follows the same rules. A sentinel that the user has named is believed alone.
// Those that others tell of are asked once no named one answers, and count only if most of those that answer name the
// same master: an address may belong to somebody else by then. Of all that it believes, the highest epoch counts. One
// goroutine at a time.
type SentinelState struct {
	named  []string
	turn   int      // of named: who is asked next
	more   []string // of which others have told
	master string
	epoch  int64
}

// NewSentinelState returns the state of a client that knows the sentinels at these addresses.
func NewSentinelState(named []string) *SentinelState { return &SentinelState{named: named} }

// Named returns the sentinels that the user has named, in the order in which to ask them. The next call begins with another one.
func (s *SentinelState) Named() []string {
	at := s.turn % len(s.named)
	s.turn++
	return slices.Concat(s.named[at:], s.named[:at])
}

// More returns the sentinels that are all to be asked if no named one answers.
func (s *SentinelState) More() []string { return s.more }

// Master returns the address of the master as far as is known; empty: it is not.
func (s *SentinelState) Master() string { return s.master }

// Believe takes what a named sentinel says.
func (s *SentinelState) Believe(n *Naming) {
	s.meet(n.Tells)
	s.learn(n.Master, n.Epoch)
}

var errSentinelsDisagree = errors.New("sentinels that others have told of do not agree on the master")

// Vote takes what the answering ones of More say. It fails if most of them do not name the same master.
func (s *SentinelState) Vote(said []*Naming) error {
	master, ok := mostNamed(said)
	if !ok {
		return errSentinelsDisagree
	}
	var epochs []int64
	var tells []string
	for _, n := range said {
		if n.Master == master {
			epochs = append(epochs, n.Epoch)
			tells = append(tells, n.Tells[:1]...)
		}
	}
	for _, n := range said {
		for _, addr := range n.Tells {
			if toldByMost(said, addr) {
				tells = append(tells, addr)
			}
		}
	}
	s.meet(tells)
	s.learn(master, commonEpoch(epochs, len(said)))
	return nil
}

// mostNamed returns the master that most sentinels name.
func mostNamed(said []*Naming) (master string, ok bool) {
	for _, n := range said {
		if most(said, func(other *Naming) bool { return other.Master == n.Master }) {
			return n.Master, true
		}
	}
	return "", false
}

// toldByMost reports whether most sentinels tell of another one: a single one could tell of its own kind.
func toldByMost(said []*Naming, addr string) bool {
	return most(said, func(n *Naming) bool { return slices.Contains(n.Tells, addr) })
}

func most(said []*Naming, is func(*Naming) bool) bool {
	votes := 0
	for _, n := range said {
		if is(n) {
			votes++
		}
	}
	return votes > len(said)/2
}

// commonEpoch returns the highest epoch that most of so many sentinels have reached, by the epochs of those that agree: a
// single one could name one that no later switch reaches.
func commonEpoch(epochs []int64, of int) int64 {
	slices.SortFunc(epochs, func(a, b int64) int { return cmp.Compare(b, a) })
	return epochs[of/2]
}

// meet notes the sentinels of which others tell, and forgets those of which they no longer tell.
func (s *SentinelState) meet(addrs []string) {
	var more []string
	for _, addr := range addrs {
		if len(more) < sentinelsMore && !slices.Contains(s.named, addr) && !slices.Contains(more, addr) {
			more = append(more, addr)
		}
	}
	s.more = more
}

// learn takes an address of the master, unless a later switch is known.
func (s *SentinelState) learn(master string, epoch int64) {
	if s.master == "" || epoch >= s.epoch {
		s.master, s.epoch = master, epoch
	}
}
