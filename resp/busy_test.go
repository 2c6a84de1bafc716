package resp

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop/clock"
)

// TestABusyLoopFailsNoCalls: a callback takes longer than RequestTimeout. The client reads
// answers that come meanwhile before it calls the server silent.
func TestABusyLoopFailsNoCalls(t *testing.T) {
	for _, c := range []struct {
		name  string
		comes bool // an answer, meanwhile
	}{{"answered meanwhile", true}, {"silent", false}} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(t)
			n.mute = true
			client := newClient(n, Options{RequestTimeout: 100 * time.Millisecond})
			busy, _ := get(t, "busy", 1)
			other, o := get(t, "other", 1)
			busy.Done = func(*Call) {
				n.h.Clock.Advance(time.Second)
				if c.comes {
					n.last().answer(1)
				}
			}
			require.NoError(t, client.Do(busy))
			require.NoError(t, client.Do(other))
			n.settle()
			n.last().answer(1)
			n.settle()
			checkInvariants(t, client)
			if c.comes {
				o.requireReplies(t, got("other", 1))
			} else {
				o.requireError(t, ErrTimeout, "no byte within 100ms: 1 of 1 replies missing")
			}
		})
	}
}

// TestLargeRequestsDoNotSlowEachOther: each request reads a little and then very much, as the
// feed does. The throughput is the same as if the client never paused.
func TestLargeRequestsDoNotSlowEachOther(t *testing.T) {
	// A call of fewer than a quarter of these commands leaves whole.
	whole := Options{MaxInflight: 64 << 10, NoCoalesceReads: true}
	for _, inFlight := range []int{64, 256} {
		t.Run(fmt.Sprint(inFlight), func(t *testing.T) {
			paced, overtaken := timeOfFeed(t, inFlight, Options{NoCoalesceReads: true})
			free, _ := timeOfFeed(t, inFlight, whole)
			assert.Less(t, paced, free*100/99, "0.99 of the throughput without pacing")
			assert.LessOrEqual(t, overtaken, 2, "the first request is answered first, except where the first parts end")
		})
	}
}

// timeOfFeed returns how long a client takes for requests, inFlight at a time. Each has a call
// of 16 commands, then one of 286. It also returns how many later requests overtake one at
// most. The server needs 2.5 µs per command, its answers travel for 100 µs, and the loop needs
// 1.5 µs for each.
func timeOfFeed(t *testing.T, inFlight int, o Options) (took time.Duration, overtaken int) {
	const (
		requests   = 600
		perCommand = 2500 * time.Nanosecond
		perReply   = 1500 * time.Nanosecond
		piece      = 16
		travel     = 100 * time.Microsecond
	)
	n := newNetwork(t)
	n.mute = true
	client := newClient(n, o)
	defer client.Close()
	started, ended := 0, 0
	var begin func()
	begin = func() {
		place := started
		started++
		flow := new(Flow)
		small, _ := get(t, "small", 16)
		large, _ := get(t, "large", 286)
		small.Flow, large.Flow = flow, flow
		small.Done = func(c *Call) {
			require.NoError(t, c.Err)
			require.NoError(t, client.Do(large))
		}
		large.Done = func(c *Call) {
			require.NoError(t, c.Err)
			overtaken = max(overtaken, ended-place)
			if ended++; started < requests {
				begin()
			}
		}
		require.NoError(t, client.Do(small))
	}
	for range inFlight {
		begin()
	}
	n.settle()
	since := n.h.Clock.Now()
	type delivery struct {
		at clock.Time
		n  int
	}
	var (
		served   int
		arrived  int        // commands at the server at the last look
		at       clock.Time // when the server has answered the last ones
		onTheWay []delivery
	)
	for p := n.last(); ended < requests; {
		now := n.h.Clock.Now()
		if p.commands > arrived && served == arrived {
			at = max(at, now)
		}
		for arrived = p.commands; served < arrived; {
			k := min(piece, arrived-served)
			served, at = served+k, at.Add(time.Duration(k)*perCommand)
			onTheWay = append(onTheWay, delivery{at.Add(travel), k})
		}
		next := n.h.Loop.Due()
		if len(onTheWay) > 0 {
			next = next.Earlier(onTheWay[0].at)
		}
		n.h.Clock.Advance(max(0, next.Sub(now)))
		read := 0
		for len(onTheWay) > 0 && onTheWay[0].at <= n.h.Clock.Now() {
			p.answer(onTheWay[0].n)
			read += onTheWay[0].n
			onTheWay = onTheWay[1:]
		}
		n.settle()
		n.h.Clock.Advance(time.Duration(read) * perReply)
	}
	return n.h.Clock.Now().Sub(since), overtaken
}

// TestPausesProtectFlowsWithoutLargeCalls: large calls pause if more than one flow in sixteen
// has no large call.
func TestPausesProtectFlowsWithoutLargeCalls(t *testing.T) {
	for _, c := range []struct {
		name         string
		large, light int  // flows: each has a small call, and the large flows also have a large call
		elsewhere    bool // they have called another client before
		alone        bool // the light flows have no Flow
		pauses       bool
	}{
		{"large calls only", 64, 0, false, false, false},
		{"too few to tell", 63, 0, false, false, true},
		{"one in seventeen", 64, 4, false, false, false},
		{"one in thirteen", 60, 5, false, false, true},
		{"calls that stand alone", 60, 5, false, true, true},
		{"the latest count", 100, 2000, false, false, true},
		{"large ones of another client", 200, 0, true, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(t)
			client := newClient(n, Options{})
			other := newClient(n, Options{})
			ask := func(to *Client, f *Flow, size int) {
				call, o := get(t, "a", size)
				call.Flow = f
				require.NoError(t, to.Do(call))
				n.settle()
				require.NoError(t, o.err)
			}
			for i := range c.large + c.light {
				f := new(Flow)
				if c.elsewhere {
					ask(other, f, 1)
				}
				if i >= c.large && c.alone {
					f = nil
				}
				ask(client, f, 1)
				if i < c.large {
					ask(client, f, 129)
				}
			}
			assert.Equal(t, !c.pauses, client.queue.onlyLarge())
		})
	}
}

// TestABusyLoopFailsNoConnect: the loop looks again only after ConnectTimeout. It then finds
// the connection, or the answer to its greeting.
func TestABusyLoopFailsNoConnect(t *testing.T) {
	for _, o := range []Options{{}, {Password: "p"}} {
		n := newNetwork(t)
		n.mute = o.Password != ""
		client := newClient(n, o)
		call, a := get(t, "a", 1)
		require.NoError(t, client.Do(call))
		if o.Password != "" {
			n.settle()
			n.last().answer(1)
			n.mute = false
		}
		n.h.Clock.Advance(2 * time.Second)
		n.settle()
		checkInvariants(t, client)
		a.requireReplies(t, got("a", 1))
	}
}
