package serve

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sender counts the calls of its outbox. One goroutine at a time.
type sender struct {
	*Outbox
	rooms, cuts int
}

func (s *sender) Room() { s.rooms++ }
func (s *sender) Cut()  { s.cuts++ }

// senders returns a service that only counts, and that many connections.
func senders(max int64, n int) (*Service, []*sender) {
	s := &Service{unsent: unsent{max: max, patience: time.Hour}}
	all := make([]*sender, n)
	for i := range all {
		all[i] = new(sender)
		all[i].Outbox = s.NewOutbox(all[i])
	}
	return s, all
}

const step = OutboxStep

func TestTheSlowestIsCutOff(t *testing.T) {
	s, c := senders(10*step, 4)
	c[0].Hold(4 * step)
	c[1].Settle(4 * step)
	c[2].Settle(2 * step)
	c[0].Settle(2 * step)
	assert.Equal(t, 1, c[0].cuts, "its answers have waited longest")
	assert.False(t, c[0].Spared())
	assert.EqualValues(t, 12*step, s.Unsent(), "until it is gone")
	c[1].Settle(3 * step)
	c[3].Hold(6 * step)
	assert.Equal(t, 1, c[2].cuts, "the client of 1 has taken something since")
	c[0].Close()
	c[2].Close()
	assert.EqualValues(t, 9*step, s.Unsent())
	assert.False(t, c[1].doomed || c[3].doomed)
	c[0].Hold(100 * step)
	c[0].Settle(100 * step)
	assert.EqualValues(t, 9*step, s.Unsent(), "nothing counts after Close")
}

// TestAClientThatWaitsForTheServerIsNotTheSlowest has an answer wait for room. That room is held for a
// client that takes nothing.
func TestAClientThatWaitsForTheServerIsNotTheSlowest(t *testing.T) {
	s, c := senders(10*step, 3)
	c[0].Hold(3 * step)
	require.True(t, c[1].Encode(4*step))
	require.False(t, c[0].Encode(3*step), "its client has nothing to take")
	c[1].Settle(4 * step)
	for _, x := range c[:2] {
		x.moved = x.moved.Add(-2 * s.unsent.patience)
	}
	c[2].Hold(4 * step)
	assert.Equal(t, []int{0, 1, 0}, []int{c[0].cuts, c[1].cuts, c[2].cuts}, "though it has held nothing for longer")
	assert.Zero(t, c[0].rooms, "an answer that is cut off counts until it is gone")
	c[1].Close()
	assert.Equal(t, 1, c[0].rooms)
}

func TestOneAloneMayHoldMore(t *testing.T) {
	_, c := senders(10*step, 2)
	c[0].Hold(100 * step)
	require.True(t, c[0].Encode(100*step))
	c[0].Settle(120 * step)
	assert.Zero(t, c[0].cuts)
	c[1].Hold(step)
	assert.Equal(t, 1, c[0].cuts)
	assert.Zero(t, c[1].cuts)
}

// TestAClientThatHasItsShareIsRefused has a connection ask for more and more while a second one comes.
func TestAClientThatHasItsShareIsRefused(t *testing.T) {
	_, c := senders(12*step, 3)
	require.True(t, c[0].hold(6*step), "alone, it may have half of all")
	require.False(t, c[0].hold(step))
	require.True(t, c[1].hold(2*step), "later connections find room")
	require.True(t, c[1].hold(2*step))
	require.False(t, c[1].hold(step), "two connections and one to come may have a third each")
	c[0].Hold(-3 * step)
	require.True(t, c[0].hold(2*step), "its client has taken some")
	require.True(t, c[2].hold(100*step), "one answer always comes through")
	assert.Equal(t, []int{1, 1, 0}, []int{c[0].cuts, c[1].cuts, c[2].cuts})
}

func TestAClientThatReadsIsSpared(t *testing.T) {
	s, c := senders(10*step, 2)
	c[0].Settle(8 * step)
	c[1].Settle(4 * step)
	require.Equal(t, 1, c[0].cuts)
	require.False(t, c[0].Spared())
	c[0].Settle(5 * step)
	assert.True(t, c[0].Spared(), "it has taken something meanwhile")
	assert.False(t, c[0].Spared())
	c[1].Hold(2 * step)
	assert.Equal(t, []int{1, 1}, []int{c[0].cuts, c[1].cuts}, "the other one is the slowest now")
	assert.EqualValues(t, 6*step, s.unsent.leaving)
}

func TestEncodingWaitsForRoom(t *testing.T) {
	s, c := senders(20*step, 4)
	require.True(t, c[0].Encode(6*step))
	c[0].Settle(7 * step)
	assert.False(t, c[1].Encode(4*step), "encoded answers may take half")
	assert.False(t, c[2].Encode(step), "the first to wait is the first to get room")
	c[0].Settle(6 * step)
	assert.Equal(t, []int{1, 0}, []int{c[1].rooms, c[2].rooms})
	assert.EqualValues(t, 10*step, s.unsent.encoded)
	c[1].Close()
	assert.Equal(t, 1, c[2].rooms)
	assert.False(t, c[3].Encode(100*step))
	c[0].Settle(0)
	assert.Zero(t, c[3].rooms)
	c[2].Settle(0)
	assert.Equal(t, 1, c[3].rooms, "an answer longer than half comes alone")
}

// TestNobodyWaitsForAClientThatTakesNothing has one answer wait for room that another one
// holds.
func TestNobodyWaitsForAClientThatTakesNothing(t *testing.T) {
	s, c := senders(20*step, 3)
	require.True(t, c[0].Encode(6*step))
	require.True(t, c[1].Encode(4*step))
	s.unsent.relieve()
	require.False(t, c[2].Encode(4*step))
	c[2].Hold(4 * step)
	s.unsent.relieve()
	assert.Zero(t, c[0].cuts+c[1].cuts+c[2].cuts, "they have some time")
	for _, x := range c {
		x.moved = x.moved.Add(-time.Hour)
	}
	for _, x := range c[:2] { // c[2] is first
		s.unsent.holders.Remove(&x.place)
		s.unsent.holders.Push(x.Outbox, &x.place)
	}
	s.unsent.relieve()
	assert.Equal(t, []int{1, 0, 0}, []int{c[0].cuts, c[1].cuts, c[2].cuts}, "as few are cut off as make room, and not the one that waits")
	require.NotNil(t, s.unsent.timer)
	c[0].Close()
	assert.Equal(t, 1, c[2].rooms)
	s.unsent.relieve()
	assert.Zero(t, c[1].cuts, "nobody waits")
	assert.Nil(t, s.unsent.timer)
}

// TestRandomOutboxes compares the counts with what the connections hold, after each of many
// random steps.
func TestRandomOutboxes(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		s, c := senders(40*step, 6)
		u := &s.unsent
		open := map[*sender]bool{}
		for range 300 {
			i := random.IntN(len(c))
			x := c[i]
			open[x] = true
			switch bytes := random.IntN(12 * step); random.IntN(7) {
			case 6:
				before, alone := u.total, x.waiting+x.encoded == 0
				ok := x.hold(bytes)
				require.True(t, ok || !alone && before+int64(bytes) > u.max/2, "seed %d: refused without need", seed)
				require.True(t, ok || u.total == before, "seed %d: what is refused does not count", seed)
			case 0:
				x.Hold(bytes)
			case 1:
				x.Hold(-int(x.waiting))
			case 2, 3:
				if !x.asked.In() {
					x.Settle(min(bytes, int(x.encoded)))
				}
			case 4:
				if !x.asked.In() {
					x.Encode(bytes)
				}
			case 5:
				if !x.Spared() && (x.doomed || random.IntN(10) == 0) {
					x.Close()
					c[i] = new(sender)
					c[i].Outbox = s.NewOutbox(c[i])
				}
			}
			var total, encoded, leaving int64
			holding := 0
			for _, x := range c {
				total += x.waiting + x.encoded
				encoded += x.encoded
				if x.doomed {
					leaving += x.waiting + x.encoded
				} else if x.waiting+x.encoded > 0 {
					holding++
				}
			}
			require.Equal(t, [...]int64{total, encoded, leaving}, [...]int64{u.total, u.encoded, u.leaving}, "seed %d", seed)
			require.Equal(t, holding, u.holders.Len(), "seed %d", seed)
			require.True(t, total-leaving <= u.max || holding == 1, "seed %d: %d of %d bytes by %d", seed, total-leaving, u.max, holding)
			if first := u.asking.First(); first != nil {
				require.False(t, u.fits(first), "seed %d: nobody waits although there is room", seed)
			}
		}
		for _, x := range c {
			x.Close()
		}
		require.Zero(t, u.total+u.encoded+u.leaving+int64(u.holders.Len()+u.asking.Len()), "seed %d", seed)
	}
}
