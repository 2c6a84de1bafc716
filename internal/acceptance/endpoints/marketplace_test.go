package endpoints_test

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/testing/enginetest"
	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/resp/cluster"
)

// A marketplace has sixteen sources behind four endpoints, three products each, and one line of leniency.
const (
	marketSources   = 16
	marketEndpoints = 4
	marketPolicy    = `"lenient": {"on_error": "auto", "timeout": "10%", "answer_by": "50%"}, "min_rows": [40]`
)

func marketPlan(endpoints int) []byte {
	var nodes, ids []string
	for i := range marketSources {
		nodes = append(nodes, fmt.Sprintf(`{"node_id": "s%d", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_000%d", "key": "source:%d"}}`, i, 1+i%endpoints, i))
		ids = append(ids, fmt.Sprintf(`"s%d"`, i))
	}
	nodes = append(nodes, fmt.Sprintf(`{"node_id": "all", "op": "union", "inputs": [%s], "params": {}}`, strings.Join(ids, ",")),
		`{"node_id": "best", "op": "sort", "inputs": ["all"], "params": {"by": 1}}`, `{"node_id": "page", "op": "take", "inputs": ["best"], "params": {"count": 48}}`)
	return []byte(fmt.Sprintf(`{"schema_version": 1, "plan_name": "home", "nodes": [%s], "outputs": ["page"], %s,
		"capabilities_required": ["cap.rankd.lenient.v1", "cap.rankd.min_rows.v1"]}`, strings.Join(nodes, ","), marketPolicy))
}

// TestAMarketplaceLosesOnlyTheRowsOfWhatIsDown: each endpoint is stopped, slow or half broken in turn, on each model. The
// page lacks the rows of the sources there, and says which sources these are.
func TestAMarketplaceLosesOnlyTheRowsOfWhatIsDown(t *testing.T) {
	slow, err := net.Listen("tcp", "127.0.0.1:0") // The kernel takes connections, and nobody answers.
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, slow.Close()) })
	start := func(broken func(source int) bool) string {
		data := make(map[string]any)
		for i := range marketSources {
			data[fmt.Sprintf("source:%d", i)] = []any{100*i + 1, 100*i + 2, 100*i + 3}
			if broken(i) {
				data[fmt.Sprintf("source:%d", i)] = map[string]any{"not": "a list"}
			}
		}
		server, err := rankdtest.StartRedisWith(data)
		require.NoError(t, err)
		t.Cleanup(server.Close)
		return server.Addr()
	}
	sound, half := start(func(int) bool { return false }), start(func(i int) bool { return i/marketEndpoints%2 == 1 })
	for name, c := range map[string]struct {
		at     string
		loses  func(source int) bool // of those at the endpoint
		inTurn int                   // how many endpoints are tried
	}{
		"sound":       {sound, func(int) bool { return false }, 1},
		"stopped":     {"127.0.0.1:1", func(int) bool { return true }, marketEndpoints},
		"slow":        {slow.Addr().String(), func(int) bool { return true }, marketEndpoints},
		"half broken": {half, func(i int) bool { return i/marketEndpoints%2 == 1 }, marketEndpoints},
	} {
		for down := range c.inTurn {
			t.Run(fmt.Sprintf("%s %d", name, down), func(t *testing.T) {
				t.Parallel() // It waits most of its time.
				var tables strings.Builder
				for i := range marketEndpoints {
					at := sound
					if i == down {
						at = c.at
					}
					fmt.Fprintf(&tables, "[[endpoint]]\nid = \"ep_000%d\"\nname = \"market%d\"\nkind = \"redis\"\nurl = \"redis://%s\"\n", i+1, i, at)
				}
				registry := fstest.MapFS{"keys.toml": {Data: []byte("[[key]]\nid = 1\nname = \"id\"\ntype = \"int\"\n")}, "params.toml": {},
					"endpoints.dev.toml": {Data: []byte(tables.String())}}
				for _, model := range enginetest.Models {
					o := rankd.Options{Registry: registry, PlanText: marketPlan(marketEndpoints), Model: model, Logger: slog.New(slog.DiscardHandler)}
					if model == rankd.Pool {
						o.IOThreads = 2 * marketSources // so that no source waits for the worker of a slow one: that wait counts
					}
					e, err := rankd.Open(o)
					require.NoError(t, err)
					defer e.Close()
					a, err := e.Rank(t.Context(), rankd.Request{UserID: 1, Timeout: 6 * time.Second})
					require.NoError(t, err)
					var want []int64
					var lost []string
					for i := range int64(marketSources) {
						if int(i)%marketEndpoints == down && c.loses(int(i)) {
							lost = append(lost, fmt.Sprintf("s%d", i))
						} else {
							want = append(want, 100*i+1, 100*i+2, 100*i+3)
						}
					}
					checkMarket(t, a, want, lost)
				}
			})
		}
	}
}

// checkMarket checks the rows of a page, and the sources that it says are lost.
func checkMarket(t *testing.T, a *rankd.Answer, want []int64, lost []string) {
	t.Helper()
	var told []string
	for _, n := range a.Completeness() {
		if n.Status != rankd.NodeOK {
			told = append(told, n.Node)
			assert.NotEmpty(t, n.Reason)
		}
	}
	assert.Equal(t, want, enginetest.IDsOf(a.Output(0)))
	assert.Equal(t, lost, told)
	assert.Equal(t, lost != nil, a.Degraded())
	assert.Equal(t, len(want) < 40, a.BelowMinimum() != nil)
}

// TestAMarketplaceOnAClusterLosesOnlyTheRowsOfAMaster: the sources are lists of a Redis Cluster, one master of which goes.
func TestAMarketplaceOnAClusterLosesOnlyTheRowsOfAMaster(t *testing.T) {
	const masters, dead = 3, 1
	c := testworld.StartRedisCluster(t, masters)
	want, left := []int64(nil), []int64(nil)
	var lost []string
	for i := range int64(marketSources) {
		key, rows := fmt.Sprint("source:", i), []int64{100*i + 1, 100*i + 2, 100*i + 3}
		owner := c.Owner(cluster.Slot([]byte(key)))
		c.Do(t, owner, "RPUSH", key, fmt.Sprint(rows[0]), fmt.Sprint(rows[1]), fmt.Sprint(rows[2]))
		if want = append(want, rows...); owner == dead {
			lost = append(lost, fmt.Sprint("s", i))
		} else {
			left = append(left, rows...)
		}
	}
	require.NotEmpty(t, lost)
	require.NotEmpty(t, left)
	rank := func(e *rankd.Engine) *rankd.Answer {
		a, err := e.Rank(t.Context(), rankd.Request{UserID: 1, Timeout: 10 * time.Second})
		require.NoError(t, err)
		return a
	}
	var engines []*rankd.Engine
	for _, model := range enginetest.Models {
		engines = append(engines, enginetest.Open(t, rankd.Options{Redis: c.Addr(), PlanText: marketPlan(1), Model: model}))
		checkMarket(t, rank(engines[len(engines)-1]), want, nil)
	}
	c.Nodes[dead].Kill()
	for _, e := range engines {
		for range 3 { // when the loss is noticed, and behind that
			checkMarket(t, rank(e), left, lost)
		}
	}
}
