package scheduler

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/loop/loopsim"
	"github.com/rankd/rankd/reactor/simnet"
	"github.com/rankd/rankd/resp"
)

// The replies to two requests come in one piece. The first answer's receiver panics; the other
// request still gets its reply, on the same connection.
func TestAPanicInDoneKeepsTheConnection(t *testing.T) {
	bug := errors.New("a bug of the caller")
	var panics []any
	rng := rand.New(rand.NewPCG(1, 1))
	sim := loopsim.New(rng, func(recovered any, _ []byte) { panics = append(panics, recovered) })
	net := simnet.New(sim, rng, simnet.Config{Latency: func() time.Duration { return time.Millisecond }})
	reg := testRegistry(t)
	connections := 0
	clients := make([]Caller, len(reg.Endpoints()))
	clients[0] = resp.NewClient(sim.Loop, net, resp.Options{Addr: "redis:1"})
	net.Listen("redis:1", func(p *simnet.Peer) {
		connections++
		p.OnData = func(data []byte) int {
			rest, out := data, []byte(nil)
			for len(rest) > 0 {
				_, args, _, left, err := redcon.ReadNextCommand(rest, nil)
				require.NoError(t, err)
				out, rest = simAnswer(out, args), left
			}
			p.Write(out)
			return len(data)
		}
	})
	pool := cpupool.New(sim.Loop, cpupool.Config{Clock: sim.Clock})
	defer pool.Close()
	e := NewAsync(AsyncConfig{Loop: sim.Loop, CPU: pool, Registry: reg, Clients: clients})
	play := func() {
		for {
			require.NoError(t, sim.Settle())
			at, ok := sim.Next()
			if !ok {
				return
			}
			sim.MoveTo(at)
		}
	}

	g := builtinGraph(t, "viewer", node("viewer", "viewer", "", `"endpoint": "ep_0001"`, ""))
	var results []*Result
	for range 2 {
		e.Submit(&Execution{Graph: g, UserID: 3}, func(r *Result) {
			results = append(results, r)
			if len(results) == 1 {
				panic(bug)
			}
		})
	}
	play()
	require.Len(t, results, 2)
	assert.NoError(t, results[0].Err)
	assert.NoError(t, results[1].Err)
	assert.Equal(t, []any{bug}, panics)
	assert.Equal(t, 1, connections)

	sim.Loop.Post(func() { e.beginClose(0) })
	play()
	assert.True(t, e.ended)
	assertNothingLeft(t, e)
	require.NoError(t, sim.Stop())
}
