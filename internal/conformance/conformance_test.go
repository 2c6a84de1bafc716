// Package conformance replays the answers of the original engine, on every engine and on every
// available Redis. README.md describes the format of a case.
package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/internal/testworld"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/loop/looptest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/request"
	"github.com/rankd/rankd/resp"
	respblocking "github.com/rankd/rankd/resp/blocking"
	"github.com/rankd/rankd/resp/cluster"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/scheduler/blocking"
	"github.com/rankd/rankd/task/builtin"
)

func TestMain(m *testing.M) { looptest.Main(m) }

type testCase struct {
	Name     string
	Kind     string
	Tags     []string
	Plan     json.RawMessage
	Requests []struct {
		Request json.RawMessage
		Expect  json.RawMessage
	}
}

type expectation struct {
	Error bool
	Stage string
}

func loadCases(t *testing.T) []testCase {
	files, err := filepath.Glob("cases/*.json")
	require.NoError(t, err)
	require.Greater(t, len(files), 300)
	var cases []testCase
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		var c testCase
		require.NoError(t, json.Unmarshal(text, &c), f)
		cases = append(cases, c)
	}
	return cases
}

// verbatim returns the text that a case means. A JSON string means its content, anything else
// means itself.
func verbatim(t *testing.T, raw json.RawMessage) []byte {
	if raw[0] != '"' {
		return raw
	}
	var s string
	require.NoError(t, json.Unmarshal(raw, &s))
	return []byte(s)
}

// TestEmbeddedRedis runs the cases against the Redis that rankd embeds.
func TestEmbeddedRedis(t *testing.T) { testServer(t, miniredis.RunT(t).Addr()) }

// TestRealRedis runs the cases against a redis-server.
func TestRealRedis(t *testing.T) { testServer(t, testworld.StartRedis(t).Addr) }

// TestRealCluster runs the cases against a Redis Cluster of three masters, with the engine that
// supports clusters.
func TestRealCluster(t *testing.T) {
	c := testworld.StartRedisCluster(t, 3)
	for _, command := range seedCommands(t) {
		c.Do(t, c.Owner(cluster.Slot([]byte(command[1]))), command...)
	}
	testEngines(t, registryAt(t, c.Addr()), asyncEngines())
}

func testServer(t *testing.T, addr string) {
	seed(t, addr)
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
	for _, mode := range []scheduler.Mode{scheduler.Adaptive, scheduler.OffloadAll, scheduler.InlineAll} {
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
	cases := loadCases(t)
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

func runCase(t *testing.T, engine scheduler.Engine, reg *registry.Registry, c *testCase) {
	graph, planErr := plan.Load(c.Name+".plan.json", verbatim(t, c.Plan), builtin.Catalog(), reg)
	if slices.Contains(c.Tags, "quirk") {
		// In such cases the original cuts ids to 32 bits, or the like, and rankd refuses.
		require.Error(t, planErr)
		return
	}
	if c.Kind != "plan_error" {
		require.NoError(t, planErr)
	}
	encoder := request.NewEncoder(reg, request.Fields)
	for i, r := range c.Requests {
		var want expectation
		require.NoError(t, json.Unmarshal(r.Expect, &want))
		stage, line := answer(engine, reg, encoder, graph, planErr, verbatim(t, r.Request))
		if want.Error {
			assert.Equal(t, want.Stage, stage, "request %d: %s", i, line)
			continue
		}
		require.Empty(t, stage, "request %d: %s", i, line)
		compare(t, fmt.Sprintf("request %d", i), r.Expect, []byte(line), slices.Contains(c.Tags, "request_id"))
	}
}

// answer runs one request. It returns the answer, or the error and the stage at which the
// request failed.
func answer(engine scheduler.Engine, reg *registry.Registry, encoder *request.Encoder,
	graph *plan.Graph, planErr error, doc []byte) (stage, line string) {
	req, err := request.Parse(doc, reg)
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

// compare compares an answer with the expected one, by the rules of the README.
func compare(t *testing.T, where string, want, got []byte, withRequestID bool) {
	w, err := jsondoc.Parse(want)
	require.NoError(t, err)
	g, err := jsondoc.Parse(got)
	require.NoError(t, err, "%s", got)
	assert.Equal(t, canonical(w.Get("candidates")), canonical(g.Get("candidates")), "%s: candidates", where)
	wantDeltas, gotDeltas := deltasByNode(w.Get("schema_deltas")), deltasByNode(g.Get("schema_deltas"))
	assert.Equal(t, wantDeltas, gotDeltas, "%s: schema_deltas", where)
	if withRequestID {
		if id := w.Get("request_id"); id != nil {
			assert.Equal(t, id.Str, g.Get("request_id").Str)
		}
	}
}

// canonical writes a value in a form in which equal values have equal texts. Members are
// sorted, ids stay as they are, and doubles have their exact value.
func canonical(v *jsondoc.Value) string {
	switch {
	case v == nil:
		return "absent"
	case v.Kind == jsondoc.Array:
		var parts []string
		for i := range v.Items {
			parts = append(parts, canonical(&v.Items[i]))
		}
		return "[" + strings.Join(parts, "\n") + "]"
	case v.Kind == jsondoc.Object:
		var parts []string
		for i := range v.Members {
			parts = append(parts, strconv.Quote(v.Members[i].Name)+":"+canonical(&v.Members[i].Value))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ",") + "}"
	case v.Kind == jsondoc.String:
		return strconv.Quote(v.Str)
	case v.Kind == jsondoc.Uint:
		return strconv.FormatUint(v.Uint, 10)
	case v.Kind == jsondoc.Int:
		return strconv.FormatInt(v.Int, 10)
	case v.Kind == jsondoc.Float && v.Float == 0:
		return "float 0" // -0.0 equals 0.0
	case v.Kind == jsondoc.Float:
		return "float " + strconv.FormatFloat(v.Float, 'g', -1, 64)
	default:
		return fmt.Sprint(v.Kind, v.Bool)
	}
}

func deltasByNode(v *jsondoc.Value) map[string]string {
	m := map[string]string{}
	for i := range v.Items {
		m[v.Items[i].Get("node_id").Str] = canonical(&v.Items[i])
	}
	return m
}

func registryAt(t *testing.T, addr string) *registry.Registry {
	reg, err := registry.Default("dev")
	require.NoError(t, err)
	server, err := registry.ParseServer(addr)
	require.NoError(t, err)
	return reg.WithRedis(server)
}

// seedCommands returns the commands that write seed.json into an empty Redis.
func seedCommands(t *testing.T) (commands [][]string) {
	text, err := os.ReadFile("seed.json")
	require.NoError(t, err)
	var data struct {
		Hashes map[string]map[string]string
		Lists  map[string][]string
	}
	require.NoError(t, json.Unmarshal(text, &data))
	for key, fields := range data.Hashes {
		args := []string{"HSET", key}
		for name, value := range fields {
			args = append(args, name, value)
		}
		commands = append(commands, args)
	}
	for key, entries := range data.Lists {
		commands = append(commands, append([]string{"RPUSH", key}, entries...))
	}
	return commands
}

// seed writes seed.json into an empty Redis.
func seed(t *testing.T, addr string) {
	var b resp.Batch
	for _, command := range seedCommands(t) {
		b.Cmd(command...)
	}
	client := respblocking.NewClient(clock.NewReal(), resp.Options{Addr: addr})
	defer client.Close()
	require.NoError(t, client.Do(&b, 0, func(replies resp.Replies) error {
		for _, r := range replies.All() {
			require.NoError(t, r.Err())
		}
		return nil
	}))
}
