package resp

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop"
)

var seeds = flag.Int("resp.seeds", 100, "number of random schedules")

// TestRandomSchedules runs a client with random calls, cancels and deadlines, answers split
// anywhere, hung servers, and refused and lost connections. All of that follows from one seed,
// in virtual time. After each step the client's invariants hold. In the end, each accepted call
// was done exactly once, with its own replies or an error that fits. No command reached a
// server twice, and nothing is in flight.
func TestRandomSchedules(t *testing.T) {
	for seed := range uint64(*seeds) {
		if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { randomSchedule(t, seed) }) {
			return
		}
	}
}

// A use is one use of a call, from Do to its end.
type use struct {
	prefix    string
	size      int
	deadline  bool
	cancelled bool
	outcome   *outcome
}

func randomSchedule(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	n := newNetwork(t)
	c := newClient(n, Options{
		MaxInflight:    1 + rng.IntN(12),
		MaxWaiting:     20,
		Connections:    1 + rng.IntN(3),
		RequestTimeout: 50 * time.Millisecond,
		ConnectTimeout: 40 * time.Millisecond,
		ClientName:     []string{"", "rankd"}[rng.IntN(2)],
		Seed:           seed,
	})
	var uses []*use
	var free []*Call // has been used and is done; to be used again
	start := func() {
		u := &use{prefix: strconv.Itoa(len(uses)), size: rng.IntN(2 * c.opts.MaxInflight)}
		fresh, o := get(t, u.prefix, u.size)
		u.outcome = o
		if k := len(free); k > 0 {
			call := free[k-1]
			free = free[:k-1]
			call.Batch, call.Done, call.Deadline = fresh.Batch, fresh.Done, 0
			o.call = call
		}
		call := o.call
		if rng.IntN(3) == 0 {
			u.deadline = true
			call.Deadline = n.h.Clock.Now().Add(time.Duration(rng.IntN(60)-2) * time.Millisecond)
		}
		done := call.Done
		call.Done = func(call *Call) {
			done(call)
			free = append(free, call)
		}
		switch err := c.Do(call); {
		case err == nil:
			require.Zero(t, o.done, "never inside Do")
			uses = append(uses, u)
		case errors.Is(err, ErrTimeout):
			require.True(t, u.deadline)
		default:
			require.ErrorIs(t, err, ErrQueueFull)
		}
	}
	peerAtRandom := func() *peer {
		if len(n.conns) == 0 {
			return nil
		}
		// One of the last few connections: earlier ones are closed for good.
		return n.conns[max(0, len(n.conns)-1-rng.IntN(3))]
	}
	for range 150 {
		switch k := rng.IntN(20); {
		case k < 7:
			start()
		case k < 9:
			if len(uses) > 0 {
				u := uses[rng.IntN(len(uses))]
				call := u.outcome.call
				if u.outcome.done == 0 && !u.cancelled {
					if due := call.state == callSettled; due {
						require.ErrorIs(t, c.Cancel(call), loop.ErrBusy)
					} else {
						require.NoError(t, c.Cancel(call))
						u.cancelled = true
					}
					require.Zero(t, u.outcome.done, "never inside Cancel")
				}
			}
		case k < 14:
			if p := peerAtRandom(); p != nil && len(p.answers) > 0 {
				p.answerInPieces(rng, 1+rng.IntN(len(p.answers)))
			}
		case k < 15:
			n.mute = rng.IntN(3) > 0
		case k < 16:
			n.refuse = nil
			if rng.IntN(3) == 0 {
				n.refuse = errors.New("refused")
			}
			n.silent = rng.IntN(8) == 0
		case k < 17:
			if p := peerAtRandom(); p != nil && p.connected && rng.IntN(2) == 0 {
				p.hangUp()
			}
		case k < 19:
			n.advance(time.Duration(rng.IntN(20)) * time.Millisecond)
		default:
			n.settle()
		}
		checkInvariants(t, c)
	}
	// All calls end by themselves, whatever the servers do. Those that wait end when their turn
	// comes.
	n.advance(10 * time.Second)
	checkInvariants(t, c)
	for _, u := range uses {
		o := u.outcome
		where := fmt.Sprintf("seed %d, call %s", seed, u.prefix)
		require.Equal(t, 1, o.done, where)
		require.Equal(t, u.cancelled, errors.Is(o.err, loop.ErrCancelled), where)
		if u.cancelled {
			continue
		}
		if o.err == nil {
			require.Equal(t, got(u.prefix, u.size), o.text, where)
			continue
		}
		require.True(t, errors.Is(o.err, ErrTimeout) || errors.Is(o.err, ErrConnectionLost) ||
			errors.Is(o.err, ErrConnect), "%s: %v", where, o.err)
		if errors.Is(o.err, ErrConnect) {
			require.Zero(t, n.executed[u.prefix+":0"], "%s: the error says that nothing was sent", where)
		}
	}
	for text, times := range n.executed {
		if text != "SETNAME" {
			require.Equal(t, 1, times, "seed %d: %s", seed, text)
		}
	}
	require.Zero(t, c.Stats().Waiting)

	// When the servers are back, the client finishes what it holds, and works.
	n.mute, n.silent, n.refuse = false, false, nil
	for _, p := range n.conns {
		p.answerInPieces(rng, len(p.answers))
	}
	n.advance(300 * time.Millisecond)
	call, o := get(t, "last", 3)
	require.NoError(t, c.Do(call))
	n.advance(50 * time.Millisecond)
	o.requireReplies(t, got("last", 3))
	require.Zero(t, c.Stats().Inflight)
	c.Close()
	n.settle()
	checkInvariants(t, c)
}

// answerInPieces sends the answers to the next k commands, cut anywhere.
func (p *peer) answerInPieces(rng *rand.Rand, k int) {
	var all []byte
	for _, a := range p.answers[:k] {
		all = append(all, a...)
	}
	p.answers = p.answers[k:]
	for len(all) > 0 {
		cut := 1 + rng.IntN(len(all))
		p.arrive(all[:cut])
		all = all[cut:]
	}
}
