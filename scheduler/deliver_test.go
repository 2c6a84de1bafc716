package scheduler

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/internal/testing/loopsim"
	"github.com/rankd/rankd/internal/testing/simnet"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// distant is an engine in virtual time, whose Redis is some latency away. It is closed at the
// end of the test, and nothing of it may be left then.
type distant struct {
	*Async
	t           *testing.T
	sim         *loopsim.Sim
	panics      []any // on the loop, which the test expects
	connections int
}

// openIn has d run an engine with that many workers in virtual time. Its Redis serves
// connections as accept says. Requests do not share reads.
func (d *distant) openIn(t *testing.T, latency simnet.Config, accept func(*simnet.Peer), workers cpupool.Config, placement Placement) {
	d.t = t
	rng := rand.New(rand.NewPCG(1, 1))
	d.sim = loopsim.New(rng, func(recovered any, _ []byte) { d.panics = append(d.panics, recovered) })
	net := simnet.New(d.sim, rng, latency)
	net.Listen("redis:1", accept)
	reg := testRegistry(t)
	clients := make([]Caller, len(reg.Endpoints()))
	clients[0] = resp.NewClient(d.sim.Loop, net, resp.Options{Addr: "redis:1", NoCoalesceReads: true})
	workers.Clock = d.sim.Clock
	pool := cpupool.New(d.sim.Loop, workers)
	t.Cleanup(pool.Close)
	d.Async = NewAsync(AsyncConfig{Loop: d.sim.Loop, CPU: pool, Clients: clients, Config: Config{Registry: reg, Placement: placement}})
	t.Cleanup(d.end)
}

// newDistant returns an engine whose Redis is 1 ms away and answers at once.
func newDistant(t *testing.T) *distant {
	d := new(distant)
	d.openIn(t, simnet.Config{Latency: func() time.Duration { return time.Millisecond }}, func(p *simnet.Peer) {
		d.connections++
		p.OnData = func(data []byte) int {
			rest, out := data, []byte(nil)
			for len(rest) > 0 {
				complete, args, _, left, err := redcon.ReadNextCommand(rest, nil)
				assert.NoError(t, err)
				if !complete {
					break
				}
				out, rest = simAnswer(out, args), left
			}
			p.Write(out)
			return len(data) - len(rest)
		}
	}, cpupool.Config{}, Placement{})
	return d
}

// play lets time pass until nothing happens any more.
func (d *distant) play() {
	for {
		require.NoError(d.t, d.sim.Settle())
		at, ok := d.sim.Next()
		if !ok {
			return
		}
		d.sim.MoveTo(at)
	}
}

// end closes the engine. It fails the test if anything is left.
func (d *distant) end() {
	d.shut(0)
	d.play()
	assert.True(d.t, d.ended)
	assertNothingLeft(d.t, d.Async)
	require.NoError(d.t, d.sim.Stop())
}

// The replies to two requests come in one piece. The receiver of the first answer panics. The
// other request still gets its reply, on the same connection.
func TestAPanicInDoneKeepsTheConnection(t *testing.T) {
	bug := errors.New("a bug of the caller")
	d := newDistant(t)
	g := builtinGraph(t, "viewer", node("viewer", "viewer", "", `"endpoint": "ep_0001"`, ""))
	var results []*Result
	for range 2 {
		d.Submit(&Execution{Graph: g, UserID: 3}, func(r *Result) {
			results = append(results, r)
			if len(results) == 1 {
				panic(bug)
			}
		})
	}
	d.play()
	require.Len(t, results, 2)
	assert.NoError(t, results[0].Err)
	assert.NoError(t, results[1].Err)
	assert.Equal(t, []any{bug}, d.panics)
	assert.Equal(t, 1, d.connections)
}

// TestASleepGivesUpTheOtherParts: a body takes the first part of the replies, and sleeps. The
// parts that it does not take do not end the sleep.
func TestASleepGivesUpTheOtherParts(t *testing.T) {
	d := newDistant(t)
	const nap = time.Second
	var slept time.Duration
	naps := func(c *task.Ctx) (rowset.RowSet, error) {
		redis := c.Redis(c.Node.Endpoint)
		b := redis.NewBatch()
		for id := range 1000 {
			b.Cmd("HGETALL", "user:"+strconv.Itoa(id))
		}
		parts := redis.Parts(b)
		assert.True(t, parts.Next())
		assert.Less(t, parts.Replies().Len(), 1000)
		began := d.sim.Clock.Now()
		err := c.Sleep(nap)
		slept = d.sim.Clock.Now().Sub(began)
		assert.False(t, parts.Next())
		return rowset.Dense(new(rowset.Batch)), err
	}
	endpoint := plan.ParamSchema{Name: "endpoint", Type: plan.Endpoint, Required: true}
	tasks := builtins(t, task.Spec{Op: "test::naps", Params: []plan.ParamSchema{endpoint}, Output: task.Source, Place: task.Waits, Run: naps})
	g := graph(t, tasks, "src", node("src", "test::naps", "", `"endpoint": "ep_0001"`, ""))
	var result *Result
	d.Submit(&Execution{Graph: g, UserID: 3}, func(r *Result) { result = r })
	d.play()
	require.NotNil(t, result)
	assert.NoError(t, result.Err)
	assert.Equal(t, nap, slept)
}
