package conformance

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp/cluster"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/scheduler/blocking"
	"github.com/rankd/rankd/task/builtin"
)

func TestMain(m *testing.M) { looptest.Main(m) }

// TestEmbeddedRedis runs the cases against the Redis that rankd embeds.
func TestEmbeddedRedis(t *testing.T) { testServer(t, miniredis.RunT(t).Addr()) }

// TestRealRedis runs the cases against a redis-server.
func TestRealRedis(t *testing.T) { testServer(t, testworld.StartRedis(t).Addr) }

// TestRealCluster runs the cases against a Redis Cluster of three masters, with the engine that
// supports clusters.
func TestRealCluster(t *testing.T) {
	c := testworld.StartRedisCluster(t, 3)
	for _, command := range SeedCommands(t) {
		c.Do(t, c.Owner(cluster.Slot([]byte(command[1]))), command...)
	}
	testEngines(t, registryAt(t, c.Addr()), asyncEngines())
}

func testServer(t *testing.T, addr string) {
	Seed(t, addr)
	reg := registryAt(t, addr)
	testEngines(t, reg, append([]openEngine{
		{"pool", func(*testing.T, *registry.Registry) scheduler.Engine {
			return blocking.OpenTwoPools(scheduler.Config{Registry: reg, RedisConnections: 2})
		}},
		{"sequential", func(*testing.T, *registry.Registry) scheduler.Engine {
			return blocking.OpenSequential(scheduler.Config{Registry: reg})
		}},
	}, asyncEngines()...))
}

// An openEngine opens an engine.
type openEngine struct {
	name string
	open func(t *testing.T, reg *registry.Registry) scheduler.Engine
}

// asyncEngines are the engines with a loop.
func asyncEngines() (engines []openEngine) {
	for _, mode := range []plan.Mode{plan.Adaptive, plan.OffloadAll, plan.InlineAll} {
		engines = append(engines, openEngine{"async " + string(mode), func(t *testing.T, reg *registry.Registry) scheduler.Engine {
			e, err := scheduler.OpenAsync(scheduler.Config{
				Registry: reg, Placement: scheduler.Placement{Mode: mode},
				Memory: rowset.NewPool(rowset.PoolConfig{LengthMin: 1, Poison: true}), // what is read too late would be wrong
			})
			require.NoError(t, err)
			return e
		}})
	}
	return engines
}

func testEngines(t *testing.T, reg *registry.Registry, engines []openEngine) {
	cases := Load(t)
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			engine := e.open(t, reg)
			defer engine.Close(scheduler.Forever)
			for _, c := range cases {
				t.Run(c.Name, func(t *testing.T) { runCase(t, engine, reg, &c) })
			}
		})
	}
}

func runCase(t *testing.T, engine scheduler.Engine, reg *registry.Registry, c *Case) {
	graph, planErr := plan.Load(c.Name+".plan.json", Verbatim(t, c.Plan), builtin.Catalog(), reg)
	if c.Quirk() {
		require.Error(t, planErr)
		return
	}
	if c.Kind != "plan_error" {
		require.NoError(t, planErr)
	}
	encoder := request.NewEncoder(reg, request.Fields)
	for i, r := range c.Requests {
		want := r.Expected(t)
		stage, line := answer(engine, reg, encoder, graph, planErr, Verbatim(t, r.Request))
		if want.Error {
			assert.Equal(t, want.Stage, stage, "request %d: %s", i, line)
			continue
		}
		require.Empty(t, stage, "request %d: %s", i, line)
		c.Check(t, i, []byte(line))
	}
}

// answer runs one request. It returns the answer, or the error and the stage at which the
// request failed.
func answer(engine scheduler.Engine, reg *registry.Registry, encoder *request.Encoder,
	graph *plan.Graph, planErr error, doc []byte) (stage, line string) {
	req, err := request.NewParser(reg).Parse(doc, request.Given{})
	if err != nil {
		return "request", err.Error()
	}
	if planErr != nil {
		return "plan", planErr.Error()
	}
	params, refused := request.Values(&req, reg)
	if refused != nil {
		return "request", refused.Error()
	}
	results := make(chan *scheduler.Result, 1)
	engine.Submit(&scheduler.Execution{Graph: graph, UserID: req.UserID, Params: params, Deltas: true},
		func(r *scheduler.Result) { results <- r })
	result := <-results
	if result.Err != nil {
		return "run", result.Err.Error()
	}
	response := request.Response{RequestID: req.ID, Outputs: result.Outputs, Deltas: result.Deltas(), ShowDeltas: true}
	return "", string(encoder.AppendResponse(nil, &response))
}

func registryAt(t *testing.T, addr string) *registry.Registry {
	reg, err := registry.Default("dev")
	require.NoError(t, err)
	server, err := registry.ParseServer(addr)
	require.NoError(t, err)
	return reg.WithRedis(server)
}

// TestRank runs the cases through the library: what a caller gets of Rank, errors too.
func TestRank(t *testing.T) {
	addr := miniredis.RunT(t).Addr()
	Seed(t, addr)
	cases := Load(t)
	for _, model := range []rankd.Model{rankd.Reactor, rankd.Pool, rankd.Sequential} {
		for i := range cases {
			c := &cases[i]
			t.Run(string(model)+"/"+c.Name, func(t *testing.T) {
				e, err := rankd.Open(rankd.Options{
					Model: model, Env: "dev", Redis: addr, PlanText: Verbatim(t, c.Plan), Logger: slog.New(slog.DiscardHandler),
				})
				if c.Kind == "plan_error" || c.Quirk() {
					require.Error(t, err)
					return
				}
				require.NoError(t, err)
				defer e.Close()
				for i := range c.Requests {
					rankRequest(t, e, c, i)
				}
			})
		}
	}
}

func rankRequest(t *testing.T, e *rankd.Engine, c *Case, i int) {
	want := c.Requests[i].Expected(t)
	q, err := e.ParseRequest(Verbatim(t, c.Requests[i].Request))
	stage := "request"
	var answer *rankd.Answer
	if err == nil {
		q.SchemaDeltas, q.Plan = true, ""
		answer, err = e.Rank(t.Context(), q)
	}
	if !want.Error {
		require.NoError(t, err)
		c.Check(t, i, answer.AppendJSON(nil, rankd.FormatFields))
		return
	}
	var failed *rankd.Error
	require.ErrorAs(t, err, &failed)
	assert.NotEmpty(t, failed.Detail)
	assert.NotErrorIs(t, err, scheduler.ErrFault)
	if failed.Node != "" || !errors.Is(err, rankd.ErrInvalidRequest) {
		stage = "run"
	}
	assert.Equal(t, want.Stage, stage)
}
